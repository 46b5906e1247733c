package rows

import "math"

// Vector holds one column of a Table, one slot a row; the slot of a null holds nothing of meaning. Which slice is used
// depends on the column's type. Vectors are for reading only and valid until the table is next changed.
type Vector struct {
	Type  Type
	Valid []uint8     // 0 null, 1 a value
	Bools []uint8     // Boolean: 0 or 1
	I32   []int32     // Int32, Date; Decimal up to 9 digits
	I64   []int64     // Int64, Timestamp; Decimal of 10 to 18 digits
	F32   []float32   // Float
	F64   []float64   // Double
	Wide  []Int128    // Decimal of more than 18 digits
	Ends  []uint32    // String, Binary: row i is Data[Ends[i]:Ends[i+1]]
	Data  []byte      // String, Binary
	seen  uint64      // the last append that set a slot
	last  int         // where its value lies in the input, for an object in which a value does not fit
	store storage     // which slice is used
	key   keyPattern  // the key as it is expected in the input
	limit decimalCaps // for decimals
	day   lastDay     // for timestamps
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
)

// Bytes returns the bytes of row i of a String or Binary column.
func (v *Vector) Bytes(i int) []byte { return v.Data[v.Ends[i]:v.Ends[i+1]] }

// Table holds rows of one schema by column. It is not safe for concurrent use.
type Table struct {
	schema *Schema
	cols   []Vector
	names  map[string]int
	n, cap int
	fixed  int64 // bytes of one row's slots
	gen    uint64
	text   []byte // an unescaped key or number
}

// maxData bounds a column's bytes in one table, which Ends can address.
const maxData = math.MaxUint32

// NewTable returns an empty table.
func NewTable(s *Schema) *Table {
	t := &Table{schema: s, cols: make([]Vector, s.Len()), names: s.index}
	for i := range t.cols {
		c := &t.cols[i]
		c.Type = s.columns[i].Type
		c.store = storageOf(c.Type)
		c.limit = capsOf(c.Type)
		c.key = patternOf(s.columns[i].Name)
		t.fixed += slotSize[c.store] + 1
		if c.store == inData {
			c.Ends = make([]uint32, 1)
		}
	}
	return t
}

var slotSize = [...]int64{inBools: 1, inI32: 4, inI64: 8, inF32: 4, inF64: 8, inWide: 16, inData: 4}

func storageOf(t Type) storage {
	switch t.Kind {
	case Boolean:
		return inBools
	case Int32, Date:
		return inI32
	case Int64, Timestamp:
		return inI64
	case Float:
		return inF32
	case Double:
		return inF64
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

// Schema returns the table's schema.
func (t *Table) Schema() *Schema { return t.schema }

// Len returns the number of rows.
func (t *Table) Len() int { return t.n }

// Bytes returns the size of the rows in memory.
func (t *Table) Bytes() int64 {
	size := int64(t.n) * t.fixed
	for i := range t.cols {
		if c := &t.cols[i]; c.store == inData {
			size += int64(c.Ends[t.n])
		}
	}
	return size
}

// RowBytes returns the size of row i in memory.
func (t *Table) RowBytes(i int) int64 {
	size := t.fixed
	for c := range t.cols {
		if v := &t.cols[c]; v.store == inData {
			size += int64(v.Ends[i+1] - v.Ends[i])
		}
	}
	return size
}

// Column returns column i.
func (t *Table) Column(i int) *Vector { return &t.cols[i] }

// Reset forgets all rows and keeps the memory.
func (t *Table) Reset() { t.Truncate(0) }

// Truncate forgets all rows from the n-th on.
func (t *Table) Truncate(n int) {
	if n >= t.n {
		return
	}
	t.n = n
	for i := range t.cols {
		if c := &t.cols[i]; c.store == inData {
			c.Data = c.Data[:c.Ends[n]]
		}
	}
}

func (t *Table) grow() {
	t.cap = max(64, t.cap*2)
	for i := range t.cols {
		c := &t.cols[i]
		c.Valid = resize(c.Valid, t.cap)
		switch c.store {
		case inBools:
			c.Bools = resize(c.Bools, t.cap)
		case inI32:
			c.I32 = resize(c.I32, t.cap)
		case inI64:
			c.I64 = resize(c.I64, t.cap)
		case inF32:
			c.F32 = resize(c.F32, t.cap)
		case inF64:
			c.F64 = resize(c.F64, t.cap)
		case inWide:
			c.Wide = resize(c.Wide, t.cap)
		case inData:
			c.Ends = resize(c.Ends, t.cap+1)
		}
	}
}

func resize[T any](s []T, n int) []T {
	out := make([]T, n)
	copy(out, s)
	return out
}

// Append adds the row that a JSON object stands for. An error is a *sink.Misfit, and the table is as before.
func (t *Table) Append(object []byte) error {
	if t.n == t.cap {
		t.grow()
	}
	t.gen++
	col, fail := t.parse(object)
	if fail.code != fits {
		return t.misfit(object, col, fail)
	}
	t.n++
	return nil
}
