package abi

import (
	"bytes"
	"encoding/binary"
	"math"
)

// RowsVersion is the first byte of a binary row, and what a manifest says as an output's rows. No JSON text begins with it.
const RowsVersion = 1

// RowHeader is how many bytes of a binary row lie before its values: the version, and the RowHash of its columns.
const RowHeader = 5

// What stands for a value in a row beside 0 for null and 1 before one that is there.
const (
	RowUnfit = 2 // the writer found a value that its column cannot hold: nothing behind it counts
	RowNoKey = 3 // behind the key of a map: the key was no value of its type
)

// RowHash is FNV-1a of 32 bits over the text of a row's columns, as in "id: int64, tags: list<string>": types in their
// shortest form, without `not null` and units.
func RowHash(columns string) uint32 {
	h := uint32(2166136261)
	for i := range len(columns) {
		h = (h ^ uint32(columns[i])) * 16777619
	}
	return h
}

// RowWriter writes binary rows, value by value, in the order of the columns. It does not look at the columns: what is
// written in another order or number is found by the reader. What it cannot write it marks, so that the reader sets the row
// aside: it cuts nothing and never fails. It is not for concurrent use.
type RowWriter struct {
	hash uint32
	buf  []byte
}

// NewRowWriter returns a writer of rows with these columns.
func NewRowWriter(columns string) *RowWriter { return &RowWriter{hash: RowHash(columns)} }

// Begin drops what was written and begins a row.
func (w *RowWriter) Begin() {
	w.buf = binary.LittleEndian.AppendUint32(append(w.buf[:0], RowsVersion), w.hash)
}

// Row returns the row, valid until the next one begins.
func (w *RowWriter) Row() []byte { return w.buf }

// Null writes a null of any type.
func (w *RowWriter) Null() { w.buf = append(w.buf, 0) }

// Unfit writes that a value does not fit its column, which makes the whole row a misfit.
func (w *RowWriter) Unfit() { w.buf = append(w.buf, RowUnfit) }

// Present writes that a value follows. All methods below, but those for keys and lengths, do so themselves; alone it begins
// a struct, whose fields follow.
func (w *RowWriter) Present() { w.buf = append(w.buf, 1) }

// Bool writes a boolean.
func (w *RowWriter) Bool(x bool) {
	w.buf = append(w.buf, 1, 0)
	if x {
		w.buf[len(w.buf)-1] = 1
	}
}

// Int8 writes an int8.
func (w *RowWriter) Int8(x int8) { w.buf = append(w.buf, 1, byte(x)) }

// Int16 writes an int16.
func (w *RowWriter) Int16(x int16) {
	w.buf = binary.LittleEndian.AppendUint16(append(w.buf, 1), uint16(x))
}

// Bits32 writes an int32, the bits of a float, a date in days since 1970, or a decimal of up to 9 digits.
func (w *RowWriter) Bits32(x uint32) { w.buf = binary.LittleEndian.AppendUint32(append(w.buf, 1), x) }

// Bits64 writes an int64, the bits of a double, a timestamp or timestamp_ntz in microseconds since 1970, or a decimal of 10 to 18 digits.
func (w *RowWriter) Bits64(x uint64) { w.buf = binary.LittleEndian.AppendUint64(append(w.buf, 1), x) }

// Bits128 writes a decimal of more than 18 digits: the low and the high half of its unscaled number.
func (w *RowWriter) Bits128(low, high uint64) {
	w.Bits64(low)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, high)
}

// Bytes writes a string or binary.
func (w *RowWriter) Bytes(b []byte) {
	w.Length(len(b))
	w.buf = append(w.buf, b...)
}

// Length begins a list, whose elements follow, or a map, whose keys and values follow in turn. Keys are written with Key.
func (w *RowWriter) Length(n int) {
	if uint64(n) > math.MaxUint32 {
		w.Unfit()
		return
	}
	w.buf = binary.LittleEndian.AppendUint32(append(w.buf, 1), uint32(n))
}

// Key writes a key of a map: what write writes, without the byte that says that it is there. Null, or what does not fit, is
// no key: it becomes a run of marks, of which one stands behind the key whatever the key's size.
func (w *RowWriter) Key(write func(*RowWriter)) {
	at := len(w.buf)
	write(w)
	if w.buf[at] != 1 {
		w.buf = append(w.buf[:at], bytes.Repeat([]byte{RowNoKey}, rowNoKeySize)...)
		return
	}
	w.buf = append(w.buf[:at], w.buf[at+1:]...)
}

// rowNoKeySize is more than the largest key of a fixed size takes; as the length of a text, so many marks are more than a row has.
const rowNoKeySize = 17
