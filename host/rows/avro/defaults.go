package avro

import (
	"fmt"
	"math"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

// deflt writes a field's default, which stands in the schema in Avro's own form: bytes as text whose characters are the
// bytes, logical types as what they stand on, a union as a value of one of its branches.
func (e *Encoder) deflt(t *schemaType, v jsonvalue.Value, depth int) error {
	if e.steps++; depth > maxDepth || e.steps > maxSteps || len(e.dst) > e.limit {
		return &sink.Misfit{Code: "length", Reason: "a default of the schema nests too deep or takes too many bytes"}
	}
	bad := &sink.Misfit{Code: "missing", Reason: "the value is missing, and the schema's default does not fit its type"}
	switch t.kind {
	case kindInt, kindLong:
		lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
		if t.kind == kindInt {
			lo, hi = math.MinInt32, math.MaxInt32
		}
		n, err := jsonvalue.Int(v, lo, hi, "a default")
		if err != nil {
			return bad
		}
		e.long(n)
		return nil
	case kindBytes, kindFixed:
		b, ok := latin(v)
		if !ok || t.kind == kindFixed && len(b) != t.size {
			return bad
		}
		if t.kind == kindBytes {
			e.long(int64(len(b)))
		}
		e.dst = append(e.dst, b...)
		return nil
	case kindUnion:
		return e.unionDefault(t, v, depth)
	case kindRecord:
		if v.Kind() != jsonvalue.Object {
			return bad
		}
		for i := range t.fields {
			f := &t.fields[i]
			m := v.Get(f.name)
			if m.Kind() == 0 {
				m = f.deflt
			}
			if m.Kind() == 0 {
				return bad
			}
			if err := e.deflt(f.typ, m, depth+1); err != nil {
				return inColumn(f.name, err)
			}
		}
		return nil
	case kindArray, kindMap:
		return e.defaults(t, v, depth, bad)
	}
	if v.Kind() == 0 || e.value(t, v, depth+1) != nil {
		return bad
	}
	return nil
}

// latin returns the bytes that characters stand for.
func latin(v jsonvalue.Value) ([]byte, bool) {
	if v.Kind() != jsonvalue.String {
		return nil, false
	}
	var b []byte
	for _, r := range string(v.Text()) {
		if r > 0xff {
			return nil, false
		}
		b = append(b, byte(r))
	}
	return b, true
}

// unionDefault takes the first branch that the default fits; that is the first branch of all, but for schemas of later
// versions of the specification.
func (e *Encoder) unionDefault(t *schemaType, v jsonvalue.Value, depth int) error {
	at := len(e.dst)
	for i, b := range t.branches {
		if (b.kind == kindNull) != v.IsNull() {
			continue
		}
		e.dst = e.dst[:at]
		e.long(int64(i))
		if e.deflt(b, v, depth+1) == nil {
			return nil
		}
	}
	return &sink.Misfit{Code: "missing", Reason: fmt.Sprintf("the value is missing, and the schema's default fits none of %d branches", len(t.branches))}
}

func (e *Encoder) defaults(t *schemaType, v jsonvalue.Value, depth int, bad error) error {
	if t.kind == kindArray && v.Kind() != jsonvalue.Array || t.kind == kindMap && v.Kind() != jsonvalue.Object {
		return bad
	}
	if n := v.Len(); n > 0 {
		e.long(int64(n))
	}
	for m := v.First(); m.Kind() != 0; m = m.Next() {
		if t.kind == kindMap {
			e.sized(m.Name())
		}
		if err := e.deflt(t.elem, m, depth+1); err != nil {
			return err
		}
	}
	e.long(0)
	return nil
}
