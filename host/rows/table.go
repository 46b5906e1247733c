package rows

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/sink"
)

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

// parse fills the slots of row n. It returns the column that a failure is about, or -1.
func (t *Table) parse(b []byte) (int, failure) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return -1, failure{notObject, i}
	}
	set, next := 0, 0
	for open := byte('{'); ; open = ',' {
		// b[i] should be open, before a key.
		c := next
		if next < len(t.cols) && t.cols[next].key.matches(b, i, open) {
			i += t.cols[next].key.size
		} else {
			var fail failure
			if c, i, fail = t.member(b, i, open); fail.code != fits {
				return -1, fail
			}
			if c == atEnd {
				break
			}
		}
		var fail failure
		if c < 0 {
			i, fail = skipValue(b, i)
		} else {
			v := &t.cols[c]
			if v.seen != t.gen {
				v.seen = t.gen
				set++
			}
			next = c + 1
			i, fail = t.value(v, b, i)
		}
		if fail.code != fits {
			return c, fail
		}
	}
	if i = skipSpace(b, i); i != len(b) {
		return -1, failure{notJSON, i}
	}
	if set < len(t.cols) {
		t.fillMissing()
	}
	return -1, failure{}
}

func (t *Table) fillMissing() {
	for i := range t.cols {
		if c := &t.cols[i]; c.seen != t.gen {
			c.setNull(t.n)
		}
	}
}

func (v *Vector) setNull(n int) {
	v.Valid[n] = 0
	if v.store == inData {
		v.Ends[n+1] = v.Ends[n]
		v.Data = v.Data[:v.Ends[n]]
	}
}

// What member returns beside columns.
const (
	noColumn = -1
	atEnd    = -2
)

// member reads from what stands before a key to the value after it, or the object's closing brace.
func (t *Table) member(b []byte, i int, open byte) (col, after int, fail failure) {
	i = skipSpace(b, i)
	switch {
	case i >= len(b):
		return noColumn, i, failure{notJSON, i}
	case b[i] == '}' && open == ',':
		return atEnd, i + 1, failure{}
	case b[i] != open:
		return noColumn, i, failure{notJSON, i}
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' && open == '{' {
		return atEnd, i + 1, failure{}
	}
	if i >= len(b) || b[i] != '"' {
		return noColumn, i, failure{notJSON, i}
	}
	end, flags := scanString(b, i+1)
	if end < 0 {
		return noColumn, i, failure{notJSON, i}
	}
	name := b[i+1 : end]
	switch {
	case flags&hasEscape != 0:
		var ok bool
		if t.text, ok = unescape(t.text[:0], name); !ok {
			return noColumn, i, failure{badString, i}
		}
		name = t.text
	case flags&hasHigh != 0 && !utf8.Valid(name):
		return noColumn, i, failure{badString, i}
	}
	col = noColumn
	if c, ok := t.names[string(name)]; ok {
		col = c
	}
	i = skipSpace(b, end+1)
	if i >= len(b) || b[i] != ':' {
		return noColumn, i, failure{notJSON, i}
	}
	return col, skipSpace(b, i+1), failure{}
}

// value reads the value at i into slot n of v.
func (t *Table) value(v *Vector, b []byte, i int) (int, failure) {
	if i >= len(b) {
		return i, failure{notJSON, i}
	}
	n := t.n
	c := b[i]
	if c <= ' ' {
		if i = skipSpace(b, i); i >= len(b) {
			return i, failure{notJSON, i}
		}
		c = b[i]
	}
	if c == 'n' {
		if !literal(b, i, "null") {
			return i, failure{notJSON, i}
		}
		v.setNull(n)
		return i + 4, failure{}
	}
	v.Valid[n] = 1
	switch v.Type.Kind {
	case String:
		if end := v.shortText(b, i, n); end > 0 {
			return end, failure{}
		}
		return v.longText(b, i, n)
	case Int64:
		x, end, fail := parseInt(b, i, math.MinInt64, math.MaxInt64)
		v.I64[n] = x
		return end, fail
	case Int32:
		x, end, fail := parseInt(b, i, math.MinInt32, math.MaxInt32)
		v.I32[n] = int32(x)
		return end, fail
	case Double:
		x, end, fail := parseFloat(b, i, 64)
		v.F64[n] = x
		return end, fail
	case Float:
		x, end, fail := parseFloat(b, i, 32)
		v.F32[n] = float32(x)
		return end, fail
	case Decimal:
		return v.decimal(b, i, n)
	case Timestamp:
		x, end, fail := v.timestamp(b, i)
		v.I64[n] = x
		return end, fail
	case Date:
		x, end, fail := parseDate(b, i)
		v.I32[n] = x
		return end, fail
	case Boolean:
		x, end, fail := parseBool(b, i)
		v.Bools[n] = x
		return end, fail
	}
	return v.base64(b, i, n)
}

func parseBool(b []byte, i int) (uint8, int, failure) {
	if literal(b, i, "true") {
		return 1, i + 4, failure{}
	}
	if literal(b, i, "false") {
		return 0, i + 5, failure{}
	}
	return 0, i, wrongType(b, i)
}

// shortText reads an ASCII string without escapes into slot n, eight bytes at a time from the input to the column. It
// returns 0 and leaves the work to longText when the string is of another kind or the column's memory is used up.
func (v *Vector) shortText(b []byte, i, n int) int {
	if b[i] != '"' {
		return 0
	}
	i++
	start := v.Ends[n]
	dst := v.Data[start:min(cap(v.Data), maxData)]
	for o := 0; i+8 <= len(b) && o+8 <= len(dst); o += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		binary.LittleEndian.PutUint64(dst[o:], x)
		mask := special(x)
		if mask == 0 {
			i += 8
			continue
		}
		k := bits.TrailingZeros64(mask) >> 3
		if b[i+k] != '"' {
			return 0
		}
		end := start + uint32(o+k)
		v.Data = v.Data[:end]
		v.Ends[n+1] = end
		return i + k + 1
	}
	return 0
}

// longText reads any string into slot n.
func (v *Vector) longText(b []byte, i, n int) (int, failure) {
	if b[i] != '"' {
		return i, wrongType(b, i)
	}
	end, flags := scanString(b, i+1)
	if end < 0 {
		return i, failure{notJSON, i}
	}
	raw := b[i+1 : end]
	start := v.Ends[n]
	if int64(start)+int64(len(raw)) > maxData {
		return i, failure{tooLong, i}
	}
	data := v.Data[:start]
	switch {
	case flags&hasEscape != 0:
		var ok bool
		if data, ok = unescape(data, raw); !ok {
			return i, failure{badString, i}
		}
	case flags&hasHigh != 0 && !utf8.Valid(raw):
		return i, failure{badString, i}
	default:
		data = append(data, raw...)
	}
	v.Data = data
	v.Ends[n+1] = uint32(len(data))
	return end + 1, failure{}
}

// failCode says why a value does not fit.
type failCode uint8

const (
	fits failCode = iota
	notObject
	notJSON
	badString
	badType
	outOfRange
	tooPrecise
	tooLong
	badText
)

// failure is a failCode and the place in the input; unlike an error it costs nothing to pass around.
type failure struct {
	code failCode
	at   int
}

var failWords = [...]struct{ code, reason string }{
	notObject:  {"not_json", "the value is not one JSON object"},
	notJSON:    {"not_json", "the value is not well-formed JSON"},
	badString:  {"not_json", "a string is not valid Unicode"},
	badType:    {"type", "not a value for this type"},
	outOfRange: {"range", "outside the type's range"},
	tooPrecise: {"precision", "more digits than the type holds"},
	tooLong:    {"length", "too many bytes for one batch"},
	badText:    {"type", "the text is not in this type's form"},
}

func (t *Table) misfit(b []byte, col int, f failure) *sink.Misfit {
	w := failWords[f.code]
	m := &sink.Misfit{Code: w.code, Reason: w.reason}
	if f.code <= badString {
		m.Reason += ", at byte " + strconv.Itoa(f.at)
	}
	if col < 0 {
		return m
	}
	m.Column = t.schema.columns[col].Name
	if f.code > badString {
		m.Reason += ": " + excerpt(b, f.at) + " for " + t.cols[col].Type.String()
	}
	return m
}

// excerpt quotes the value at i for a message, at most 40 bytes of it.
func excerpt(b []byte, i int) string {
	end, fail := skipValue(b, i)
	if fail.code != fits {
		end = len(b)
	}
	if end-i > 40 {
		return strconv.Quote(string(b[i:i+40])) + "..."
	}
	return strconv.Quote(string(b[i:end]))
}
