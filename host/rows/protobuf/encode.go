package protobuf

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

// Append appends the payload of a document. What does not fit is a *sink.Misfit.
func (m Message) Append(dst []byte, v jsonvalue.Value) ([]byte, error) {
	e := m.s.encoders.Get().(*encoder)
	defer m.s.encoders.Put(e)
	e.dst, e.limit, e.members = dst, len(dst)+jsonvalue.MaxBytes, e.members[:0]
	err := e.message(m.m, v, 0)
	out := e.dst
	if e.dst = nil; cap(e.members) > maxIdle {
		e.members = nil
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

type encoder struct {
	dst     []byte
	limit   int
	members []jsonvalue.Value // by field, of the messages that are open
}

func (e *encoder) message(m *message, v jsonvalue.Value, depth int) error {
	if depth > maxDepth || len(e.dst) > e.limit {
		return &sink.Misfit{Code: "length", Reason: "the value nests too deep or takes too many bytes for its schema"}
	}
	if m.special != ordinary {
		return e.special(m, v, depth)
	}
	if v.Kind() != jsonvalue.Object {
		return jsonvalue.Wrong(v, "message "+string(m.name))
	}
	base := len(e.members)
	e.members = append(e.members, make([]jsonvalue.Value, len(m.fields))...)
	for c := v.First(); c.Kind() != 0; c = c.Next() {
		if f := m.byName[string(c.Name())]; f != nil {
			e.members[base+f.index] = c
		}
	}
	if err := m.oneOfEach(e.members[base:]); err != nil {
		return err
	}
	for _, f := range m.inOrder {
		if err := e.member(f, e.members[base+f.index], depth); err != nil {
			return inColumn(f.name, err)
		}
	}
	e.members = e.members[:base]
	return nil
}

// oneOfEach demands that no oneof has two members.
func (m *message) oneOfEach(members []jsonvalue.Value) error {
	if m.oneofs == 0 {
		return nil
	}
	set := make([]*field, m.oneofs)
	for _, f := range m.fields {
		if f.oneof < 0 || !f.isSet(members[f.index]) {
			continue
		}
		if other := set[f.oneof]; other != nil {
			return &sink.Misfit{Code: "type", Column: f.name, Reason: "another member of its oneof is set too: " + other.name}
		}
		set[f.oneof] = f
	}
	return nil
}

// isSet reports whether a member sets a field with presence. Null sets a google.protobuf.Value alone.
func (f *field) isSet(v jsonvalue.Value) bool {
	if v.Kind() == jsonvalue.Null {
		return f.msg != nil && f.msg.special == anyValue || f.enum != nil && f.enum.name == nullEnum
	}
	return v.Kind() != 0
}

func (e *encoder) member(f *field, v jsonvalue.Value, depth int) error {
	if v.Kind() == 0 || f.presence && !f.isSet(v) {
		if f.required {
			return &sink.Misfit{Code: "missing", Reason: "the value is missing, and the field is required"}
		}
		return nil
	}
	switch {
	case f.entry != nil:
		return e.table(f, v, depth)
	case f.list:
		return e.list(f, v, depth)
	case f.msg != nil:
		return e.nested(f, v, depth)
	}
	from := len(e.dst)
	e.dst = protowire.AppendTag(e.dst, f.number, wireOf(f.kind))
	at := len(e.dst)
	if err := e.scalar(f, v); err != nil {
		return err
	}
	if !f.presence && zero(f, e.dst[at:]) {
		e.dst = e.dst[:from]
	}
	return nil
}

// zero reports whether a written scalar is the default, which a field without presence leaves out. The default of text is
// a length of 0.
func zero(f *field, b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return wireOf(f.kind) != protowire.BytesType || len(b) == 1
}

// nested writes a message behind its length, or as a group.
func (e *encoder) nested(f *field, v jsonvalue.Value, depth int) error {
	e.dst = protowire.AppendTag(e.dst, f.number, wireOf(f.kind))
	if f.kind == protoreflect.GroupKind {
		if err := e.message(f.msg, v, depth+1); err != nil {
			return err
		}
		e.dst = protowire.AppendTag(e.dst, f.number, protowire.EndGroupType)
		return nil
	}
	return e.sized(func() error { return e.message(f.msg, v, depth+1) })
}

// sized writes what body writes behind its length.
func (e *encoder) sized(body func() error) error {
	at := len(e.dst)
	if err := body(); err != nil {
		return err
	}
	n := len(e.dst) - at
	size := protowire.SizeVarint(uint64(n))
	for range size {
		e.dst = append(e.dst, 0)
	}
	copy(e.dst[at+size:], e.dst[at:at+n])
	protowire.AppendVarint(e.dst[:at], uint64(n))
	return nil
}

func (e *encoder) list(f *field, v jsonvalue.Value, depth int) error {
	if v.Kind() != jsonvalue.Array {
		return jsonvalue.Wrong(v, "a repeated field")
	}
	if v.First().Kind() == 0 {
		return nil
	}
	if f.packed {
		e.dst = protowire.AppendTag(e.dst, f.number, protowire.BytesType)
		return e.sized(func() error {
			for c := v.First(); c.Kind() != 0; c = c.Next() {
				if err := e.scalar(f, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for c := v.First(); c.Kind() != 0; c = c.Next() {
		if err := e.one(f, c, depth); err != nil {
			return err
		}
	}
	return nil
}

// one writes a value with its tag, also a default.
func (e *encoder) one(f *field, v jsonvalue.Value, depth int) error {
	if f.msg != nil {
		return e.nested(f, v, depth)
	}
	e.dst = protowire.AppendTag(e.dst, f.number, wireOf(f.kind))
	return e.scalar(f, v)
}

func (e *encoder) table(f *field, v jsonvalue.Value, depth int) error {
	if v.Kind() != jsonvalue.Object {
		return jsonvalue.Wrong(v, "a map")
	}
	key, value := f.entry.fields[0], f.entry.fields[1]
	for c := v.First(); c.Kind() != 0; c = c.Next() {
		e.dst = protowire.AppendTag(e.dst, f.number, protowire.BytesType)
		err := e.sized(func() error {
			e.dst = protowire.AppendTag(e.dst, key.number, wireOf(key.kind))
			if err := e.scalar(key, c.AsText()); err != nil {
				return err
			}
			return e.one(value, c, depth)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) scalar(f *field, v jsonvalue.Value) error {
	switch wireOf(f.kind) {
	case protowire.VarintType:
		x, err := varintOf(f, v)
		if err == nil {
			e.dst = protowire.AppendVarint(e.dst, x)
		}
		return err
	case protowire.Fixed32Type:
		x, err := fixed32Of(f, v)
		if err == nil {
			e.dst = protowire.AppendFixed32(e.dst, x)
		}
		return err
	case protowire.Fixed64Type:
		x, err := fixed64Of(f, v)
		if err == nil {
			e.dst = protowire.AppendFixed64(e.dst, x)
		}
		return err
	}
	if f.kind == protoreflect.BytesKind {
		b, err := jsonvalue.Bytes(nil, v, "bytes")
		if err == nil {
			e.dst = protowire.AppendBytes(e.dst, b)
		}
		return err
	}
	text, err := jsonvalue.Text(v, "string")
	if err == nil {
		e.dst = protowire.AppendBytes(e.dst, text)
	}
	return err
}

func varintOf(f *field, v jsonvalue.Value) (uint64, error) {
	of := f.kind.String()
	switch f.kind {
	case protoreflect.BoolKind:
		b, err := jsonvalue.Boolean(v, of)
		return protowire.EncodeBool(b), err
	case protoreflect.EnumKind:
		return f.enum.number(v)
	case protoreflect.Uint32Kind:
		return jsonvalue.Uint(v, math.MaxUint32, of)
	case protoreflect.Uint64Kind:
		return jsonvalue.Uint(v, math.MaxUint64, of)
	}
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if f.kind == protoreflect.Int32Kind || f.kind == protoreflect.Sint32Kind {
		lo, hi = math.MinInt32, math.MaxInt32
	}
	n, err := jsonvalue.Int(v, lo, hi, of)
	if f.kind == protoreflect.Sint32Kind || f.kind == protoreflect.Sint64Kind {
		return protowire.EncodeZigZag(n), err
	}
	return uint64(n), err
}

func (e *enum) number(v jsonvalue.Value) (uint64, error) {
	of := "enum " + e.name
	switch v.Kind() {
	case jsonvalue.String:
		n, ok := e.byName[string(v.Text())]
		if !ok {
			return 0, jsonvalue.OutOfRange(v, of)
		}
		return uint64(int64(n)), nil
	case jsonvalue.Null:
		if e.name == nullEnum {
			return 0, nil
		}
	}
	n, err := jsonvalue.Int(v, math.MinInt32, math.MaxInt32, of)
	return uint64(n), err
}

func fixed32Of(f *field, v jsonvalue.Value) (uint32, error) {
	of := f.kind.String()
	switch f.kind {
	case protoreflect.FloatKind:
		x, err := jsonvalue.Float(v, 32, of)
		return math.Float32bits(float32(x)), err
	case protoreflect.Sfixed32Kind:
		n, err := jsonvalue.Int(v, math.MinInt32, math.MaxInt32, of)
		return uint32(n), err
	}
	n, err := jsonvalue.Uint(v, math.MaxUint32, of)
	return uint32(n), err
}

func fixed64Of(f *field, v jsonvalue.Value) (uint64, error) {
	of := f.kind.String()
	switch f.kind {
	case protoreflect.DoubleKind:
		x, err := jsonvalue.Float(v, 64, of)
		return math.Float64bits(x), err
	case protoreflect.Sfixed64Kind:
		n, err := jsonvalue.Int(v, math.MinInt64, math.MaxInt64, of)
		return uint64(n), err
	}
	return jsonvalue.Uint(v, math.MaxUint64, of)
}

// inColumn says in which field a misfit is.
func inColumn(name string, err error) error {
	m := (*sink.Misfit)(nil)
	if !errors.As(err, &m) || len(name)+len(m.Column) > maxPath {
		return err
	}
	if m.Column != "" {
		name += "." + m.Column
	}
	m.Column = name
	return m
}

func badDuration(v jsonvalue.Value) error {
	return &sink.Misfit{Code: "type", Reason: fmt.Sprintf("the text is not a duration, as in 1.5s: %.40q", v.Text())}
}
