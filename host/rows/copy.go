package rows

import "fmt"

// AppendRow adds a row of another table: columns[i] is the column of from that column i of t takes, or -1 for null; nil
// takes the columns as they stand. Types must hold the same data, but integers and floats may become wider. An error is a
// *sink.Misfit where only this row does not fit, and the table is as before.
func (t *Table) AppendRow(from *Table, row int, columns []int) error {
	if t.n == t.cap {
		t.grow(0)
	}
	if columns == nil && len(from.root.cols) != len(t.root.cols) || columns != nil && len(columns) != len(t.root.cols) {
		return fmt.Errorf("copy a row of %d columns into one of %d, with %d assigned", len(from.root.cols), len(t.root.cols), len(columns))
	}
	for i, to := range t.root.cols {
		c := i
		if columns != nil {
			c = columns[i]
		}
		if c < 0 {
			if to.Type.Required {
				t.path = t.path[:0]
				t.outwards(to, step{name: t.schema.columns[i].Name})
				return t.misfit(nil, failure{code: missing})
			}
			to.setNull(t.n)
			continue
		}
		v := from.root.cols[c]
		if !takes(&to.Type, &v.Type) {
			return fmt.Errorf("copy a row: column %s is %s, and %s is %s", t.schema.columns[i].Name, &to.Type, from.schema.columns[c].Name, &v.Type)
		}
		t.path, t.failed = t.path[:0], nil
		if fail := t.copySlot(to, t.n, v, row); fail.code != fits {
			t.outwards(to, step{name: t.schema.columns[i].Name})
			return t.misfit(nil, fail)
		}
	}
	t.n++
	return nil
}

// takes reports whether a column of one type can hold the values of another.
func takes(to, from *Type) bool {
	switch to.Kind {
	case Int16, Int32, Int64:
		return from.Kind == to.Kind || from.Kind == Int8 || from.Kind == Int16 && to.Kind != Int16 || from.Kind == Int32 && to.Kind == Int64
	case Double:
		return from.Kind == Double || from.Kind == Float
	case Decimal:
		return from.Kind == Decimal && from.Scale == to.Scale && from.Precision <= to.Precision
	}
	if to.Kind != from.Kind {
		return false
	}
	switch to.Kind {
	case List:
		return takes(to.Elem, from.Elem)
	case Map:
		return takes(to.Key, from.Key) && takes(to.Elem, from.Elem)
	case Struct:
		if len(to.Fields) != len(from.Fields) {
			return false
		}
		for i := range to.Fields {
			if to.Fields[i].Name != from.Fields[i].Name || !takes(&to.Fields[i].Type, &from.Fields[i].Type) {
				return false
			}
		}
	}
	return true
}

// copySlot copies slot i of from to slot n of to.
func (t *Table) copySlot(to *Vector, n int, from *Vector, i int) failure {
	if from.Valid[i] == 0 {
		if to.Type.Required {
			return failure{code: missing}
		}
		to.setNull(n)
		return failure{}
	}
	to.Valid[n] = 1
	switch to.store {
	case inBools:
		to.Bools[n] = from.Bools[i]
	case inI32, inI64, inWide:
		to.copyNumber(n, from, i)
	case inF32:
		to.F32[n] = from.F32[i]
	case inF64:
		if from.store == inF32 {
			to.F64[n] = float64(from.F32[i])
		} else {
			to.F64[n] = from.F64[i]
		}
	case inData:
		if err := to.SetBytes(n, from.Bytes(i)); err != nil {
			return failure{code: tooLong}
		}
	case inFields:
		for f, c := range to.Children {
			if fail := t.copySlot(c, n, from.Children[f], i); fail.code != fits {
				t.outwards(c, step{name: to.Type.Fields[f].Name})
				return fail
			}
		}
	case inSpans:
		return t.copySpan(to, n, from, i)
	}
	return failure{}
}

// copyNumber copies what may be stored in a wider form.
func (v *Vector) copyNumber(n int, from *Vector, i int) {
	if v.store == from.store {
		switch v.store {
		case inI32:
			v.I32[n] = from.I32[i]
		case inI64:
			v.I64[n] = from.I64[i]
		default:
			v.Wide[n] = from.Wide[i]
		}
		return
	}
	if v.Type.Kind == Decimal {
		v.setUnscaled(n, from.Unscaled(i))
		return
	}
	v.I64[n] = int64(from.I32[i])
}

func (t *Table) copySpan(to *Vector, n int, from *Vector, i int) failure {
	start := int(to.Ends[n])
	a, b := from.Span(i)
	if start+b-a > maxData {
		return failure{code: tooLong}
	}
	for c, child := range to.Children {
		child.Reserve(start + b - a)
		for k := range b - a {
			if fail := t.copySlot(child, start+k, from.Children[c], a+k); fail.code != fits {
				t.outwards(child, step{at: k, kind: List})
				return fail
			}
		}
	}
	to.Ends[n+1] = uint32(start + b - a)
	return failure{}
}

// AppendValues adds a row of one value for each column. A nested column takes null only. An error is a *sink.Misfit where
// only this row does not fit, and the table is as before.
func (t *Table) AppendValues(values []Value) error {
	if t.n == t.cap {
		t.grow(0)
	}
	if len(values) != len(t.root.cols) {
		return fmt.Errorf("%d values for %d columns", len(values), len(t.root.cols))
	}
	for i, v := range t.root.cols {
		x := &values[i]
		if !x.Null && v.Type.Kind.Nested() {
			return fmt.Errorf("a single value for column %s, which is %s", t.schema.columns[i].Name, v.Type)
		}
		t.path, t.failed = t.path[:0], nil
		if fail := v.setValue(t.n, x); fail.code != fits {
			t.outwards(v, step{name: t.schema.columns[i].Name})
			m := t.misfit(nil, fail)
			if fail.code == outOfRange {
				m.Reason += ": " + excerpt(x.AppendJSON(nil, v.Type), 0) + " for " + v.Type.brief()
			}
			return m
		}
	}
	t.n++
	return nil
}

// SetValue sets slot i of a vector that is not nested. The slots are set in order, inside of Table.Extend.
func (v *Vector) SetValue(i int, x Value) error {
	if fail := v.setValue(i, &x); fail.code != fits {
		return fail.misfit()
	}
	return nil
}

func (v *Vector) setValue(n int, x *Value) failure {
	if x.Null {
		if v.Type.Required {
			return failure{code: missing}
		}
		v.setNull(n)
		return failure{}
	}
	if !v.Type.holds(x) {
		return failure{code: outOfRange}
	}
	v.Valid[n] = 1
	if v.Type.Kind == Decimal {
		v.setUnscaled(n, x.Wide)
		return failure{}
	}
	switch v.store {
	case inBools:
		v.Bools[n] = uint8(x.Int)
	case inI32:
		v.I32[n] = int32(x.Int)
	case inI64:
		v.I64[n] = x.Int
	case inF32:
		v.F32[n] = float32(x.Float)
	case inF64:
		v.F64[n] = x.Float
	case inData:
		if v.SetBytes(n, x.Bytes) != nil {
			return failure{code: tooLong}
		}
	}
	return failure{}
}
