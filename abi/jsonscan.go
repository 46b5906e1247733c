package abi

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth is how many objects and arrays may be open at once in a JSON text. Deeper text counts as not JSON, on every
// host, so that a scanner needs no more than a fixed stack.
const MaxDepth = 512

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// stringStops has the high bit set in the first byte of x (lowest address) that ends a plain run of a JSON string: a
// quote, a backslash or a control character. Bits above the lowest one set may be wrong. Flipping bit 1 puts the quote
// right behind the control characters and keeps those among themselves, so that one comparison finds both.
func stringStops(x uint64) uint64 {
	quote := x ^ lowBits*2
	slash := x ^ lowBits*'\\'
	return ((quote-lowBits*0x21)&^quote | (slash-lowBits)&^slash) & highBits
}

// word is the eight bytes of v from pos on as a little-endian number. The caller has made sure that pos+8 <= len(v): the
// bounds check that is left out here is a third of the cost of a scan.
func word(v []byte, pos int) uint64 {
	p := (*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), pos))
	return binary.LittleEndian.Uint64(p[:])
}

// peek is word for any 0 <= pos <= len(v): what lies beyond the end is zero.
func peek(v []byte, pos int) uint64 {
	if pos+8 <= len(v) {
		return word(v, pos)
	}
	if len(v) >= 8 {
		return word(v, len(v)-8) >> (8 * uint(pos+8-len(v)))
	}
	var x uint64
	for i, c := range v[pos:] {
		x |= uint64(c) << (8 * uint(i))
	}
	return x
}

// validUTF8 is utf8.Valid with a faster way for plain ASCII.
func validUTF8(v []byte) bool {
	pos := 0
	for ; pos+32 <= len(v); pos += 32 {
		if (word(v, pos)|word(v, pos+8)|word(v, pos+16)|word(v, pos+24))&highBits != 0 {
			return utf8.Valid(v[pos:])
		}
	}
	for ; pos+8 <= len(v); pos += 8 {
		if word(v, pos)&highBits != 0 {
			return utf8.Valid(v[pos:])
		}
	}
	return peek(v, pos)&highBits == 0 || utf8.Valid(v[pos:])
}

// skipSpace returns the first position from pos on that is not JSON white space.
func skipSpace(v []byte, pos int) int {
	for pos < len(v) && v[pos] <= ' ' && (v[pos] == ' ' || v[pos] == '\n' || v[pos] == '\r' || v[pos] == '\t') {
		pos++
	}
	return pos
}

// skipString takes the position of a string's first byte after the quote and returns the position after its closing
// quote, or -1, and whether it holds an escape. UTF-8 is checked elsewhere, once for the whole text.
func skipString(v []byte, pos int) (end int, escaped bool) {
	for {
		pos = skipPlain(v, pos)
		if pos == len(v) || v[pos] < 0x20 {
			return -1, false
		}
		if v[pos] == '"' {
			return pos + 1, escaped
		}
		escaped = true
		if pos = skipEscape(v, pos); pos < 0 {
			return -1, false
		}
	}
}

// skipPlain returns the position of the first quote, backslash or control character from pos on, or the end.
func skipPlain(v []byte, pos int) int {
	for ; pos+8 <= len(v); pos += 8 {
		if stops := stringStops(word(v, pos)); stops != 0 {
			return pos + bits.TrailingZeros64(stops)>>3
		}
	}
	// The zeros beyond the end are control characters: the end stops the run.
	return pos + bits.TrailingZeros64(stringStops(peek(v, pos)))>>3
}

// skipEscape takes the position of a backslash and returns the position after the escape, or -1. Both halves of a
// surrogate pair are one escape; half a pair has no UTF-8 form and is refused.
func skipEscape(v []byte, pos int) int {
	if pos+1 >= len(v) {
		return -1
	}
	switch v[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2
	case 'u':
		_, end := unicodeEscape(v, pos)
		return end
	}
	return -1
}

// unicodeEscape decodes the \uXXXX, or the pair of them, at pos and returns the position after it, or -1.
func unicodeEscape(v []byte, pos int) (r rune, end int) {
	r, ok := hex4(v, pos+2)
	if !ok || r >= 0xdc00 && r < 0xe000 {
		return 0, -1
	}
	if r < 0xd800 || r >= 0xe000 {
		return r, pos + 6
	}
	if pos+7 >= len(v) || v[pos+6] != '\\' || v[pos+7] != 'u' {
		return 0, -1
	}
	low, ok := hex4(v, pos+8)
	if !ok || low < 0xdc00 || low >= 0xe000 {
		return 0, -1
	}
	return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), pos + 12
}

func hex4(v []byte, pos int) (rune, bool) {
	if pos+4 > len(v) {
		return 0, false
	}
	var r rune
	for _, c := range v[pos : pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// otherThanDigits has the high bit set in the first byte of x that is not a decimal digit. Bits above may be wrong.
func otherThanDigits(x uint64) uint64 {
	x ^= lowBits * '0'
	return (x + lowBits*0x76 | x) & highBits
}

// skipDigits returns the first position from pos on that is not a decimal digit.
func skipDigits(v []byte, pos int) int {
	for {
		if other := otherThanDigits(peek(v, pos)); other != 0 {
			return pos + bits.TrailingZeros64(other)>>3
		}
		pos += 8
	}
}

// skipNumber takes the position of a number's first byte and returns the position after it, or -1.
func skipNumber(v []byte, pos int) int {
	if v[pos] == '-' {
		pos++
	}
	x := peek(v, pos)
	other := otherThanDigits(x)
	end := pos + bits.TrailingZeros64(other)>>3 // without any other it is pos + 8
	if other == 0 {
		end = skipDigits(v, end)
	}
	if end == pos || byte(x) == '0' && end > pos+1 {
		return -1
	}
	if end == len(v) || v[end] != '.' && v[end]|0x20 != 'e' {
		return end
	}
	return skipFraction(v, end)
}

// skipFraction takes the position after a number's integer part and skips its fraction and its exponent.
func skipFraction(v []byte, pos int) int {
	if v[pos] == '.' {
		start := pos + 1
		if pos = skipDigits(v, start); pos == start {
			return -1
		}
	}
	if pos == len(v) || v[pos]|0x20 != 'e' {
		return pos
	}
	pos++
	if pos < len(v) && (v[pos] == '+' || v[pos] == '-') {
		pos++
	}
	start := pos
	if pos = skipDigits(v, start); pos == start {
		return -1
	}
	return pos
}

// skipScalar takes the position of a value that is no object and no array, and returns its kind and the position after
// it, or -1.
func skipScalar(v []byte, pos int) (FieldKind, int) {
	switch c := v[pos]; {
	case c == '"':
		end, escaped := skipString(v, pos+1)
		if escaped {
			return FieldEscaped, end
		}
		return FieldString, end
	case c-'0' <= 9 || c == '-':
		return FieldNumber, skipNumber(v, pos)
	case c == 't':
		return FieldTrue, skipWord(v, pos, "true")
	case c == 'f':
		return FieldFalse, skipWord(v, pos, "false")
	case c == 'n':
		return FieldNull, skipWord(v, pos, "null")
	}
	return FieldAbsent, -1
}

func skipWord(v []byte, pos int, literal string) int {
	end := pos + len(literal)
	if end > len(v) || string(v[pos:end]) != literal {
		return -1
	}
	return end
}

// skipKey takes the position where a member's name is expected and returns the position of its value, or -1.
func skipKey(v []byte, pos int) int {
	if pos >= len(v) || v[pos] != '"' {
		return -1
	}
	end, _ := skipString(v, pos+1)
	if end < 0 {
		return -1
	}
	return skipColon(v, end)
}

// skipColon returns the position of the value behind a colon, or -1.
func skipColon(v []byte, pos int) int {
	pos = skipSpace(v, pos)
	if pos >= len(v) || v[pos] != ':' {
		return -1
	}
	return skipSpace(v, pos+1)
}

// skipContainer takes the position of an opening bracket with depth containers open around it and returns the position
// after its closing bracket, or -1.
func skipContainer(v []byte, pos, depth int) int {
	var objects [MaxDepth / 64]uint64 // bit n: the container at level n is an object
	level := depth
	for {
		if pos < 0 || pos >= len(v) {
			return -1
		}
		c := v[pos]
		if c != '{' && c != '[' {
			if _, pos = skipScalar(v, pos); pos < 0 {
				return -1
			}
		} else {
			if level == MaxDepth {
				return -1
			}
			bit := uint64(1) << (level & 63)
			objects[level>>6] &^= bit
			if c == '{' {
				objects[level>>6] |= bit
			}
			level++
			pos = skipSpace(v, pos+1)
			if pos >= len(v) {
				return -1
			}
			if v[pos] != c+2 { // '{'+2 is '}', '['+2 is ']'
				if c == '{' {
					pos = skipKey(v, pos)
				}
				continue
			}
			level--
			pos++
		}
		if level, pos = skipClosers(v, pos, level, depth, &objects); pos < 0 || level == depth {
			return pos
		}
	}
}

// skipClosers takes the position after a value and closes containers until one goes on: then it returns the position of
// the next value in it. When the level has come down to depth it returns the position after the last bracket; -1 is an error.
func skipClosers(v []byte, pos, level, depth int, objects *[MaxDepth / 64]uint64) (newLevel, newPos int) {
	for level > depth {
		pos = skipSpace(v, pos)
		if pos >= len(v) {
			return level, -1
		}
		object := objects[(level-1)>>6]>>((level-1)&63)&1 == 1
		switch {
		case v[pos] == ',' && object:
			return level, skipKey(v, skipSpace(v, pos+1))
		case v[pos] == ',':
			return level, skipSpace(v, pos+1)
		case v[pos] == '}' && object, v[pos] == ']' && !object:
			level--
			pos++
		default:
			return level, -1
		}
	}
	return level, pos
}

// skipValue takes the position of a value with depth containers open around it and returns the position after it, or -1.
func skipValue(v []byte, pos, depth int) int {
	if pos < 0 || pos >= len(v) {
		return -1
	}
	if v[pos] == '{' || v[pos] == '[' {
		return skipContainer(v, pos, depth)
	}
	_, end := skipScalar(v, pos)
	return end
}

// ValidJSON says whether text is exactly one JSON text (RFC 8259) in UTF-8, no deeper than MaxDepth, with white space
// around it allowed. Half a surrogate pair as an escape has no UTF-8 form and is not valid. A byte order mark is not valid.
func ValidJSON(text []byte) bool {
	end := skipValue(text, skipSpace(text, 0), 0)
	return end >= 0 && skipSpace(text, end) == len(text) && validUTF8(text)
}
