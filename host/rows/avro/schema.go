// Package avro turns Avro binary payloads into JSON text and back, by the schema they were written with.
//
// A record becomes an object with its fields in the schema's order; rules for single values are those of package jsonvalue:
//
//   - int and long are numbers, float and double the shortest text, bytes and fixed base64, an enum its symbol;
//   - decimal (of bytes or fixed) is an exact number; date, time-millis and time-micros, timestamp-millis, -micros and
//     -nanos are text in UTC, local-timestamp-* the same without a zone; uuid is text, of a fixed(16) in five groups;
//     duration is {"months": 1, "days": 2, "millis": 3}. A logical type that is unknown, or does not fit what it stands on,
//     is ignored, as the specification says;
//   - a union of null and one other type is null or the plain value. Of any other union the value stands in an object under
//     the name of its branch, {"string": "x"}, as in Avro's own JSON: it could not be told apart otherwise;
//   - a map is an object, keys in the order of the payload.
//
// A payload is read by the schema that wrote it alone. There is no reader's schema: a field that a newer writer added or
// dropped is there or is not, aliases and defaults for reading have no part in it.
//
// Back, each field takes the member of its name; a missing one is the field's default, else null, which fits a union with
// null only. Members without a field are skipped. What does not fit is a *sink.Misfit that names the field.
//
// Payloads and schemas may be hostile: nothing is allocated by a length that they claim, nesting ends at
// jsonvalue.MaxDepth, and output at jsonvalue.MaxBytes. Formats are those of the Avro specification 1.12.
package avro

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
)

type kind uint8

const (
	kindNull kind = iota + 1
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindRecord
	kindEnum
	kindArray
	kindMap
	kindUnion
	kindFixed
)

var primitives = map[string]kind{
	"null": kindNull, "boolean": kindBoolean, "int": kindInt, "long": kindLong, "float": kindFloat, "double": kindDouble,
	"bytes": kindBytes, "string": kindString,
}

type logical uint8

const (
	plain logical = iota
	decimal
	date
	clock     // time-*: a time of day
	timestamp // timestamp-*
	local     // local-timestamp-*
	uuid
	duration
)

// schemaType is one type of a schema. Named types are shared, so that a schema may refer to itself.
type schemaType struct {
	kind      kind
	logical   logical
	perSecond int64 // of a time: how many units a second has
	name      string
	fields    []field
	byName    map[string]int // of the fields
	symbols   []string
	quoted    [][]byte // the symbols as JSON
	ordinals  map[string]int
	elem      *schemaType // of an array or map
	branches  []*schemaType
	other     int // of a union of null and one other type, or of one type alone: that branch; else -1
	nullAt    int // the branch of a union that is null, or -1
	size      int // of a fixed
	precision int
	scale     int
	words     string // of a decimal, for messages
}

type field struct {
	name string
	key  []byte // `"name":`
	typ  *schemaType
	// deflt is the default, none when there is none.
	deflt jsonvalue.Value
}

// Schema is a parsed schema. It may be used by several goroutines.
type Schema struct{ root *schemaType }

// Limits of a schema.
const (
	// MaxText is the most bytes of a schema, those that it refers to included.
	MaxText  = 4 << 20
	maxFixed = jsonvalue.MaxBytes
	maxDepth = jsonvalue.MaxDepth
)

// Parse parses a schema. refs are the texts of schemas that define named types it refers to, each after those that it needs
// itself.
func Parse(text string, refs []string) (*Schema, error) {
	size := len(text)
	for _, r := range refs {
		size += len(r)
	}
	if size > MaxText {
		return nil, fmt.Errorf("the schema has more than %d bytes", MaxText)
	}
	p := parser{named: map[string]*schemaType{}}
	for _, r := range refs {
		if _, err := p.text(r); err != nil {
			return nil, fmt.Errorf("a schema that it refers to: %w", err)
		}
	}
	root, err := p.text(text)
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

type parser struct{ named map[string]*schemaType }

func (p *parser) text(text string) (*schemaType, error) {
	trimmed := strings.TrimSpace(text)
	if k, ok := primitives[trimmed]; ok {
		return &schemaType{kind: k, name: trimmed}, nil
	}
	v, err := new(jsonvalue.Doc).Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not an Avro schema: %w", err)
	}
	return p.parse(v, "", 0)
}

func (p *parser) parse(v jsonvalue.Value, space string, depth int) (*schemaType, error) {
	if depth > maxDepth {
		return nil, errors.New("the schema nests too deep")
	}
	switch v.Kind() {
	case jsonvalue.String:
		return p.reference(string(v.Text()), space)
	case jsonvalue.Array:
		return p.union(v, space, depth)
	case jsonvalue.Object:
		return p.object(v, space, depth)
	}
	return nil, errors.New("a type is a name, an object or a list")
}

func (p *parser) reference(name, space string) (*schemaType, error) {
	if k, ok := primitives[name]; ok {
		return &schemaType{kind: k, name: name}, nil
	}
	full := name
	if !strings.Contains(name, ".") && space != "" {
		full = space + "." + name
	}
	if t := p.named[full]; t != nil {
		return t, nil
	}
	if t := p.named[name]; t != nil {
		return t, nil // a type without a namespace, of a schema that this one refers to
	}
	return nil, fmt.Errorf("no type %.200q is defined", full)
}

func (p *parser) union(v jsonvalue.Value, space string, depth int) (*schemaType, error) {
	u := &schemaType{kind: kindUnion, other: -1, nullAt: -1}
	seen := map[string]bool{}
	for b := v.First(); b.Kind() != 0; b = b.Next() {
		t, err := p.parse(b, space, depth+1)
		if err != nil {
			return nil, err
		}
		if t.kind == kindUnion {
			return nil, errors.New("a union lies directly in a union")
		}
		if seen[t.name] {
			return nil, fmt.Errorf("a union has two branches %.200q", t.name)
		}
		seen[t.name] = true
		if t.kind == kindNull {
			u.nullAt = len(u.branches)
		} else {
			u.other = len(u.branches)
		}
		u.branches = append(u.branches, t)
	}
	if n := len(u.branches); n == 0 {
		return nil, errors.New("a union has no branches")
	} else if n > 2 || n == 2 && u.nullAt < 0 {
		u.other = -1
	}
	return u, nil
}

func (p *parser) object(v jsonvalue.Value, space string, depth int) (*schemaType, error) {
	inner := v.Get("type")
	if inner.Kind() != jsonvalue.String {
		return p.parse(inner, space, depth+1)
	}
	switch name := string(inner.Text()); name {
	case "record", "error":
		return p.record(v, space, depth)
	case "enum":
		return p.enum(v, space)
	case "fixed":
		return p.fixed(v, space)
	case "array", "map":
		k, at := kindArray, "items"
		if name == "map" {
			k, at = kindMap, "values"
		}
		elem, err := p.parse(v.Get(at), space, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s of a %s: %w", at, name, err)
		}
		return &schemaType{kind: k, name: name, elem: elem}, nil
	default:
		t, err := p.reference(name, space)
		if err == nil && primitives[name] != 0 {
			t.annotate(v)
		}
		return t, err
	}
}

// define adds a named type and returns the namespace for what lies in it.
func (p *parser) define(v jsonvalue.Value, space string, t *schemaType) (string, error) {
	name := v.Get("name")
	if name.Kind() != jsonvalue.String || len(name.Text()) == 0 {
		return "", errors.New("a record, enum or fixed has no name")
	}
	t.name = string(name.Text())
	if i := strings.LastIndexByte(t.name, '.'); i >= 0 {
		space = t.name[:i]
		t.name = strings.TrimPrefix(t.name, ".")
	} else {
		if ns := v.Get("namespace"); ns.Kind() == jsonvalue.String {
			space = string(ns.Text())
		}
		if space != "" {
			t.name = space + "." + t.name
		}
	}
	if _, ok := primitives[t.name]; ok || p.named[t.name] != nil {
		return "", fmt.Errorf("type %.200q is defined twice", t.name)
	}
	p.named[t.name] = t
	return space, nil
}

func (p *parser) record(v jsonvalue.Value, space string, depth int) (*schemaType, error) {
	t := &schemaType{kind: kindRecord, byName: map[string]int{}}
	space, err := p.define(v, space, t)
	if err != nil {
		return nil, err
	}
	list := v.Get("fields")
	if list.Kind() != jsonvalue.Array {
		return nil, fmt.Errorf("record %.200s has no fields", t.name)
	}
	for f := list.First(); f.Kind() != 0; f = f.Next() {
		if f.Kind() != jsonvalue.Object || f.Get("name").Kind() != jsonvalue.String {
			return nil, fmt.Errorf("a field of record %.200s has no name", t.name)
		}
		fd := field{name: string(f.Get("name").Text()), deflt: f.Get("default")}
		if _, ok := t.byName[fd.name]; ok {
			return nil, fmt.Errorf("record %.200s has two fields %.200q", t.name, fd.name)
		}
		if fd.typ, err = p.parse(f.Get("type"), space, depth+1); err != nil {
			return nil, fmt.Errorf("%.200s: %w", fd.name, err)
		}
		key, _ := jsonvalue.AppendString(nil, []byte(fd.name))
		fd.key = append(key, ':')
		t.byName[fd.name] = len(t.fields)
		t.fields = append(t.fields, fd)
	}
	return t, nil
}

func (p *parser) enum(v jsonvalue.Value, space string) (*schemaType, error) {
	t := &schemaType{kind: kindEnum, ordinals: map[string]int{}}
	if _, err := p.define(v, space, t); err != nil {
		return nil, err
	}
	list := v.Get("symbols")
	if list.Kind() != jsonvalue.Array {
		return nil, fmt.Errorf("enum %.200s has no symbols", t.name)
	}
	for s := list.First(); s.Kind() != 0; s = s.Next() {
		if s.Kind() != jsonvalue.String {
			return nil, fmt.Errorf("enum %.200s has a symbol that is no text", t.name)
		}
		symbol := string(s.Text())
		if _, ok := t.ordinals[symbol]; ok {
			return nil, fmt.Errorf("enum %.200s has two symbols %.200q", t.name, symbol)
		}
		quoted, _ := jsonvalue.AppendString(nil, []byte(symbol))
		t.ordinals[symbol] = len(t.symbols)
		t.symbols, t.quoted = append(t.symbols, symbol), append(t.quoted, quoted)
	}
	return t, nil
}

func (p *parser) fixed(v jsonvalue.Value, space string) (*schemaType, error) {
	t := &schemaType{kind: kindFixed}
	if _, err := p.define(v, space, t); err != nil {
		return nil, err
	}
	var ok bool
	if t.size, ok = whole(v.Get("size")); !ok || t.size > maxFixed {
		return nil, fmt.Errorf("fixed %.200s has no size that can be", t.name)
	}
	t.annotate(v)
	return t, nil
}

// whole reads a number that is not negative.
func whole(v jsonvalue.Value) (int, bool) {
	if v.Kind() != jsonvalue.Number {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v.Text()), 10, 32)
	return int(n), err == nil && n >= 0
}

var times = map[string]struct {
	on        kind
	logical   logical
	perSecond int64
}{
	"time-millis": {kindInt, clock, 1e3}, "time-micros": {kindLong, clock, 1e6},
	"timestamp-millis": {kindLong, timestamp, 1e3}, "timestamp-micros": {kindLong, timestamp, 1e6},
	"timestamp-nanos":        {kindLong, timestamp, 1e9},
	"local-timestamp-millis": {kindLong, local, 1e3}, "local-timestamp-micros": {kindLong, local, 1e6},
	"local-timestamp-nanos": {kindLong, local, 1e9},
}

// annotate takes a type's logical type, when it fits.
func (t *schemaType) annotate(v jsonvalue.Value) {
	l := v.Get("logicalType")
	if l.Kind() != jsonvalue.String {
		return
	}
	name := string(l.Text())
	if at, ok := times[name]; ok && at.on == t.kind {
		t.logical, t.perSecond = at.logical, at.perSecond
		return
	}
	switch {
	case name == "decimal" && (t.kind == kindBytes || t.kind == kindFixed):
		precision, ok := whole(v.Get("precision"))
		scale, has := whole(v.Get("scale"))
		if !has && v.Get("scale").Kind() != 0 || !ok || precision < 1 || scale > precision || scale > jsonvalue.MaxScale {
			return
		}
		if t.kind == kindFixed && t.size == 0 || precision > 2*jsonvalue.MaxDecimalBytes {
			return
		}
		t.logical, t.precision, t.scale = decimal, precision, scale
		t.words = fmt.Sprintf("decimal(%d,%d)", precision, scale)
	case name == "date" && t.kind == kindInt:
		t.logical = date
	case name == "uuid" && (t.kind == kindString || t.kind == kindFixed && t.size == 16):
		t.logical = uuid
	case name == "duration" && t.kind == kindFixed && t.size == 12:
		t.logical = duration
	}
}
