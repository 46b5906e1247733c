package job

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (c *checker) boolean(n *yaml.Node, v *value) bool {
	if scalar(n) != scalarBool {
		m := Mistake{Pos: at(n), Path: v.path, Code: CodeType, Message: "expected true or false, got " + kindOf(n)}
		switch strings.ToLower(n.Value) {
		case "yes", "on", "y", "true", "1":
			m.Suggestion = "true"
		case "no", "off", "n", "false", "0":
			m.Suggestion = "false"
		}
		c.add(m)
		return false
	}
	if strings.EqualFold(n.Value, "true") {
		v.num = 1
	}
	return true
}

func (c *checker) integer(n *yaml.Node, f *Field, v *value) bool {
	if scalar(n) != scalarInt {
		return c.wrong(n, v.path, CodeType, "expected an integer, got "+kindOf(n))
	}
	big := integer(n.Value)
	v.num = int64Of(big)
	if !big.IsInt64() || v.num < f.Min || v.num > f.Max {
		return c.wrong(n, v.path, CodeRange, fmt.Sprintf("%s is out of range; allowed is %d to %d", cut(n.Value), f.Min, f.Max)+f.because())
	}
	return true
}

// textual reads what is written as a text: names, refs, paths, quantities.
func (c *checker) textual(n *yaml.Node, f *Field, v *value) bool {
	if n.Kind != yaml.ScalarNode {
		return c.wrong(n, v.path, CodeType, "expected a text, got "+kindOf(n))
	}
	kind := scalar(n)
	if kind == scalarNull {
		return c.wrong(n, v.path, CodeType, "expected a text, got nothing")
	}
	if kind != scalarText && f.Type == TypeString {
		return c.wrong(n, v.path, CodeType, "expected a text, got "+kindOf(n)+"; quote it")
	}
	v.text = n.Value
	if reference.MatchString(n.Value) {
		if !f.Interpolated {
			return c.wrong(n, v.path, CodeValue, "${env:..} and ${file:..} can only stand in connections, paths and topic names")
		}
		s, err := c.env.interpolate(n.Value)
		if err != nil {
			return c.wrong(n, v.path, CodeEnv, err.Error())
		}
		v.text = s
	}
	return c.form(n, f, v)
}

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	refForm     = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}(?:\.[a-z][a-z0-9_-]{0,62})?$`)
	pointerForm = regexp.MustCompile(`^(?:/(?:[^~/]|~[01])*)*$`)
)

func badName(s string) string {
	return fmt.Sprintf("%q is no name; a name is a lower-case letter, then up to 62 of a-z, 0-9, _ and -", cut(s))
}

// form demands the form of the field's type.
func (c *checker) form(n *yaml.Node, f *Field, v *value) bool {
	switch f.Type {
	case TypeName:
		return nameForm.MatchString(v.text) || c.wrong(n, v.path, CodeValue, badName(v.text))
	case TypeRef:
		return refForm.MatchString(v.text) || c.wrong(n, v.path, CodeValue, fmt.Sprintf("%q is neither a name nor name.port", cut(v.text)))
	case TypePointer:
		return pointerForm.MatchString(v.text) && v.text != "" && len(v.text) <= 1024 ||
			c.wrong(n, v.path, CodeValue, fmt.Sprintf("%q is no JSON pointer; write /field or /outer/inner, with ~1 for / and ~0 for ~", cut(v.text)))
	case TypePath:
		if v.text == "" {
			return c.wrong(n, v.path, CodeValue, "the path is empty")
		}
		v.text = inDir(c.env.Dir, v.text)
	case TypeEnum:
		return c.enum(n, f, v)
	case TypeDuration, TypeSize:
		return c.quantity(n, f, v)
	}
	return true
}

// inDir joins a path to the job file's folder.
func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func (c *checker) enum(n *yaml.Node, f *Field, v *value) bool {
	if slices.Contains(f.Values, v.text) {
		return true
	}
	m := Mistake{Pos: at(n), Path: v.path, Code: CodeValue, Message: fmt.Sprintf("%q is not allowed; it is one of %s", cut(v.text), strings.Join(f.Values, ", "))}
	if len(f.Values) == 1 {
		m.Message = fmt.Sprintf("%q is not allowed; it must be %s", cut(v.text), f.Values[0])
	}
	switch f.Name {
	case "apiVersion":
		m.Code = CodeVersion
		m.Message = fmt.Sprintf("this version of wasmill reads job files of apiVersion %s, not %q", APIVersion, cut(v.text))
	case "kind":
		m.Code = CodeVersion
	default:
		m.Suggestion = closest(v.text, f.Values)
	}
	c.add(m)
	return false
}

func (c *checker) quantity(n *yaml.Node, f *Field, v *value) bool {
	parse, format, smallest := parseDuration, formatDuration, "ms"
	if f.Type == TypeSize {
		parse, format, smallest = parseSize, formatSize, "B"
	}
	q, suggestion, err := parse(v.text)
	if err != nil {
		allowed := func(quoted string) bool {
			meant, notQuoted := strconv.Unquote(quoted)
			q, _, wrong := parse(meant)
			return notQuoted == nil && wrong == nil && q >= f.Min && q <= f.Max
		}
		if !allowed(suggestion) {
			suggestion = bareUnit(v.text, smallest)
		}
		if !allowed(suggestion) {
			suggestion = ""
		}
		c.add(Mistake{Pos: at(n), Path: v.path, Code: CodeValue, Message: err.Error(), Suggestion: suggestion})
		return false
	}
	v.num = q
	if q < f.Min || q > f.Max {
		return c.wrong(n, v.path, CodeRange, fmt.Sprintf("%s is out of range; allowed is %s to %s", cut(v.text), format(f.Min), format(f.Max))+f.because())
	}
	return true
}
