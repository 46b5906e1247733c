package rows

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
)

// Binary rows are what abi/README.md says of them. Each value is checked as its JSON would be.

// ParseColumns reads columns as a manifest gives those of binary rows: "id: int64 not null, tags: list<string>".
func ParseColumns(text string) ([]Column, error) {
	t, err := ParseType("struct<" + text + ">")
	if err != nil {
		return nil, err
	}
	return t.Fields, nil
}

// RowSchema returns the schema of the columns that a manifest gives. They must be written in the form that the SDKs take the
// hash of, but for `not null` and units.
func RowSchema(text string) (*Schema, error) {
	columns, err := ParseColumns(text)
	if err != nil {
		return nil, err
	}
	s, err := NewSchema(columns)
	if err != nil {
		return nil, err
	}
	short := text
	for _, what := range []string{" not null", "(s)", "(ms)", "(us)"} {
		short = strings.ReplaceAll(short, what, "")
	}
	if want := s.ColumnsText(); short != want {
		return nil, fmt.Errorf("the columns must be written in their shortest form, as %s", cutText(want, 500))
	}
	return s, nil
}

// ColumnsText returns the columns as binary rows are marked with them: the shortest form of each type, without `not null`
// and units.
func (s *Schema) ColumnsText() string {
	text := Type{Kind: Struct, Fields: s.columns}.appendTo(nil, bare)
	return string(text[len("struct<") : len(text)-1])
}

// binaryRow fills the slots of row n.
func (t *Table) binaryRow(b []byte) failure {
	t.path, t.failed = t.path[:0], nil
	if len(b) < abi.RowHeader {
		return failure{badRow, len(b)}
	}
	if binary.LittleEndian.Uint32(b[1:]) != t.schema.hash {
		return failure{otherColumns, 1}
	}
	i := abi.RowHeader
	for c, v := range t.root.cols {
		if end := v.quickValue(b, i, t.n); end > 0 {
			i = end
			continue
		}
		var fail failure
		if i, fail = t.binaryValue(v, b, i, t.n); fail.code != fits {
			t.outwards(v, step{name: t.root.columns[c].Name})
			return fail
		}
	}
	if i != len(b) {
		return failure{badRow, i}
	}
	return failure{}
}

// quickValue reads what most rows hold into slot n: numbers that fill their slots, and short ASCII. It returns 0 for all
// else, and near the end of a row.
func (v *Vector) quickValue(b []byte, i, n int) int {
	if len(b)-i < 17 || b[i] != 1 {
		return 0
	}
	switch v.Type.Kind {
	case String:
		return v.quickText(b, i+1, n)
	case Int64:
		v.I64[n] = int64(binary.LittleEndian.Uint64(b[i+1:]))
		v.Valid[n] = 1
		return i + 9
	case Double:
		v.F64[n] = quiet(math.Float64frombits(binary.LittleEndian.Uint64(b[i+1:])))
		v.Valid[n] = 1
		return i + 9
	case Int32:
		v.I32[n] = int32(binary.LittleEndian.Uint32(b[i+1:]))
		v.Valid[n] = 1
		return i + 5
	case Timestamp, TimestampNTZ:
		x := int64(binary.LittleEndian.Uint64(b[i+1:]))
		if x < firstMicro || x > lastMicro {
			return 0
		}
		v.I64[n] = x
		v.Valid[n] = 1
		return i + 9
	}
	return 0
}

// quickText copies ASCII eight bytes at a time, over the end of the text.
func (v *Vector) quickText(b []byte, i, n int) int {
	size := int(binary.LittleEndian.Uint32(b[i:]))
	i += 4
	start := v.Ends[n]
	dst := v.Data[start:min(cap(v.Data), maxData)]
	if padded := (size + 7) &^ 7; size > 1<<10 || padded > len(b)-i || padded > len(dst) {
		return 0
	}
	var high uint64
	for o := 0; o < size; o += 8 {
		x := binary.LittleEndian.Uint64(b[i+o:])
		binary.LittleEndian.PutUint64(dst[o:], x)
		if left := size - o; left < 8 {
			x &= 1<<(8*left) - 1
		}
		high |= x
	}
	if high&highs != 0 {
		return 0
	}
	end := start + uint32(size)
	v.Data = v.Data[:end]
	v.Ends[n+1] = end
	v.Valid[n] = 1
	return i + size
}

// binaryValue reads the value at i into slot n of v.
func (t *Table) binaryValue(v *Vector, b []byte, i, n int) (int, failure) {
	if i >= len(b) || b[i] > abi.RowUnfit {
		return i, failure{badRow, i}
	}
	if b[i] == abi.RowUnfit {
		return i, failure{unfitting, i}
	}
	if b[i] == 0 {
		if v.Type.Required {
			return i, failure{missing, i}
		}
		v.setNull(n)
		return i + 1, failure{}
	}
	return t.payload(v, b, i+1, n)
}

// payload reads what stands for a value that is there.
func (t *Table) payload(v *Vector, b []byte, i, n int) (int, failure) {
	v.Valid[n] = 1
	size := payloadSize[v.store]
	switch v.Type.Kind {
	case Int8:
		size = 1
	case Int16:
		size = 2
	}
	if size > len(b)-i {
		return i, failure{badRow, i}
	}
	end := i + int(size)
	switch v.store {
	case inData:
		return v.binaryBytes(b, i, n)
	case inFields:
		return t.binaryFields(v, b, i, n)
	case inSpans:
		return t.binaryEntries(v, b, i, n)
	case inBools:
		v.Bools[n] = b[i]
		if b[i] > 1 {
			return i, failure{badRow, i}
		}
	case inI32:
		switch size {
		case 1:
			v.I32[n] = int32(int8(b[i]))
		case 2:
			v.I32[n] = int32(int16(binary.LittleEndian.Uint16(b[i:])))
		default:
			v.I32[n] = int32(binary.LittleEndian.Uint32(b[i:]))
		}
	case inI64:
		v.I64[n] = int64(binary.LittleEndian.Uint64(b[i:]))
	case inF32:
		v.F32[n] = quiet32(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
	case inF64:
		v.F64[n] = quiet(math.Float64frombits(binary.LittleEndian.Uint64(b[i:])))
	case inWide:
		v.Wide[n] = Int128{Hi: int64(binary.LittleEndian.Uint64(b[i+8:])), Lo: binary.LittleEndian.Uint64(b[i:])}
	}
	if !v.inRange(n) {
		return i, failure{outOfRange, i}
	}
	return end, failure{}
}

// payloadSize is how many bytes a value takes at least.
var payloadSize = [...]int{inBools: 1, inI32: 4, inI64: 8, inF32: 4, inF64: 8, inWide: 16, inData: 4, inFields: 0, inSpans: 4}

// inRange checks what has a smaller range than its slot.
func (v *Vector) inRange(n int) bool {
	switch v.Type.Kind {
	case Date:
		return v.I32[n] >= firstDay && v.I32[n] <= lastDate
	case Timestamp, TimestampNTZ:
		return v.I64[n] >= firstMicro && v.I64[n] <= lastMicro
	case Decimal:
		return v.Unscaled(n).digitsWithin(v.Type.Precision)
	}
	return true
}

func (v *Vector) binaryBytes(b []byte, i, n int) (int, failure) {
	size := int64(binary.LittleEndian.Uint32(b[i:]))
	at := i
	if i += 4; size > int64(len(b)-i) {
		return at, failure{badRow, at}
	}
	text := b[i : i+int(size)]
	if v.Type.Kind == String && !utf8.Valid(text) {
		return at, failure{badText, at}
	}
	start := v.Ends[n]
	if int64(start)+size > maxData {
		return at, failure{tooLong, at}
	}
	v.Data = append(v.Data[:start], text...)
	v.Ends[n+1] = uint32(len(v.Data))
	return i + int(size), failure{}
}

func (t *Table) binaryFields(v *Vector, b []byte, i, n int) (int, failure) {
	for f, c := range v.Children {
		var fail failure
		if i, fail = t.binaryValue(c, b, i, n); fail.code != fits {
			t.outwards(c, step{name: v.Type.Fields[f].Name})
			return i, fail
		}
	}
	return i, failure{}
}

// binaryEntries reads the elements of a list, or the keys and values of a map. Each takes a byte at least.
func (t *Table) binaryEntries(v *Vector, b []byte, i, n int) (int, failure) {
	count := int64(binary.LittleEndian.Uint32(b[i:]))
	at := i
	if i += 4; count > int64(len(b)-i) {
		return at, failure{badRow, at}
	}
	start := int(v.Ends[n])
	if int64(start)+count > maxData {
		return at, failure{tooLong, at}
	}
	for _, c := range v.Children {
		c.Reserve(start + int(count))
	}
	elements := v.Children[len(v.Children)-1]
	var seen keySet
	for k := start; k < start+int(count); k++ {
		inside := step{at: k - start, kind: List}
		var fail failure
		if v.Type.Kind == Map {
			keys := v.Children[0]
			from := i
			i, fail = t.payload(keys, b, i, k)
			switch {
			case fail.code != fits:
			case i < len(b) && b[i] == abi.RowNoKey:
				fail = failure{noKey, from}
			case !seen.add(keys, start, k):
				fail = failure{duplicate, from}
			}
			if fail.code != fits {
				t.outwards(keys, inside)
				return i, fail
			}
			inside = step{name: keyText(keys, k), kind: Map}
		}
		if i, fail = t.binaryValue(elements, b, i, k); fail.code != fits {
			t.outwards(elements, inside)
			return i, fail
		}
	}
	v.Ends[n+1] = uint32(start) + uint32(count)
	return i, failure{}
}
