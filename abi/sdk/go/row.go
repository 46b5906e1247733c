package wasmill

import (
	"math"
	"strings"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// rowsVersion is the first byte of a binary row.
const rowsVersion = 1

// Columns are the columns of an output's binary rows: the mark that each row begins with.
type Columns struct{ hash uint64 }

// Columns are those that an output declares beside `"rows": 1`. It panics when it declares none.
func (m Manifest) Columns(output string) Columns {
	text := ""
	m.find("outputs", func(outputs scan.Span) int {
		w := scan.Begin(outputs, scan.Array)
		for item, ok := w.Element(); ok; item, ok = w.Element() {
			if scan.Is(member(item, "name"), output) {
				text = Value{member(item, "columns")}.String()
			}
		}
		return -1
	})
	if text == "" {
		panic("wasmill: the manifest declares no columns of the output " + output)
	}
	return columnsOf(text)
}

// columnsOf hashes the text without what says nothing of the bytes.
func columnsOf(text string) Columns {
	for _, s := range []string{" not null", "(s)", "(ms)", "(us)"} {
		text = strings.ReplaceAll(text, s, "")
	}
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return Columns{uint64(h)}
}

// Row is a binary row in the making: the value of the record that [Row.Emit] writes. Values are written in the order of the
// columns, each with the method of its type, or as [Row.Null]; the host finds what does not fit and sets the record aside. A
// row that is not emitted leaves no trace; the next one takes its place.
type Row struct{ o *Object }

// Row begins a row as the new value of r.
func (o *Out) Row(r *Record, c Columns) Row { return o.From(r).Row(c) }

// Row begins a row as its value.
func (d Draft) Row(c Columns) Row {
	r := Row{d.o}
	at := r.room(8)
	d.o.value = at
	mem.PutU64(at, rowsVersion|c.hash<<8)
	d.o.at = at + 5
	return r
}

// rowSlack is what a number takes, with what is written over.
const rowSlack = 24

// room makes place for n bytes and a number.
func (r Row) room(n uint64) uint64 {
	if b := r.o; b.end-b.at < n+rowSlack {
		module.out.grow(n + rowSlack)
	}
	return r.o.at
}

// put writes the byte that says that a value is there, and n of its bytes.
func (r Row) put(v, n uint64) {
	at := r.room(0)
	mem.PutU8(at, 1)
	mem.PutU64(at+1, v)
	r.o.at = at + 1 + n
}

// Null writes null.
func (r Row) Null() {
	at := r.room(0)
	mem.PutU8(at, 0)
	r.o.at = at + 1
}

// Bool writes a boolean, or null.
func (r Row) Bool(v Bool) {
	switch {
	case !v.Valid:
		r.Null()
	case v.B:
		r.put(1, 1)
	default:
		r.put(0, 1)
	}
}

func (r Row) int(v Int, n uint64) {
	if !v.Valid {
		r.Null()
		return
	}
	r.put(uint64(v.N), n)
}

// Int8 writes an int8, or null. What does not fit is cut, as in the methods below.
func (r Row) Int8(v Int) { r.int(v, 1) }

// Int16 writes an int16, or null.
func (r Row) Int16(v Int) { r.int(v, 2) }

// Int32 writes an int32, a date as days since 1970, or a decimal of up to 9 digits times ten to the power of its scale; or
// null.
func (r Row) Int32(v Int) { r.int(v, 4) }

// Int64 writes an int64, a timestamp as microseconds since 1970, or a decimal of 10 to 18 digits times ten to the power of
// its scale; or null.
func (r Row) Int64(v Int) { r.int(v, 8) }

// Int128 writes a decimal of more than 18 digits, times ten to the power of its scale; or null.
func (r Row) Int128(v Int) {
	if !v.Valid {
		r.Null()
		return
	}
	r.put(uint64(v.N), 16)
	mem.PutU64(r.o.at-8, uint64(v.N>>63))
}

// Float writes a float.
func (r Row) Float(x float32) { r.put(uint64(math.Float32bits(x)), 4) }

// Double writes a double.
func (r Row) Double(x float64) { r.put(math.Float64bits(x), 8) }

// String writes a string, of UTF-8.
func (r Row) String(s string) { r.Bytes(bytesOf(s)) }

// Bytes writes a binary, or a string.
func (r Row) Bytes(b []byte) {
	r.room(uint64(len(b)))
	r.put(uint64(len(b)), 4)
	r.o.add(b)
}

// Text writes the characters of a string of the input as a string; what is no string is null.
func (r Row) Text(v Value) {
	switch v.span.Kind() {
	case scan.String:
		n := v.span.Len()
		r.room(n)
		r.put(n, 4)
		mem.Copy(r.o.at, v.span.At(), n)
		r.o.at += n
	case scan.Escaped:
		r.Bytes(scan.Unescape(v.span))
	default:
		r.Null()
	}
}

// Struct begins a struct: the values of its fields come next.
func (r Row) Struct() {
	at := r.room(0)
	mem.PutU8(at, 1)
	r.o.at = at + 1
}

// List begins a list of n elements, which come next.
func (r Row) List(n int) { r.put(uint64(n), 4) }

// Map begins a map of n entries, which come next: [Row.Key] with the key, and the value.
func (r Row) Map(n int) { r.put(uint64(n), 4) }

// Key writes a key of a map, as write writes a value of its type.
func (r Row) Key(write func(Row)) {
	size := r.o.at - r.o.value
	write(r)
	at := r.o.value + size
	n := r.o.at - at - 1
	copy(mem.Bytes(at, n), mem.Bytes(at+1, n))
	r.o.at--
}

// Emit writes the record to this output. If reading a field of the input met an error, it returns that and writes nothing.
func (r Row) Emit(to Port) error {
	if module.rec.bad != 0 {
		return module.rec.Err()
	}
	r.o.close(uint64(to) << 32)
	return nil
}
