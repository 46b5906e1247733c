package rows

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// parse fills the slots of row n.
func (t *Table) parse(b []byte) failure {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		t.path, t.failed = t.path[:0], nil
		return failure{notObject, i}
	}
	end, fail := t.object(t.root, b, i, t.n)
	if fail.code != fits {
		t.careful, t.path, t.failed = true, t.path[:0], nil
		end, fail = t.objectLast(t.root, b, i, t.n)
		t.careful = false
	}
	if fail.code != fits {
		return fail
	}
	if end = skipSpace(b, end); end != len(b) {
		t.path, t.failed = t.path[:0], nil
		return failure{notJSON, end}
	}
	return failure{}
}

// object reads the object at i into slot n of a record's columns.
func (t *Table) object(r *record, b []byte, i, n int) (int, failure) {
	t.gen++
	gen := t.gen
	set, next := 0, 0
	for open := byte('{'); ; open = ',' {
		// b[i] should be open, before a key.
		c := next
		if next < len(r.cols) && r.cols[next].key.matches(b, i, open) {
			i += r.cols[next].key.size
		} else {
			var fail failure
			if c, i, fail = t.member(r, b, i, open); fail.code != fits {
				return i, fail
			}
			if c == atEnd {
				break
			}
		}
		var fail failure
		if c < 0 {
			if i, fail = skipValue(b, i); fail.code != fits {
				return i, fail
			}
			continue
		}
		v := r.cols[c]
		if v.seen != gen {
			v.seen = gen
			set++
		}
		next = c + 1
		if i, fail = t.value(v, b, i, n); fail.code != fits {
			return i, fail
		}
	}
	if set < len(r.cols) {
		return i, t.fillMissing(r, n, gen)
	}
	return i, failure{}
}

// objectLast is object for a row in which something does not fit. It first finds the last value of each column, as an
// earlier one does not count, and then reads those in the order of the input: the first that does not fit is the failure.
// Nested objects are read in the same way, so that the time stays within the row's length times its depth.
func (t *Table) objectLast(r *record, b []byte, i, n int) (int, failure) {
	t.gen++
	gen := t.gen
	var order []int
	for open := byte('{'); ; open = ',' {
		c, at, fail := t.member(r, b, i, open)
		if fail.code != fits {
			return i, fail
		}
		if i = at; c == atEnd {
			break
		}
		if c >= 0 {
			if r.cols[c].seen != gen {
				order = append(order, c)
			}
			r.cols[c].seen, r.cols[c].last = gen, at
		}
		if i, fail = skipValue(b, i); fail.code != fits {
			if c >= 0 {
				t.outwards(r.cols[c], step{name: r.columns[c].Name})
			}
			return i, fail
		}
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(r.cols[x].last, r.cols[y].last) })
	for _, c := range order {
		if _, fail := t.value(r.cols[c], b, r.cols[c].last, n); fail.code != fits {
			t.outwards(r.cols[c], step{name: r.columns[c].Name})
			return i, fail
		}
	}
	return i, t.fillMissing(r, n, gen)
}

// fillMissing makes null what an object has not set.
func (t *Table) fillMissing(r *record, n int, gen uint64) failure {
	for i, c := range r.cols {
		if c.seen == gen {
			continue
		}
		if c.Type.Required {
			t.outwards(c, step{name: r.columns[i].Name})
			return failure{code: missing}
		}
		c.setNull(n)
	}
	return failure{}
}

// What member returns beside columns.
const (
	noColumn = -1
	atEnd    = -2
)

// member reads from what stands before a key to the value after it, or the object's closing brace.
func (t *Table) member(r *record, b []byte, i int, open byte) (col, after int, fail failure) {
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
	if c, ok := r.names[string(name)]; ok {
		col = c
	}
	i = skipSpace(b, end+1)
	if i >= len(b) || b[i] != ':' {
		return noColumn, i, failure{notJSON, i}
	}
	return col, skipSpace(b, i+1), failure{}
}

// value reads the value at i into slot n of v.
func (t *Table) value(v *Vector, b []byte, i, n int) (int, failure) {
	if i >= len(b) {
		return i, failure{notJSON, i}
	}
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
		if v.Type.Required {
			return i, failure{missing, i}
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
	case Int16:
		x, end, fail := parseInt(b, i, math.MinInt16, math.MaxInt16)
		v.I32[n] = int32(x)
		return end, fail
	case Int8:
		x, end, fail := parseInt(b, i, math.MinInt8, math.MaxInt8)
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
	case TimestampNTZ:
		x, end, fail := v.local(b, i)
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
	case Struct:
		return t.structure(v, b, i, n)
	case List:
		return t.list(v, b, i, n)
	case Map:
		return t.mapping(v, b, i, n)
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
