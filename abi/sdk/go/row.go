package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// rowsVersion is the first byte of a binary row.
const rowsVersion = 1

// What stands for a value in a row.
const (
	rowNull  = 0
	rowValue = 1 // it follows
	rowUnfit = 2 // it does not fit its column
	rowNoKey = 3 // behind a map's key: that was none
)

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
	h := uint32(2166136261)
	for len(text) > 0 {
		if n := saysNothing(text); n > 0 {
			text = text[n:]
			continue
		}
		h = (h ^ uint32(text[0])) * 16777619
		text = text[1:]
	}
	return Columns{uint64(h)}
}

// saysNothing is how many bytes at the start say nothing of a row's bytes: not null, and the unit of a timestamp. No import
// for this: each one makes all modules larger.
func saysNothing(text string) int {
	for _, s := range [...]string{" not null", "(s)", "(ms)", "(us)"} {
		if len(text) >= len(s) && text[:len(s)] == s {
			return len(s)
		}
	}
	return 0
}

// Row is a binary row in the making: the value of the record that [Row.Emit] writes. Values are written in the order of the
// columns, each with the method of its type, or as [Row.Null]. Nothing is cut: a number that its method has no room for is
// marked, and the host sets the record aside, code range, as it does with all else that does not fit its column. A row that is
// not emitted leaves no trace; the next one takes its place.
type Row struct{ _ struct{} }

// Row begins a row as the new value of r.
func (o *Out) Row(r *Record, c Columns) Row { return o.From(r).Row(c) }

// Row begins a row as its value.
func (d Draft) Row(c Columns) Row {
	b := &module.out.object
	if b.end-b.at < rowSlack {
		module.out.grow(rowSlack)
	}
	b.value = b.at
	mem.PutU64(b.at, rowsVersion|c.hash<<8)
	b.at += 5
	return Row{}
}

// rowSlack is what a number or a short text takes, with what is written over.
const rowSlack = 48

// put writes the byte that says that a value is there, and n of its bytes.
func put(v, n uint64) {
	b := &module.out.object
	if b.end-b.at < rowSlack {
		module.out.grow(rowSlack)
	}
	at := b.at
	mem.PutU8(at, rowValue)
	mem.PutU64(at+1, v)
	b.at = at + 1 + n
}

// mark8 writes a byte alone: what stands for a value, or before a struct's fields.
func mark8(v uint64) {
	b := &module.out.object
	if b.end-b.at < rowSlack {
		module.out.grow(rowSlack)
	}
	mem.PutU8(b.at, v)
	b.at++
}

// Null writes null.
func (r Row) Null() { mark8(rowNull) }

// Bool writes a boolean, or null.
func (r Row) Bool(v Bool) {
	switch {
	case !v.Valid:
		mark8(rowNull)
	case v.B:
		put(1, 1)
	default:
		put(0, 1)
	}
}

// putInt writes a number in n bytes, in which it is cut. If it was another one before, it does not fit.
func putInt(v Int, cut int64, n uint64) {
	switch {
	case !v.Valid:
		mark8(rowNull)
	case v.N != cut:
		mark8(rowUnfit)
	default:
		put(uint64(cut), n)
	}
}

// Int8 writes an int8, or null. A number that does not fit makes the row a misfit, here as in the methods below.
func (r Row) Int8(v Int) { putInt(v, int64(int8(v.N)), 1) }

// Int16 writes an int16, or null.
func (r Row) Int16(v Int) { putInt(v, int64(int16(v.N)), 2) }

// Int32 writes an int32, a date as days since 1970, or a decimal of up to 9 digits times ten to the power of its scale; or
// null.
func (r Row) Int32(v Int) { putInt(v, int64(int32(v.N)), 4) }

// Int64 writes an int64, a timestamp as microseconds since 1970, or a decimal of 10 to 18 digits times ten to the power of
// its scale; or null.
func (r Row) Int64(v Int) { putInt(v, v.N, 8) }

// Int128 writes a decimal of more than 18 digits, times ten to the power of its scale; or null.
func (r Row) Int128(v Int) {
	putInt(v, v.N, 16)
	if v.Valid {
		mem.PutU64(module.out.object.at-8, uint64(v.N>>63))
	}
}

// Float writes the nearest float. A finite number that is too large for one does not fit.
func (r Row) Float(x float64) {
	f := float32(x)
	if f-f != 0 && x-x == 0 {
		mark8(rowUnfit)
		return
	}
	put(uint64(*(*uint32)(unsafe.Pointer(&f))), 4)
}

// Double writes a double.
func (r Row) Double(x float64) { put(*(*uint64)(unsafe.Pointer(&x)), 8) }

// String writes a string, of UTF-8.
func (r Row) String(s string) { r.Bytes(bytesOf(s)) }

// Bytes writes a binary, or a string.
func (r Row) Bytes(b []byte) {
	put(uint64(len(b)), 4)
	module.out.object.add(b)
}

// Text writes the characters of a string of the input as a string; what is no string is null.
func (r Row) Text(v Value) {
	b, n := &module.out.object, v.span.Len()
	if v.span.Kind() == scan.String && n <= 32 && b.end-b.at >= rowSlack {
		at, from := b.at, v.span.At()
		mem.PutU8(at, rowValue)
		mem.PutU32(at+1, n)
		mem.PutU64(at+5, mem.U64(from))
		mem.PutU64(at+13, mem.U64(from+8))
		mem.PutU64(at+21, mem.U64(from+16))
		mem.PutU64(at+29, mem.U64(from+24))
		b.at = at + 5 + n
		return
	}
	r.textSlowly(v)
}

func (r Row) textSlowly(v Value) {
	switch v.span.Kind() {
	case scan.String:
		r.Bytes(v.Raw())
	case scan.Escaped:
		r.Bytes(scan.Unescape(v.span))
	default:
		mark8(rowNull)
	}
}

// Struct begins a struct: the values of its fields come next.
func (r Row) Struct() { mark8(rowValue) }

// List begins a list of n elements, which come next.
func (r Row) List(n int) { putLength(n) }

// Map begins a map of n entries, which come next: of each [Row.Key] with the key, and the value.
func (r Row) Map(n int) { putLength(n) }

func putLength(n int) {
	if uint64(n)>>32 != 0 {
		mark8(rowUnfit)
		return
	}
	put(uint64(n), 4)
}

// Key writes a key of a map. The function writes one value, by the method of the key's type: in a row a key has another form
// than that value alone. Null is no key, nor is what does not fit: it makes the row a misfit.
func (r Row) Key(write func(Row)) {
	b := &module.out.object
	size := b.at - b.value
	write(r)
	at := b.value + size
	if b.at == at || mem.U8(at) != rowValue {
		b.at = at
		noKey()
		return
	}
	n := b.at - at - 1
	copy(mem.Bytes(at, n), mem.Bytes(at+1, n))
	b.at--
}

// noKey writes so many marks that one stands behind the key, whatever its type.
func noKey() {
	b := &module.out.object
	if b.end-b.at < rowSlack {
		module.out.grow(rowSlack)
	}
	const marks = rowNoKey * 0x0101010101010101
	mem.PutU64(b.at, marks)
	mem.PutU64(b.at+8, marks)
	mem.PutU8(b.at+16, rowNoKey)
	b.at += 17
}

// Emit writes the record to this output. If reading a field of the input met an error, it returns that and writes nothing.
func (r Row) Emit(to Port) error {
	if module.rec.bad != 0 {
		return module.rec.Err()
	}
	module.out.object.close(uint64(to) << 32)
	return nil
}
