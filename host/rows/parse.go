package rows

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

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
			if i, fail = skipValue(b, i); fail.code != fits {
				return c, fail
			}
			continue
		}
		v := &t.cols[c]
		if v.seen != t.gen {
			v.seen = t.gen
			set++
		}
		next = c + 1
		if i, fail = t.value(v, b, i); fail.code != fits {
			return t.parseLast(b)
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

// parseLast is parse for an object in which a value does not fit. It first finds the last value of each column, as an
// earlier one does not count, and then reads those: the first that does not fit is the failure.
func (t *Table) parseLast(b []byte) (int, failure) {
	t.gen++
	i := skipSpace(b, 0)
	for open := byte('{'); ; open = ',' {
		c, at, fail := t.member(b, i, open)
		if fail.code != fits {
			return -1, fail
		}
		if i = at; c == atEnd {
			break
		}
		if c >= 0 {
			t.cols[c].seen, t.cols[c].last = t.gen, at
		}
		if i, fail = skipValue(b, i); fail.code != fits {
			return c, fail
		}
	}
	if i = skipSpace(b, i); i != len(b) {
		return -1, failure{notJSON, i}
	}
	col, first := -1, failure{}
	for c := range t.cols {
		v := &t.cols[c]
		if v.seen != t.gen {
			continue
		}
		if _, fail := t.value(v, b, v.last); fail.code != fits && (col < 0 || v.last < t.cols[col].last) {
			col, first = c, fail
		}
	}
	if col < 0 {
		t.fillMissing()
	}
	return col, first
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
			return noColumn, i, unfit(name, i)
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
	if b[i] == '"' {
		return quotedBool(b, i)
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

// longText reads any string, or what has a text of its own, into slot n.
func (v *Vector) longText(b []byte, i, n int) (int, failure) {
	if b[i] != '"' {
		return v.asText(b, i, n)
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
			return i, unfit(raw, i)
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
