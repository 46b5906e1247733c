package job

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// value is a part of the file after it was checked against its Field: defaults filled in, units and paths resolved.
type value struct {
	path    string
	set     bool // given in the file
	bad     bool // a mistake was reported; later checks leave it alone
	text    string
	num     int64 // integers, milliseconds, bytes; booleans as 0 and 1
	json    []byte
	columns []Column
	items   []*value
	names   []string // keys in file order
	fields  map[string]*value
}

// at returns a field of an object. A field that is not described is a mistake in this package; it yields an empty value.
func (v *value) at(name string) *value {
	if f := v.fields[name]; f != nil {
		return f
	}
	return &value{path: join(v.path, name)}
}

// good reports whether the value is given and right.
func (v *value) good() bool { return v.set && !v.bad }

// kind returns the component that is given, "" when it is not exactly one that this version has.
func (v *value) kind(f *Field) string {
	kind := ""
	for i := range f.Fields {
		if f.Fields[i].Component && v.at(f.Fields[i].Name).set {
			if kind != "" || f.Fields[i].Later {
				return ""
			}
			kind = f.Fields[i].Name
		}
	}
	return kind
}

func (v *value) texts() []string {
	var texts []string
	for _, i := range v.items {
		texts = append(texts, i.text)
	}
	return texts
}

type checker struct {
	mistakes
	env    Env
	places map[string]Pos
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// join appends a key to a path. Keys are the user's own in some places: odd ones are quoted, long ones cut.
func join(path, name string) string {
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + strconv.Quote(cut(name)) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// note keeps the place of a path: a scalar's own, else that of its key or list entry.
func (c *checker) note(path string, key, n *yaml.Node) {
	if _, known := c.places[path]; known {
		return
	}
	if n.Kind == yaml.ScalarNode && scalar(n) != scalarNull {
		key = n
	}
	c.places[path] = at(key)
}

// nearest returns the place of path or of what it lies in.
func nearest(places map[string]Pos, path string) Pos {
	for {
		if p, ok := places[path]; ok {
			return p
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return Pos{1, 1}
		}
		path = path[:i]
	}
}

// wrong reports a mistake at a node. It returns false for the caller to return.
func (c *checker) wrong(n *yaml.Node, path, code, message string) bool {
	c.add(Mistake{Pos: at(n), Path: path, Code: code, Message: message})
	return false
}

// wrongAt reports a mistake at a path.
func (c *checker) wrongAt(path, code, message, suggestion string) {
	c.add(Mistake{Pos: nearest(c.places, path), Path: path, Code: code, Message: message, Suggestion: suggestion})
}

// absent is the value of a field that the file does not give.
func absent(f *Field, path string) *value {
	v := &value{path: path}
	switch f.Type {
	case TypeObject:
		v.fields = map[string]*value{}
		for i := range f.Fields {
			v.fields[f.Fields[i].Name] = absent(&f.Fields[i], join(path, f.Fields[i].Name))
		}
	case TypeInt:
		v.num, _ = strconv.ParseInt(f.Default, 10, 64)
	case TypeBool:
		if f.Default == "true" {
			v.num = 1
		}
	case TypeDuration:
		v.num, _, _ = parseDuration(f.Default)
	case TypeSize:
		v.num, _, _ = parseSize(f.Default)
	case TypeConfig:
		v.json = []byte("{}")
	default:
		v.text = f.Default
	}
	return v
}

// check reads a node as a field.
func (c *checker) check(n *yaml.Node, f *Field, path string) *value {
	v := &value{path: path, set: true}
	if f.Later {
		c.wrongAt(path, CodeUnsupported, laterMessage(f), "")
		v.bad = true
	}
	ok := false
	switch f.Type {
	case TypeObject:
		return c.object(n, f, v)
	case TypeInput:
		return c.input(n, f, v)
	case TypeList:
		ok = c.list(n, f, v)
	case TypeMap:
		ok = c.mapping(n, f, v)
	case TypePointers:
		ok = c.pointers(n, v)
	case TypeColumns:
		v.columns, ok = c.columns(n, path)
	case TypeConfig:
		ok = c.config(n, f, v)
	case TypeBool:
		ok = c.boolean(n, v)
	case TypeInt:
		ok = c.integer(n, f, v)
	default:
		ok = c.textual(n, f, v)
	}
	v.bad = v.bad || !ok
	return v
}

func laterMessage(f *Field) string { return f.Name + " is not available in this version" }

// object reads a mapping with described fields: unknown ones are mistakes, missing ones get their defaults.
func (c *checker) object(n *yaml.Node, f *Field, v *value) *value {
	if n.Kind != yaml.MappingNode {
		c.wrong(n, v.path, CodeType, "expected an object, got "+kindOf(n))
		a := absent(f, v.path)
		a.set, a.bad = true, true
		return a
	}
	v.fields = map[string]*value{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, child := n.Content[i], n.Content[i+1]
		p := join(v.path, k.Value)
		c.note(p, k, child)
		g := f.field(k.Value)
		if g == nil {
			c.unknown(k, f, v.path)
			continue
		}
		if v.fields[g.Name] != nil {
			continue // a duplicate, reported when the text was read
		}
		v.names = append(v.names, g.Name)
		v.fields[g.Name] = c.check(child, g, p)
	}
	for i := range f.Fields {
		g := &f.Fields[i]
		if v.fields[g.Name] != nil {
			continue
		}
		v.fields[g.Name] = absent(g, join(v.path, g.Name))
		if g.Required {
			c.missing(n, g, f, v)
		}
	}
	c.component(n, f, v)
	return v
}

func (c *checker) unknown(k *yaml.Node, f *Field, path string) {
	m := Mistake{Pos: at(k), Path: path, Code: CodeUnknown, Message: fmt.Sprintf("unknown field %q", cut(k.Value))}
	if path == "" {
		m.Path = cut(k.Value)
		m.Message = "unknown field"
	}
	names := f.names(false)
	if m.Suggestion = closest(k.Value, names); m.Suggestion == "" {
		m.Message += "; fields are " + strings.Join(names, ", ")
	}
	c.add(m)
}

// missing reports a required field, unless something that looks like it stands there and was reported as unknown.
func (c *checker) missing(n *yaml.Node, g, f *Field, v *value) {
	v.fields[g.Name].bad = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i].Value
		if f.field(k) == nil && closest(k, f.names(false)) == strconv.Quote(g.Name) {
			return
		}
	}
	what := g.Name + " is missing"
	if g.Example != "" {
		what += ", for example " + g.Name + ": " + g.Example
	}
	if len(g.Values) > 1 {
		what = g.Name + " is missing; it is one of " + strings.Join(g.Values, ", ")
	}
	c.wrongAt(v.path, CodeMissing, what, "")
}

// component demands exactly one kind where there are kinds.
func (c *checker) component(n *yaml.Node, f *Field, v *value) {
	var given, kinds []string
	for i := range f.Fields {
		if !f.Fields[i].Component {
			continue
		}
		kinds = append(kinds, f.Fields[i].Name)
		if v.fields[f.Fields[i].Name].set {
			given = append(given, f.Fields[i].Name)
		}
	}
	switch {
	case len(kinds) == 0 || len(given) == 1:
	case len(given) > 1:
		v.bad = true
		c.wrongAt(v.path, CodeConflict, "only one of "+strings.Join(given, " and ")+" can be given", "")
	default:
		v.bad = true
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i].Value
			if f.field(k) == nil && closest(k, kinds) != "" {
				return
			}
		}
		available := f.names(true)
		if len(available) == 0 {
			available = kinds
		}
		c.wrongAt(v.path, CodeMissing, "the kind is missing: give one of "+strings.Join(available, ", "), "")
	}
}

func (c *checker) list(n *yaml.Node, f *Field, v *value) bool {
	if n.Kind != yaml.SequenceNode {
		m := Mistake{Pos: at(n), Path: v.path, Code: CodeType, Message: "expected a list, got " + kindOf(n)}
		if n.Kind == yaml.ScalarNode && scalar(n) == scalarText {
			m.Suggestion = "[" + cut(n.Value) + "]"
		}
		c.add(m)
		return false
	}
	if len(n.Content) < int(f.Min) {
		return c.wrong(n, v.path, CodeMissing, fmt.Sprintf("needs at least %d entry", f.Min))
	}
	if f.Max > 0 && len(n.Content) > int(f.Max) {
		return c.wrong(n, v.path, CodeRange, fmt.Sprintf("has %d entries; at most %d are allowed", len(n.Content), f.Max))
	}
	ok := true
	for i, child := range n.Content {
		p := fmt.Sprintf("%s[%d]", v.path, i)
		c.note(p, child, child)
		item := c.check(child, f.Elem, p)
		ok = ok && !item.bad
		v.items = append(v.items, item)
	}
	// An object's own mistakes are reported inside it; the list of objects stays usable.
	return ok || f.Elem.Type == TypeObject || f.Elem.Type == TypeInput
}

func (c *checker) mapping(n *yaml.Node, f *Field, v *value) bool {
	if n.Kind != yaml.MappingNode {
		return c.wrong(n, v.path, CodeType, "expected an object, got "+kindOf(n))
	}
	v.fields = map[string]*value{}
	ok := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, child := n.Content[i], n.Content[i+1]
		p := join(v.path, k.Value)
		c.note(p, k, child)
		if v.fields[k.Value] != nil {
			continue
		}
		if f.Elem.Type == TypeObject && !nameForm.MatchString(k.Value) {
			ok = c.wrong(k, p, CodeValue, badName(k.Value))
		}
		item := c.check(child, f.Elem, p)
		ok = ok && !item.bad
		v.names = append(v.names, k.Value)
		v.fields[k.Value] = item
	}
	return ok
}

// input reads an entry of `from`: a ref, or an object.
func (c *checker) input(n *yaml.Node, f *Field, v *value) *value {
	if n.Kind == yaml.MappingNode {
		return c.object(n, &Field{Type: TypeObject, Fields: f.Fields}, v)
	}
	ref := c.check(n, &Field{Type: TypeRef}, v.path)
	v.fields = map[string]*value{"input": ref}
	v.bad = ref.bad
	return v
}

func (c *checker) pointers(n *yaml.Node, v *value) bool {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 || len(nodes) > 64 {
		return c.wrong(n, v.path, CodeRange, "expected 1 to 64 JSON pointers")
	}
	ok := true
	for i, child := range nodes {
		item := c.check(child, &Field{Type: TypePointer}, fmt.Sprintf("%s[%d]", v.path, i))
		ok = ok && !item.bad
		v.items = append(v.items, item)
	}
	return ok
}
