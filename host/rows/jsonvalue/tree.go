package jsonvalue

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wasmill/wasmill/host/sink"
)

// MaxDepth is how deep arrays and objects may nest in a document, and values in what decoders read.
const MaxDepth = 256

// MaxBytes is the most that a decoder makes of one payload, and an encoder of one document: the size of the largest record.
const MaxBytes = 16 << 20

// ErrTooLarge says that a value takes more than MaxBytes.
var ErrTooLarge = errors.New("the value takes more than " + strconv.Itoa(MaxBytes) + " bytes")

// Kind is the kind of a JSON value.
type Kind byte

// The kinds.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// Doc is a parsed JSON text. It keeps its memory for the next one; a Value is good until then.
type Doc struct {
	nodes []node
	text  []byte
	in    bytes.Buffer
	dec   *jsontext.Decoder
}

type node struct {
	kind        Kind
	from, to    int // of the text
	nameTo      int // the name lies in text before it, from nameFrom
	nameFrom    int
	first, next int32
}

const none = -1

// Value is one value of a Doc. The zero Value is none: Kind is 0.
type Value struct {
	doc *Doc
	at  int32
}

// Parse reads one JSON text. What is wrong with it is a *sink.Misfit.
func (d *Doc) Parse(text []byte) (Value, error) {
	d.nodes, d.text = d.nodes[:0], d.text[:0]
	d.in.Reset()
	d.in.Write(text)
	if d.dec == nil {
		d.dec = jsontext.NewDecoder(&d.in, jsontext.AllowDuplicateNames(true))
	} else {
		d.dec.Reset(&d.in, jsontext.AllowDuplicateNames(true))
	}
	root, err := d.value(0)
	if err == nil {
		if _, err = d.dec.ReadToken(); errors.Is(err, io.EOF) {
			return Value{d, root}, nil
		}
		if err == nil {
			err = errors.New("more follows")
		}
	}
	return Value{}, notJSON(err)
}

func notJSON(err error) error {
	reason := "the value is not well-formed JSON"
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) {
		reason += ", at byte " + strconv.FormatInt(at.ByteOffset, 10)
	}
	if errors.Is(err, errDeep) {
		reason = errDeep.Error()
	}
	return &sink.Misfit{Code: "not_json", Reason: reason}
}

var errDeep = errors.New("arrays and objects nest deeper than " + strconv.Itoa(MaxDepth) + " levels")

func (d *Doc) value(depth int) (int32, error) {
	if depth > MaxDepth {
		return none, errDeep
	}
	switch d.dec.PeekKind() {
	case '{':
		return d.container(Object, depth)
	case '[':
		return d.container(Array, depth)
	}
	raw, err := d.dec.ReadValue()
	if err != nil {
		return none, err
	}
	n := node{from: len(d.text), first: none, next: none}
	switch raw[0] {
	case 'n':
		n.kind = Null
	case 't', 'f':
		n.kind = Bool
	case '"':
		n.kind = String
	default:
		n.kind = Number
	}
	if err := d.keep(n.kind == String, raw); err != nil {
		return none, err
	}
	n.to = len(d.text)
	d.nodes = append(d.nodes, n)
	return int32(len(d.nodes) - 1), nil
}

// keep copies a scalar's text, a string without quotes and escapes.
func (d *Doc) keep(quoted bool, raw []byte) error {
	if !quoted {
		d.text = append(d.text, raw...)
		return nil
	}
	var err error
	d.text, err = jsontext.AppendUnquote(d.text, raw)
	return err
}

func (d *Doc) container(kind Kind, depth int) (int32, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return none, err
	}
	me := int32(len(d.nodes))
	d.nodes = append(d.nodes, node{kind: kind, first: none, next: none})
	last := int32(none)
	for {
		if k := d.dec.PeekKind(); k == '}' || k == ']' {
			_, err := d.dec.ReadToken()
			return me, err
		}
		nameFrom := len(d.text)
		if kind == Object {
			raw, err := d.dec.ReadValue()
			if err != nil {
				return none, err
			}
			if err := d.keep(true, raw); err != nil {
				return none, err
			}
		}
		nameTo := len(d.text)
		child, err := d.value(depth + 1)
		if err != nil {
			return none, err
		}
		d.nodes[child].nameFrom, d.nodes[child].nameTo = nameFrom, nameTo
		if last == none {
			d.nodes[me].first = child
		} else {
			d.nodes[last].next = child
		}
		last = child
	}
}

func (v Value) node() *node { return &v.doc.nodes[v.at] }

// Kind returns the kind of the value, 0 of none.
func (v Value) Kind() Kind {
	if v.doc == nil {
		return 0
	}
	return v.node().kind
}

// IsNull reports whether the value is null or none.
func (v Value) IsNull() bool { return v.doc == nil || v.node().kind == Null }

// Text returns a string's text without quotes and escapes, a number, true, false or null as it is written.
func (v Value) Text() []byte {
	n := v.node()
	return v.doc.text[n.from:n.to]
}

// Name returns the key of an object's member.
func (v Value) Name() []byte {
	n := v.node()
	return v.doc.text[n.nameFrom:n.nameTo]
}

// First returns the first member or element, none when there is none.
func (v Value) First() Value { return v.other(v.node().first) }

// Next returns the value after this one in its array or object, none after the last.
func (v Value) Next() Value { return v.other(v.node().next) }

func (v Value) other(at int32) Value {
	if at == none {
		return Value{}
	}
	return Value{v.doc, at}
}

// Get returns the last member of an object with that key, none when there is none.
func (v Value) Get(name string) Value {
	var found Value
	for m := v.First(); m.Kind() != 0; m = m.Next() {
		if string(m.Name()) == name {
			found = m
		}
	}
	return found
}

// Len counts the members or elements.
func (v Value) Len() int {
	n := 0
	for m := v.First(); m.Kind() != 0; m = m.Next() {
		n++
	}
	return n
}

// AsText returns the name of a member as a text value of its own.
func (v Value) AsText() Value {
	n := v.node()
	v.doc.nodes = append(v.doc.nodes, node{kind: String, from: n.nameFrom, to: n.nameTo, first: none, next: none})
	return Value{v.doc, int32(len(v.doc.nodes) - 1)}
}
