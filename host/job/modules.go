package job

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
)

// CodeModule is the code of a job that does not fit the modules it names.
const CodeModule = "job.module"

// CheckModules checks what only the modules know: whether the ports that `from` names exist, and whether each transform
// has as many entries in `from` as its module has inputs. A module with one input takes any number of entries. The error
// is an *Errors.
func (j *Job) CheckModules(manifests map[string]*abi.Manifest) error {
	c := &checker{places: j.places}
	for i, t := range j.Transforms {
		path := fmt.Sprintf("spec.transforms[%d].from", i)
		if m := manifests[t.Name]; m != nil && len(m.Inputs) != 1 && len(m.Inputs) != len(t.From) {
			var names []string
			for _, p := range m.Inputs {
				names = append(names, p.Name)
			}
			c.wrongAt(path, CodeModule, fmt.Sprintf("the module %s has %d inputs (%s), and from has %d entries; they match by position",
				t.Module.Ref, len(names), strings.Join(names, ", "), len(t.From)), "")
		}
		c.ports(t.From, path, manifests)
	}
	for i, s := range j.Sinks {
		c.ports(s.From, fmt.Sprintf("spec.sinks[%d].from", i), manifests)
	}
	if err := c.errors(j.File); err != nil {
		return err
	}
	return nil
}

// ports demands that named ports exist, and that a transform without outputs feeds nothing.
func (c *checker) ports(from []Input, path string, manifests map[string]*abi.Manifest) {
	for i, in := range from {
		m := manifests[in.Name]
		if m == nil {
			continue
		}
		names := make([]string, len(m.Outputs))
		known := in.Port == "" && len(names) > 0
		for k, p := range m.Outputs {
			names[k] = in.Name + "." + p.Name
			known = known || p.Name == in.Port
		}
		if known {
			continue
		}
		message := fmt.Sprintf("the module of %s has no output %q", in.Name, in.Port)
		if len(names) == 0 {
			message = fmt.Sprintf("the module of %s has no outputs", in.Name)
		}
		suggestion := closest(in.Ref(), names)
		if suggestion == "" && len(names) > 0 {
			message += fmt.Sprintf("; there are %s", strings.Join(names, ", "))
		}
		c.wrongAt(fmt.Sprintf("%s[%d]", path, i), CodeModule, message, suggestion)
	}
}
