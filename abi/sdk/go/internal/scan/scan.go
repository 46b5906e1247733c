// Package scan finds JSON values at addresses in linear memory, eight bytes a step.
//
// It looks for where values lie and does not check what it skips: a record's value has been checked by the host. On other
// bytes it always ends and never reads more than eight bytes behind the end it is given.
package scan

import (
	"math/bits"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

// The kinds of JSON values, as ABI 1 numbers them.
const (
	Absent = iota
	Null
	False
	True
	Number
	String
	Escaped
	Object
	Array
)

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// Span is where a value lies: address, length and kind, packed as in a frame. A string is without its quotes.
type Span uint64

// Make packs a span.
func Make(kind, at, end uint64) Span {
	return Span(at) | Span(end-at)<<32 | Span(kind)<<60
}

// At is where the value begins.
func (s Span) At() uint64 { return uint64(uint32(s)) }

// Len is its length in bytes.
func (s Span) Len() uint64 { return uint64(s) >> 32 & 0x0fffffff }

// Kind is what it is.
func (s Span) Kind() uint64 { return uint64(s) >> 60 }

// equal has a bit at the top of each byte of w that equals c; a byte after such a one may be marked too.
func equal(w uint64, c uint64) uint64 {
	x := w ^ c*ones
	return (x - ones) & ^x & high
}

func blanks(a, end uint64) uint64 {
	for a < end {
		if c := mem.U8(a); c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		a++
	}
	return a
}

// quote is where the string whose first character is at a ends (at its closing quote), and whether it holds escapes. It
// is end when there is no closing quote.
func quote(a, end uint64) (uint64, bool) {
	escaped := false
	for a < end {
		w := mem.U64(a)
		hit := equal(w, '"') | equal(w, '\\')
		if hit == 0 {
			a += 8
			continue
		}
		a += uint64(bits.TrailingZeros64(hit)) / 8
		if a >= end {
			break
		}
		if mem.U8(a) == '"' {
			return a, escaped
		}
		escaped = true
		a += 2
	}
	return end, escaped
}

// nested is one past the bracket that closes the object or array at a, or 0.
func nested(a, end uint64) uint64 {
	for depth := 0; a < end; a++ {
		w := mem.U64(a)
		folded := w | 0x20*ones
		hit := equal(w, '"') | equal(folded, '{') | equal(folded, '}')
		if hit == 0 {
			a += 7
			continue
		}
		a += uint64(bits.TrailingZeros64(hit)) / 8
		if a >= end {
			break
		}
		switch mem.U8(a) {
		case '"':
			a, _ = quote(a+1, end)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return a + 1
			}
		}
	}
	return 0
}

// Value is the value at a and where it ends; the end is 0 when there is none.
func Value(a, end uint64) (Span, uint64) {
	if a >= end {
		return 0, 0
	}
	kind := uint64(Number)
	switch mem.U8(a) {
	case '"':
		to, escaped := quote(a+1, end)
		if to >= end {
			return 0, 0
		}
		kind = String
		if escaped {
			kind = Escaped
		}
		return Make(kind, a+1, to), to + 1
	case '{', '[':
		to := nested(a, end)
		if to == 0 {
			return 0, 0
		}
		kind = Object
		if mem.U8(a) == '[' {
			kind = Array
		}
		return Make(kind, a, to), to
	case 'n':
		kind = Null
	case 't':
		kind = True
	case 'f':
		kind = False
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
	default:
		return 0, 0
	}
	to := a + 1
	for to < end {
		if c := mem.U8(to); c <= ' ' || c == ',' || c == '}' || c == ']' {
			break
		}
		to++
	}
	return Make(kind, a, to), to
}

// Whole is the one value of the n bytes at a; 0 when there is none, or more than one.
func Whole(a, n uint64) Span {
	s, end := Value(blanks(a, a+n), a+n)
	if end == 0 || blanks(end, a+n) != a+n {
		return 0
	}
	return s
}

// Walk steps through an object or array.
type Walk struct {
	at, end uint64
}

// Begin is a walk through s, which has no steps when s is of another kind.
func Begin(s Span, kind uint64) Walk {
	if s.Kind() != kind {
		return Walk{}
	}
	return Walk{at: s.At() + 1, end: s.At() + s.Len()}
}

// Member is the next member; false after the last one, or where the text is no JSON.
func (w *Walk) Member() (name, value Span, ok bool) {
	at := blanks(w.at, w.end)
	if at >= w.end || mem.U8(at) != '"' {
		return 0, 0, false
	}
	name, at = Value(at, w.end)
	if at == 0 {
		return 0, 0, false
	}
	if at = blanks(at, w.end); at >= w.end || mem.U8(at) != ':' {
		return 0, 0, false
	}
	w.at = at + 1
	value, ok = w.Element()
	return name, value, ok
}

// Element is the next element; false after the last one, or where the text is no JSON.
func (w *Walk) Element() (Span, bool) {
	value, at := Value(blanks(w.at, w.end), w.end)
	if at == 0 {
		w.at = w.end
		return 0, false
	}
	if at = blanks(at, w.end); at < w.end && mem.U8(at) == ',' {
		w.at = at + 1
	} else {
		w.at = w.end
	}
	return value, true
}

// Is says whether s is a string of exactly these characters.
func Is(s Span, text string) bool {
	switch s.Kind() {
	case String:
		return mem.String(s.At(), s.Len()) == text
	case Escaped:
		return string(Unescape(s)) == text
	}
	return false
}

// Unescape is a string's characters. What is no valid escape, or half a surrogate pair, becomes U+FFFD.
func Unescape(s Span) []byte {
	raw := mem.Bytes(s.At(), s.Len())
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		c := byte(0)
		if i < len(raw) {
			c = raw[i]
		}
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, used := unicode(raw[i+1:])
			out = utf8.AppendRune(out, r)
			i += used
		default:
			out = utf8.AppendRune(out, utf8.RuneError)
		}
	}
	return out
}

// unicode is the character of the digits behind \u, and how many bytes it takes with the second half of a pair.
func unicode(b []byte) (rune, int) {
	first := hex4(b)
	if first < 0 {
		return utf8.RuneError, 0
	}
	if first < 0xd800 || first > 0xdfff {
		return first, 4
	}
	if first < 0xdc00 && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if second := hex4(b[6:]); second >= 0xdc00 && second <= 0xdfff {
			return 0x10000 + (first-0xd800)<<10 + (second - 0xdc00), 10
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n := rune(0)
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		n = n<<4 | rune(c)
	}
	return n
}
