package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

// maxSteps bounds the values that one document may stand for: defaults of a hostile schema could multiply without bytes.
const maxSteps = 4 << 20

// Encoder turns documents into payloads of one schema. It is for one goroutine.
type Encoder struct {
	schema *Schema
	dst    []byte
	steps  int
	limit  int
	slots  []jsonvalue.Value // members by field, of the records that are open
}

// NewEncoder returns an encoder.
func (s *Schema) NewEncoder() *Encoder { return &Encoder{schema: s} }

// Append appends the payload of a document. What does not fit is a *sink.Misfit.
func (e *Encoder) Append(dst []byte, v jsonvalue.Value) ([]byte, error) {
	e.dst, e.steps, e.limit, e.slots = dst, 0, len(dst)+jsonvalue.MaxBytes, e.slots[:0]
	err := e.value(e.schema.root, v, 0)
	out := e.dst
	e.dst = nil
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (e *Encoder) long(n int64) { e.dst = binary.AppendVarint(e.dst, n) }

func (e *Encoder) sized(b []byte) {
	e.long(int64(len(b)))
	e.dst = append(e.dst, b...)
}

func (e *Encoder) value(t *schemaType, v jsonvalue.Value, depth int) error {
	if e.steps++; depth > maxDepth || e.steps > maxSteps || len(e.dst) > e.limit {
		return &sink.Misfit{Code: "length", Reason: "the value nests too deep or takes too many bytes for its schema"}
	}
	switch t.kind {
	case kindUnion:
		return e.union(t, v, depth)
	case kindNull:
		if !v.IsNull() {
			return jsonvalue.Wrong(v, "null")
		}
		return nil
	}
	if v.Kind() == 0 {
		return &sink.Misfit{Code: "missing", Reason: "the value is missing, and the schema has neither a default nor null for it"}
	}
	switch t.kind {
	case kindBoolean:
		b, err := jsonvalue.Boolean(v, "boolean")
		if err != nil {
			return err
		}
		e.dst = append(e.dst, 0)
		if b {
			e.dst[len(e.dst)-1] = 1
		}
		return nil
	case kindInt, kindLong:
		return e.integer(t, v)
	case kindFloat:
		f, err := jsonvalue.Float(v, 32, "float")
		if err != nil {
			return err
		}
		e.dst = binary.LittleEndian.AppendUint32(e.dst, math.Float32bits(float32(f)))
		return nil
	case kindDouble:
		f, err := jsonvalue.Float(v, 64, "double")
		if err != nil {
			return err
		}
		e.dst = binary.LittleEndian.AppendUint64(e.dst, math.Float64bits(f))
		return nil
	case kindString:
		text, err := jsonvalue.Text(v, "string")
		if err != nil {
			return err
		}
		e.sized(text)
		return nil
	case kindEnum:
		n, ok := 0, false
		if v.Kind() == jsonvalue.String {
			n, ok = t.ordinals[string(v.Text())]
		}
		if !ok {
			return jsonvalue.OutOfRange(v, "enum "+t.name)
		}
		e.long(int64(n))
		return nil
	case kindBytes, kindFixed:
		return e.binary(t, v)
	case kindRecord:
		return e.record(t, v, depth)
	}
	return e.blocks(t, v, depth)
}

func (e *Encoder) integer(t *schemaType, v jsonvalue.Value) error {
	lo, hi, of := int64(math.MinInt64), int64(math.MaxInt64), "long"
	if t.kind == kindInt {
		lo, hi, of = math.MinInt32, math.MaxInt32, "int"
	}
	var n int64
	var err error
	switch t.logical {
	case date:
		n, err = jsonvalue.Date(v, "date")
	case clock:
		if n, err = jsonvalue.Clock(v, "a time of day"); err == nil {
			n, err = jsonvalue.Units(v, 0, n, t.perSecond, "a time of day")
		}
	case timestamp, local:
		var sec, nanos int64
		if sec, nanos, err = jsonvalue.Time(v, t.logical == timestamp, "timestamp"); err == nil {
			n, err = jsonvalue.Units(v, sec, nanos, t.perSecond, "timestamp")
		}
	default:
		n, err = jsonvalue.Int(v, lo, hi, of)
	}
	if err == nil {
		e.long(n)
	}
	return err
}

func (e *Encoder) binary(t *schemaType, v jsonvalue.Value) error {
	var b []byte
	var err error
	switch t.logical {
	case decimal:
		var x *big.Int
		if x, err = jsonvalue.Decimal(v, t.scale, t.precision, t.words); err == nil {
			b, err = twos(x, t, v)
		}
	case uuid:
		b, err = jsonvalue.UUID(nil, v, "uuid")
	case duration:
		b, err = durationOf(v)
	default:
		if b, err = jsonvalue.Bytes(nil, v, "bytes"); err == nil && t.kind == kindFixed && len(b) != t.size {
			err = &sink.Misfit{Code: "length", Reason: fmt.Sprintf("%d bytes for fixed %s of %d", len(b), t.name, t.size)}
		}
	}
	if err != nil {
		return err
	}
	if t.kind == kindFixed {
		e.dst = append(e.dst, b...)
	} else {
		e.sized(b)
	}
	return nil
}

// twos writes an integer in big-endian two's complement: in the fewest bytes, or as many as a fixed has.
func twos(x *big.Int, t *schemaType, v jsonvalue.Value) ([]byte, error) {
	size := x.BitLen()/8 + 1
	if x.Sign() < 0 {
		size = new(big.Int).Not(x).BitLen()/8 + 1
	}
	if t.kind == kindFixed {
		if size > t.size {
			return nil, jsonvalue.OutOfRange(v, t.words)
		}
		size = t.size
	}
	if x.Sign() < 0 {
		x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return x.FillBytes(make([]byte, size)), nil
}

func durationOf(v jsonvalue.Value) ([]byte, error) {
	if v.Kind() != jsonvalue.Object {
		return nil, jsonvalue.Wrong(v, "duration")
	}
	var b []byte
	for _, name := range []string{"months", "days", "millis"} {
		n, err := jsonvalue.Uint(v.Get(name), math.MaxUint32, "duration")
		if err != nil {
			return nil, inColumn(name, err)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b, nil
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

func (e *Encoder) record(t *schemaType, v jsonvalue.Value, depth int) error {
	if v.Kind() != jsonvalue.Object {
		return jsonvalue.Wrong(v, "record "+t.name)
	}
	base := len(e.slots)
	e.slots = append(e.slots, make([]jsonvalue.Value, len(t.fields))...)
	for m := v.First(); m.Kind() != 0; m = m.Next() {
		if i, ok := t.byName[string(m.Name())]; ok {
			e.slots[base+i] = m
		}
	}
	for i := range t.fields {
		f := &t.fields[i]
		var err error
		if m := e.slots[base+i]; m.Kind() == 0 && f.deflt.Kind() != 0 {
			err = e.deflt(f.typ, f.deflt, depth+1)
		} else {
			err = e.value(f.typ, m, depth+1)
		}
		if err != nil {
			return inColumn(f.name, err)
		}
	}
	e.slots = e.slots[:base]
	return nil
}

func (e *Encoder) union(t *schemaType, v jsonvalue.Value, depth int) error {
	if v.IsNull() {
		if t.nullAt < 0 {
			if v.Kind() == 0 {
				return &sink.Misfit{Code: "missing", Reason: "the value is missing, and the schema has neither a default nor null for it"}
			}
			return jsonvalue.Wrong(v, "a union without null")
		}
		e.long(int64(t.nullAt))
		return nil
	}
	if t.other >= 0 {
		e.long(int64(t.other))
		return e.value(t.branches[t.other], v, depth+1)
	}
	if v.Kind() == jsonvalue.Object {
		if m := v.First(); m.Kind() != 0 && m.Next().Kind() == 0 {
			for i, b := range t.branches {
				if b.name == string(m.Name()) {
					e.long(int64(i))
					return e.value(b, m, depth+1)
				}
			}
		}
	}
	return &sink.Misfit{Code: "type", Reason: `a union of several types takes {"branch": value}, with the name of one of its branches`}
}

func (e *Encoder) blocks(t *schemaType, v jsonvalue.Value, depth int) error {
	want, of := jsonvalue.Array, "array"
	if t.kind == kindMap {
		want, of = jsonvalue.Object, "map"
	}
	if v.Kind() != want {
		return jsonvalue.Wrong(v, of)
	}
	if n := v.Len(); n > 0 {
		e.long(int64(n))
		for m := v.First(); m.Kind() != 0; m = m.Next() {
			if t.kind == kindMap {
				e.sized(m.Name())
			}
			if err := e.value(t.elem, m, depth+1); err != nil {
				return err
			}
		}
	}
	e.long(0)
	return nil
}
