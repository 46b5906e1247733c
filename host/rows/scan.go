package rows

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in a value.
const MaxDepth = 1024

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func literal(b []byte, i int, word string) bool {
	return len(b)-i >= len(word) && string(b[i:i+len(word)]) == word
}

// What scanString saw.
const (
	hasEscape = 1
	hasHigh   = 2 // bytes above 0x7f: UTF-8 to be checked
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks the bytes of x that end or interrupt plain text: quotes, backslashes, control characters, and bytes above
// 0x7f. The lowest mark is exact; above it there may be false ones.
func special(x uint64) uint64 {
	q, s := x^(ones*'"'), x^(ones*'\\')
	return ((q-ones)&^q | (s-ones)&^s | (x-ones*0x20)&^x | x) & highs
}

// scanString returns the index of the quote that ends the string whose text begins at i, or -1.
func scanString(b []byte, i int) (end int, flags uint8) {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		mask := special(x)
		if mask == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(mask) >> 3
		switch c := b[i]; {
		case c == '"':
			return i, flags
		case c == '\\':
			flags |= hasEscape
			i += 2
		case c >= 0x80:
			flags |= hasHigh
			i++
		default:
			return -1, flags
		}
	}
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			return i, flags
		case c == '\\':
			flags |= hasEscape
			i += 2
		case c < 0x20:
			return -1, flags
		case c >= 0x80:
			flags |= hasHigh
			i++
		default:
			i++
		}
	}
	return -1, flags
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends the text of a raw JSON string. It fails on unknown escapes, lone surrogates and invalid UTF-8.
func unescape(dst, raw []byte) ([]byte, bool) {
	start := len(dst)
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		if i+1 >= len(raw) {
			return dst, false
		}
		if e := escapes[raw[i+1]]; e != 0 {
			dst = append(dst, e)
			i += 2
			continue
		}
		r, ok := hex4(raw, i)
		if !ok {
			return dst, false
		}
		i += 6
		if r >= 0xd800 && r <= 0xdfff {
			low, ok := hex4(raw, i)
			if !ok || r > 0xdbff || low < 0xdc00 || low > 0xdfff {
				return dst, false
			}
			r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
			i += 6
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, utf8.Valid(dst[start:])
}

// hex4 reads the escape \uXXXX at i.
func hex4(b []byte, i int) (rune, bool) {
	if len(b)-i < 6 || b[i] != '\\' || b[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// checkString checks the string whose opening quote is at i and returns the index after its closing quote.
func checkString(b []byte, i int) (int, failure) {
	end, flags := scanString(b, i+1)
	if end < 0 {
		return i, failure{notJSON, i}
	}
	raw := b[i+1 : end]
	if flags&hasHigh != 0 && !utf8.Valid(raw) {
		return i, failure{badString, i}
	}
	if flags&hasEscape != 0 && !escapesValid(raw) {
		return i, failure{badEscape, i}
	}
	return end + 1, failure{}
}

// escapesValid reports whether all escapes are JSON's. Lone surrogates are allowed, as JSON allows them: nobody has asked
// for the text.
func escapesValid(raw []byte) bool {
	for i := 0; i < len(raw); {
		switch {
		case raw[i] != '\\':
			i++
		case i+1 < len(raw) && escapes[raw[i+1]] != 0:
			i += 2
		default:
			if _, ok := hex4(raw, i); !ok {
				return false
			}
			i += 6
		}
	}
	return true
}

// unfit is the failure of the string at i whose text cannot be made.
func unfit(raw []byte, i int) failure {
	if escapesValid(raw) {
		return failure{badString, i}
	}
	return failure{badEscape, i}
}

// CheckJSON reports whether b is one JSON text in UTF-8, and if not the index of the byte where that is seen.
func CheckJSON(b []byte) (at int, ok bool) {
	fail := checkJSON(b)
	return fail.at, fail.code == fits
}

func checkJSON(b []byte) failure {
	i, fail := skipValue(b, skipSpace(b, 0))
	if fail.code != fits {
		return fail
	}
	if i = skipSpace(b, i); i != len(b) {
		return failure{notJSON, i}
	}
	return failure{at: i}
}

// nesting is a stack of bits: which of the open containers are objects. With it no input makes the scanner recurse.
type nesting struct {
	objects [MaxDepth / 64]uint64
	depth   int
}

func (n *nesting) push(object bool) bool {
	if n.depth == MaxDepth {
		return false
	}
	word, bit := n.depth>>6, uint64(1)<<(n.depth&63)
	n.objects[word] &^= bit
	if object {
		n.objects[word] |= bit
	}
	n.depth++
	return true
}

// inObject tells of the innermost container.
func (n *nesting) inObject() bool {
	at := n.depth - 1
	return n.objects[at>>6]&(1<<(at&63)) != 0
}

// skipValue checks the JSON value at i and returns the index after it.
func skipValue(b []byte, i int) (int, failure) {
	var n nesting
	for {
		if i >= len(b) {
			return i, failure{notJSON, i}
		}
		var fail failure
		opened := b[i] == '{' || b[i] == '['
		if opened {
			if !n.push(b[i] == '{') {
				return i, failure{tooDeep, i}
			}
			i = skipSpace(b, i+1)
		} else if i, fail = skipScalar(b, i); fail.code != fits {
			return i, fail
		}
		if i, fail = n.next(b, i, opened); fail.code != fits || n.depth == 0 {
			return i, fail
		}
	}
}

// next goes from the end of a value, or the start of a container that was just opened, to the next value in it. It closes
// all containers that end there.
func (n *nesting) next(b []byte, i int, opened bool) (int, failure) {
	for n.depth > 0 {
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, failure{notJSON, i}
		}
		object := n.inObject()
		if c := b[i]; c == '}' && object || c == ']' && !object {
			i++
			n.depth--
			opened = false
			continue
		}
		if !opened {
			if b[i] != ',' {
				return i, failure{notJSON, i}
			}
			i = skipSpace(b, i+1)
		}
		if object {
			return skipKey(b, i)
		}
		return i, failure{}
	}
	return i, failure{}
}

func skipScalar(b []byte, i int) (int, failure) {
	switch c := b[i]; {
	case c == '"':
		return checkString(b, i)
	case c == '-' || c >= '0' && c <= '9':
		end, ok := scanNumber(b, i)
		if !ok {
			return i, failure{notJSON, i}
		}
		return end, failure{}
	case literal(b, i, "true"), literal(b, i, "null"):
		return i + 4, failure{}
	case literal(b, i, "false"):
		return i + 5, failure{}
	}
	return i, failure{notJSON, i}
}

func skipKey(b []byte, i int) (int, failure) {
	if i >= len(b) || b[i] != '"' {
		return i, failure{notJSON, i}
	}
	i, fail := checkString(b, i)
	if fail.code != fits {
		return i, fail
	}
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return i, failure{notJSON, i}
	}
	return skipSpace(b, i+1), failure{}
}

// scanNumber returns the index after the JSON number at i.
func scanNumber(b []byte, i int) (int, bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, false
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		end := digits(b, i+1)
		if end == i+1 {
			return i, false
		}
		i = end
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digits(b, i)
		if end == i {
			return i, false
		}
		i = end
	}
	return i, true
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// wrongType is the failure for a value of another kind at i: of the type if it is a JSON value at all.
func wrongType(b []byte, i int) failure {
	if _, fail := skipValue(b, i); fail.code != fits {
		return fail
	}
	return failure{badType, i}
}
