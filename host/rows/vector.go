package rows

import "math"

// Vector holds one column of a Table, or what a nested column holds, by slots: one a row at the top. The slot of a null
// holds nothing of meaning. Which slice is used depends on the type. Vectors are for reading only, but inside of
// Table.Extend, and valid until the table is next changed.
type Vector struct {
	Type  Type
	Valid []uint8   // 0 null, 1 a value
	Bools []uint8   // Boolean: 0 or 1
	I32   []int32   // Int8, Int16, Int32, Date; Decimal up to 9 digits
	I64   []int64   // Int64, Timestamp, TimestampNTZ; Decimal of 10 to 18 digits
	F32   []float32 // Float
	F64   []float64 // Double
	Wide  []Int128  // Decimal of more than 18 digits
	Ends  []uint32  // String, Binary: slot i is Data[Ends[i]:Ends[i+1]]; List, Map: slots Ends[i]:Ends[i+1] of the children
	Data  []byte    // String, Binary
	// Children are, of a Struct, its fields, each with the struct's own slots; of a List, its elements; of a Map, its keys
	// and its values.
	Children []*Vector
	seen     uint64      // the last object that set a slot
	last     int         // where its value lies in the input, for an object in which a value does not fit
	store    storage     // which slice is used
	key      keyPattern  // the key as it is expected in the input
	limit    decimalCaps // for decimals
	day      lastDay     // for timestamps
	record   *record     // Struct: the fields
}

// Int128 is a two's complement number of 128 bits.
type Int128 struct {
	Hi int64
	Lo uint64
}

type storage uint8

const (
	inBools storage = iota
	inI32
	inI64
	inF32
	inF64
	inWide
	inData
	inFields
	inSpans
)

var slotSize = [...]int64{inBools: 1, inI32: 4, inI64: 8, inF32: 4, inF64: 8, inWide: 16, inData: 4, inFields: 0, inSpans: 4}

func storageOf(t Type) storage {
	switch t.Kind {
	case Boolean:
		return inBools
	case Int8, Int16, Int32, Date:
		return inI32
	case Int64, Timestamp, TimestampNTZ:
		return inI64
	case Float:
		return inF32
	case Double:
		return inF64
	case Struct:
		return inFields
	case List, Map:
		return inSpans
	case Decimal:
		switch {
		case t.Precision <= 9:
			return inI32
		case t.Precision <= 18:
			return inI64
		}
		return inWide
	}
	return inData
}

// maxData bounds what Ends can address: a column's bytes, or the elements of its lists, in one table.
const maxData = math.MaxUint32

// init makes an empty vector of a type that NewSchema has checked.
func (v *Vector) init(t Type) {
	v.Type = t
	v.store = storageOf(t)
	v.limit = capsOf(t)
	switch t.Kind {
	case String, Binary, List, Map:
		v.Ends = make([]uint32, 1)
	}
	switch t.Kind {
	case Struct:
		v.record = newRecord(t.Fields, indexOf(t.Fields))
		v.Children = v.record.cols
	case List:
		v.Children = newVectors(*t.Elem)
	case Map:
		key := *t.Key
		key.Required = true
		v.Children = newVectors(key, *t.Elem)
	}
}

func newVectors(types ...Type) []*Vector {
	block := make([]Vector, len(types))
	out := make([]*Vector, len(types))
	for i := range types {
		block[i].init(types[i])
		out[i] = &block[i]
	}
	return out
}

// record is what an object fills: the columns of a table or the fields of a struct.
type record struct {
	columns []Column
	cols    []*Vector
	names   map[string]int
}

func newRecord(columns []Column, names map[string]int) *record {
	types := make([]Type, len(columns))
	for i, c := range columns {
		types[i] = c.Type
	}
	r := &record{columns: columns, cols: newVectors(types...), names: names}
	for i, c := range columns {
		r.cols[i].key = patternOf(c.Name)
	}
	return r
}

// Bytes returns the bytes of slot i of a String or Binary column.
func (v *Vector) Bytes(i int) []byte { return v.Data[v.Ends[i]:v.Ends[i+1]] }

// Span returns the slots of the children that slot i of a List or Map holds.
func (v *Vector) Span(i int) (from, to int) { return int(v.Ends[i]), int(v.Ends[i+1]) }

// Reserve makes room for n slots in all, inside of Table.Extend, which does it for the columns of the table itself.
func (v *Vector) Reserve(n int) {
	if n > len(v.Valid) {
		v.grow(max(n, 64, 2*len(v.Valid)))
	}
}

// grow makes room for n slots, also in the fields of a struct.
func (v *Vector) grow(n int) {
	v.Valid = resize(v.Valid, n)
	switch v.store {
	case inBools:
		v.Bools = resize(v.Bools, n)
	case inI32:
		v.I32 = resize(v.I32, n)
	case inI64:
		v.I64 = resize(v.I64, n)
	case inF32:
		v.F32 = resize(v.F32, n)
	case inF64:
		v.F64 = resize(v.F64, n)
	case inWide:
		v.Wide = resize(v.Wide, n)
	case inData, inSpans:
		v.Ends = resize(v.Ends, n+1)
	case inFields:
		for _, c := range v.Children {
			c.grow(n)
		}
	}
}

func resize[T any](s []T, n int) []T {
	out := make([]T, n)
	copy(out, s)
	return out
}

// truncate forgets all slots from the n-th on.
func (v *Vector) truncate(n int) {
	switch v.store {
	case inData:
		v.Data = v.Data[:v.Ends[n]]
	case inFields:
		for _, c := range v.Children {
			c.truncate(n)
		}
	case inSpans:
		for _, c := range v.Children {
			c.truncate(int(v.Ends[n]))
		}
	}
}

// fixed returns the bytes that each slot takes, whatever it holds.
func (v *Vector) fixed() int64 {
	size := slotSize[v.store] + 1
	if v.store == inFields {
		for _, c := range v.Children {
			size += c.fixed()
		}
	}
	return size
}

// varies reports whether slots take more than fixed bytes.
func (v *Vector) varies() bool {
	if v.store == inFields {
		for _, c := range v.Children {
			if c.varies() {
				return true
			}
		}
	}
	return v.store == inData || v.store == inSpans
}

// extra returns the bytes that the slots take beyond the fixed ones.
func (v *Vector) extra(from, to int) int64 {
	var size int64
	switch v.store {
	case inData:
		return int64(v.Ends[to] - v.Ends[from])
	case inFields:
		for _, c := range v.Children {
			size += c.extra(from, to)
		}
	case inSpans:
		a, b := int(v.Ends[from]), int(v.Ends[to])
		for _, c := range v.Children {
			size += c.fixed()*int64(b-a) + c.extra(a, b)
		}
	}
	return size
}

func (v *Vector) setNull(n int) {
	v.Valid[n] = 0
	switch v.store {
	case inData:
		v.Ends[n+1] = v.Ends[n]
		v.Data = v.Data[:v.Ends[n]]
	case inSpans:
		v.Ends[n+1] = v.Ends[n]
	case inFields:
		for _, c := range v.Children {
			c.setNull(n)
		}
	}
}

// SetNull makes slot i null, also in what it holds. The slots of a column are set in order, inside of Table.Extend.
func (v *Vector) SetNull(i int) { v.setNull(i) }

// SetBytes sets slot i of a String, which the caller has checked to be UTF-8, or of a Binary. The slots are set in order,
// inside of Table.Extend.
func (v *Vector) SetBytes(i int, b []byte) error {
	start := v.Ends[i]
	if int64(start)+int64(len(b)) > maxData {
		return failure{code: tooLong}.misfit()
	}
	v.Valid[i] = 1
	v.Data = append(v.Data[:start], b...)
	v.Ends[i+1] = uint32(len(v.Data))
	return nil
}

// SetUnscaled sets slot i of a Decimal to x divided by ten to the power of its scale. x has at most its digits.
func (v *Vector) SetUnscaled(i int, x Int128) {
	v.Valid[i] = 1
	v.setUnscaled(i, x)
}
