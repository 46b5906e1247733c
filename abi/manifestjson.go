package abi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrManifest is wrapped by every error of ParseManifest.
var ErrManifest = errors.New("bad manifest")

// JSONContent is the content of a port whose values are JSON texts. Other contents are names for people.
const JSONContent = "json"

// MaxStateConfig is how many members of the config a manifest may say that state depends on.
const MaxStateConfig = 64

// MaxDelays is how many durations a manifest may name as its delay.
const MaxDelays = 16

// maxMemberName bounds the name of one of them, in bytes.
const maxMemberName = 128

// maxVersionText bounds the version that a manifest gives.
const maxVersionText = 64

// DefaultManifest is what a module without a manifest has: one input "in", one output "out", no fields and no tables. Its
// ABI is 0, as it does not say one.
func DefaultManifest() *Manifest {
	return &Manifest{
		Name: "transform", Version: "0",
		Inputs: []InputPort{{Name: "in"}}, Outputs: []OutputPort{{Name: "out"}},
	}
}

// ParseManifest reads a manifest strictly: one UTF-8 JSON text of at most MaxManifest bytes without duplicate or unknown
// names, within the limits of ABI 1. Errors wrap ErrManifest and say where, as a JSON pointer. ABI is 0 when the manifest
// does not say it.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrManifest, len(text), MaxManifest)
	}
	if !ValidJSON(text) {
		return nil, fmt.Errorf("%w: %w", ErrManifest, ErrNotJSON)
	}
	p := manifestParser{dec: jsontext.NewDecoder(bytes.NewReader(text)), m: &Manifest{}}
	if err := p.manifest(); err != nil {
		return nil, fmt.Errorf("%w: at %q: %w", ErrManifest, string(p.dec.StackPointer()), err)
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrManifest, ErrNotJSON)
	}
	return p.m, nil
}

// manifestParser walks the tokens, so that each error has its place.
type manifestParser struct {
	dec *jsontext.Decoder
	m   *Manifest
}

func (p *manifestParser) manifest() error {
	seen, err := p.object(func(name string) (err error) {
		switch name {
		case "abi":
			return p.abi()
		case "name":
			p.m.Name, err = p.name()
		case "version":
			p.m.Version, err = p.version()
		case "inputs":
			return p.array(MaxPorts, p.input)
		case "outputs":
			return p.array(MaxPorts, p.output)
		case "tables":
			return p.array(MaxTables, p.table)
		case "config":
			return p.config()
		case "stateConfig":
			return p.array(MaxStateConfig, p.stateConfig)
		case "delay":
			return p.array(MaxDelays, p.delay)
		default:
			return errors.New("unknown name")
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"name", "version", "inputs", "outputs"} {
		if !seen[name] {
			return fmt.Errorf("%q is missing", name)
		}
	}
	if len(p.m.Inputs) == 0 {
		return errors.New(`"inputs" is empty`)
	}
	return nil
}

// object reads an object and calls read for each name, with its value next.
func (p *manifestParser) object(read func(name string) error) (seen map[string]bool, err error) {
	if err := p.open('{'); err != nil {
		return nil, err
	}
	seen = map[string]bool{}
	for p.dec.PeekKind() != '}' {
		token, err := p.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		seen[name] = true
		if err := read(name); err != nil {
			return nil, err
		}
	}
	_, err = p.dec.ReadToken()
	return seen, err
}

func (p *manifestParser) open(kind jsontext.Kind) error {
	if got := p.dec.PeekKind(); got != kind && got != 0 {
		return fmt.Errorf("is %s, want %s", kindName(got), kindName(kind))
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *manifestParser) array(limit int, read func() error) error {
	if err := p.open('['); err != nil {
		return err
	}
	for n := 0; p.dec.PeekKind() != ']'; n++ {
		if n == limit {
			return fmt.Errorf("more than %d entries", limit)
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	}
	return k.String()
}

func (p *manifestParser) string() (string, error) {
	if got := p.dec.PeekKind(); got != '"' && got != 0 {
		return "", fmt.Errorf("is %s, want a string", kindName(got))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

func (p *manifestParser) bool() (bool, error) {
	if got := p.dec.PeekKind(); got != 't' && got != 'f' && got != 0 {
		return false, fmt.Errorf("is %s, want true or false", kindName(got))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return false, err
	}
	return token.Bool(), nil
}

func (p *manifestParser) abi() error {
	if got := p.dec.PeekKind(); got != '0' && got != 0 {
		return fmt.Errorf("is %s, want a number", kindName(got))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return err
	}
	if token.String() != strconv.Itoa(Version) {
		return fmt.Errorf("ABI %s, this host has %d", token.String(), Version)
	}
	p.m.ABI = Version
	return nil
}

// ValidName says whether s is a name of ABI 1: [a-z][a-z0-9_-]{0,62}.
func ValidName(s string) bool {
	if s == "" || len(s) > 63 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func (p *manifestParser) name() (string, error) {
	s, err := p.string()
	if err == nil && !ValidName(s) {
		err = fmt.Errorf("%q is no name: a-z, then up to 62 of a-z, 0-9, _ and -", s)
	}
	return s, err
}

func (p *manifestParser) version() (string, error) {
	s, err := p.string()
	if err != nil {
		return "", err
	}
	if s == "" || len(s) > maxVersionText {
		return "", fmt.Errorf("a version has 1 to %d bytes", maxVersionText)
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("version %q has something other than printable ASCII", s)
		}
	}
	return s, nil
}

func (p *manifestParser) input() error {
	var in InputPort
	err := p.port(&in.Name, &in.Content, func(key string) error {
		if key == "fields" {
			return p.fields(&in)
		}
		return errUnknownName
	})
	if err != nil {
		return err
	}
	for _, other := range p.m.Inputs {
		if other.Name == in.Name {
			return fmt.Errorf("a second input %q", in.Name)
		}
	}
	p.m.Inputs = append(p.m.Inputs, in)
	return nil
}

func (p *manifestParser) output() error {
	var out OutputPort
	err := p.port(&out.Name, &out.Content, func(key string) (err error) {
		switch key {
		case "updates":
			out.Updates, err = p.bool()
		case "rows":
			out.Rows, err = p.rows()
		case "columns":
			out.Columns, err = p.columns()
		default:
			err = errUnknownName
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case (out.Rows == 0) != (out.Columns == ""):
		return errors.New(`"rows" and "columns" go together`)
	case out.Rows > 0 && out.Content == JSONContent:
		return errors.New(`binary rows are no JSON: "rows" and the content "json" exclude each other`)
	}
	for _, other := range p.m.Outputs {
		if other.Name == out.Name {
			return fmt.Errorf("a second output %q", out.Name)
		}
	}
	p.m.Outputs = append(p.m.Outputs, out)
	return nil
}

var errUnknownName = errors.New("unknown name")

// maxColumnsText bounds the columns of binary rows in a manifest.
const maxColumnsText = 32 << 10

// rows reads the version of an output's binary rows.
func (p *manifestParser) rows() (int, error) {
	if got := p.dec.PeekKind(); got != '0' && got != 0 {
		return 0, fmt.Errorf("is %s, want a number", kindName(got))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return 0, err
	}
	if token.String() != strconv.Itoa(RowsVersion) {
		return 0, fmt.Errorf("rows of version %s, this host has %d", token.String(), RowsVersion)
	}
	return RowsVersion, nil
}

func (p *manifestParser) columns() (string, error) {
	s, err := p.string()
	if err == nil && (s == "" || len(s) > maxColumnsText) {
		err = fmt.Errorf("columns are a text of 1 to %d bytes", maxColumnsText)
	}
	return s, err
}

// port reads a port's object. own reads what only this kind of port has, by its name.
func (p *manifestParser) port(name, content *string, own func(key string) error) error {
	seen, err := p.object(func(key string) (err error) {
		switch {
		case key == "name":
			*name, err = p.name()
		case key == "content":
			*content, err = p.name()
		default:
			err = own(key)
		}
		return err
	})
	if err == nil && !seen["name"] {
		err = errors.New(`"name" is missing`)
	}
	return err
}

func (p *manifestParser) fields(in *InputPort) error {
	return p.array(MaxFields, func() error {
		pointer, err := p.string()
		if err != nil {
			return err
		}
		if _, err := ParsePointer(pointer); err != nil {
			return err
		}
		for _, other := range in.Fields {
			if other == pointer {
				return fmt.Errorf("%q comes twice", pointer)
			}
		}
		in.Fields = append(in.Fields, pointer)
		return nil
	})
}

func (p *manifestParser) table() error {
	t := Table{Type: TableBytes}
	seen, err := p.object(func(key string) (err error) {
		switch key {
		case "name":
			t.Name, err = p.name()
		case "type":
			t.Type, err = p.tableType()
		default:
			err = errors.New("unknown name")
		}
		return err
	})
	if err != nil {
		return err
	}
	if !seen["name"] {
		return errors.New(`"name" is missing`)
	}
	for _, other := range p.m.Tables {
		if other.Name == t.Name {
			return fmt.Errorf("a second table %q", t.Name)
		}
	}
	p.m.Tables = append(p.m.Tables, t)
	return nil
}

func (p *manifestParser) stateConfig() error {
	s, err := p.string()
	if err != nil {
		return err
	}
	if s == "" || len(s) > maxMemberName {
		return fmt.Errorf("a member's name has 1 to %d bytes", maxMemberName)
	}
	for _, other := range p.m.StateConfig {
		if other == s {
			return fmt.Errorf("%q comes twice", s)
		}
	}
	p.m.StateConfig = append(p.m.StateConfig, s)
	return nil
}

func (p *manifestParser) delay() error {
	s, err := p.string()
	if err != nil {
		return err
	}
	if s == "" || len(s) > maxMemberName {
		return fmt.Errorf("a delay has 1 to %d bytes", maxMemberName)
	}
	if s[0] == '/' {
		if _, err := ParsePointer(s); err != nil {
			return err
		}
	}
	p.m.Delay = append(p.m.Delay, s)
	return nil
}

func (p *manifestParser) tableType() (string, error) {
	s, err := p.string()
	if err != nil {
		return "", err
	}
	switch s {
	case TableBytes, TableJSON, TableI64:
		return s, nil
	}
	return "", fmt.Errorf("%q is no type of a table: %s, %s or %s", s, TableBytes, TableJSON, TableI64)
}

// config keeps the schema as canonical JSON. A schema is an object or a boolean.
func (p *manifestParser) config() error {
	switch kind := p.dec.PeekKind(); kind {
	case '{', 't', 'f', 0:
	default:
		return fmt.Errorf("is %s, want a JSON schema", kindName(kind))
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	p.m.Config, err = CanonicalJSON(raw)
	return err
}

// JSON is the manifest as canonical JSON. Parsed again it gives an equal manifest. What is as it would be unsaid is left
// out, so that a manifest keeps its text when more can be said.
func (m *Manifest) JSON() []byte {
	b := []byte{'{'}
	if m.ABI != 0 {
		b = append(strconv.AppendInt(append(b, `"abi":`...), int64(m.ABI), 10), ',')
	}
	if m.Config != nil {
		b = append(append(append(b, `"config":`...), m.Config...), ',')
	}
	if len(m.Delay) > 0 {
		b = append(appendTexts(append(b, `"delay":`...), m.Delay), ',')
	}
	b = append(b, `"inputs":[`...)
	for i, in := range m.Inputs {
		b = appendObject(b, i, appendFields(appendContent(nil, in.Content), in.Fields), in.Name, "")
	}
	b = append(AppendJSONString(append(b, `],"name":`...), []byte(m.Name)), `,"outputs":[`...)
	for i, out := range m.Outputs {
		var before []byte
		after := ""
		if out.Rows > 0 {
			before = append(AppendJSONString(append(before, `"columns":`...), []byte(out.Columns)), ',')
			after = `,"rows":` + strconv.Itoa(out.Rows)
		}
		if out.Updates {
			after += `,"updates":true`
		}
		b = appendObject(b, i, appendContent(before, out.Content), out.Name, after)
	}
	b = append(b, ']')
	if len(m.StateConfig) > 0 {
		b = appendTexts(append(b, `,"stateConfig":`...), m.StateConfig)
	}
	if len(m.Tables) > 0 {
		b = append(b, `,"tables":[`...)
		for i, t := range m.Tables {
			after := ""
			if t.Type != TableBytes && t.Type != "" {
				after = `,"type":"` + t.Type + `"`
			}
			b = appendObject(b, i, nil, t.Name, after)
		}
		b = append(b, ']')
	}
	b = AppendJSONString(append(b, `,"version":`...), []byte(m.Version))
	return append(b, '}')
}

// appendObject appends the object with number i of an array: its name, with the members before and after it.
func appendObject(b []byte, i int, before []byte, name, after string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(append(b, '{'), before...)
	b = AppendJSONString(append(b, `"name":`...), []byte(name))
	return append(append(b, after...), '}')
}

func appendContent(b []byte, content string) []byte {
	if content == "" {
		return b
	}
	return append(AppendJSONString(append(b, `"content":`...), []byte(content)), ',')
}

func appendFields(b []byte, fields []string) []byte {
	if len(fields) == 0 {
		return b
	}
	return append(appendTexts(append(b, `"fields":`...), fields), ',')
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, s := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSONString(b, []byte(s))
	}
	return append(b, ']')
}
