package job

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
)

// CodeModule is the code of a job that does not fit the modules it names.
const CodeModule = "job.module"

// ModuleFacts is what a module says of itself before it runs.
type ModuleFacts struct {
	Manifest *abi.Manifest
	Stateful bool // it imports the functions of state
}

// CheckModules checks what only the modules know: whether the ports that `from` names exist, whether each transform has as
// many entries in `from` as its module has inputs (a module with one input takes any number), whether what keeps state is a
// keyed stage, and whether updates and binary rows go to sinks, and updates to stock transforms, that take them. The error is an
// *Errors.
func (j *Job) CheckModules(modules map[string]ModuleFacts) error {
	c := &checker{places: j.places}
	for i := range j.Transforms {
		t := &j.Transforms[i]
		path := fmt.Sprintf("spec.transforms[%d].from", i)
		facts := modules[t.Name]
		if m := facts.Manifest; m != nil && len(m.Inputs) != 1 && len(m.Inputs) != len(t.From) {
			var names []string
			for _, p := range m.Inputs {
				names = append(names, p.Name)
			}
			c.wrongAt(path, CodeModule, fmt.Sprintf("the module %s has %d inputs (%s), and from has %d entries; they match by position",
				t.Module.Ref, len(names), strings.Join(names, ", "), len(t.From)), "")
		}
		c.stateless(t, facts, path)
		c.ports(t.From, path, modules)
	}
	u := updates{job: j, modules: modules}
	for i := range j.Transforms {
		c.stockUpdates(&j.Transforms[i], fmt.Sprintf("spec.transforms[%d].from", i), u.origin)
	}
	for i := range j.Sinks {
		path := fmt.Sprintf("spec.sinks[%d].from", i)
		c.ports(j.Sinks[i].From, path, modules)
		c.updates(&j.Sinks[i], path, u.origin)
	}
	c.rows(j, modules)
	if err := c.errors(j.File); err != nil {
		return err
	}
	return nil
}

// stateless refuses a stage without keys whose module keeps state.
func (c *checker) stateless(t *Transform, facts ModuleFacts, path string) {
	if t.Keyed() || len(t.From) == 0 {
		return
	}
	why := ""
	switch m := facts.Manifest; {
	case m != nil && len(m.Tables) > 0:
		var names []string
		for _, table := range m.Tables {
			names = append(names, table.Name)
		}
		why = "has tables (" + strings.Join(names, ", ") + ")"
	case facts.Stateful:
		why = "uses state"
	default:
		return
	}
	c.wrongAt(path, CodeModule, fmt.Sprintf("the module %s %s, and state is kept by key: give each entry of from a keyBy, as {input: %s, keyBy: {json: /id}}",
		t.Module.Ref, why, t.From[0].Ref()), "")
}

// ports demands that named ports exist, and that a transform without outputs feeds nothing.
func (c *checker) ports(from []Input, path string, modules map[string]ModuleFacts) {
	for i, in := range from {
		m := modules[in.Name].Manifest
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
