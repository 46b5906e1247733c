package abi

import (
	"errors"
	"unicode/utf8"
)

// ErrBadEscape says that a JSON string's body holds an escape that JSON does not have, half a surrogate pair, or ends
// inside an escape.
var ErrBadEscape = errors.New("bad escape in a JSON string")

// UnescapeString appends the text of a JSON string's body (what lies between its quotes, as a field of kind FieldString
// or FieldEscaped holds it) to dst.
func UnescapeString(raw, dst []byte) ([]byte, error) {
	for pos := 0; pos < len(raw); {
		if raw[pos] != '\\' {
			dst = append(dst, raw[pos])
			pos++
			continue
		}
		if pos+1 == len(raw) {
			return dst, ErrBadEscape
		}
		if raw[pos+1] == 'u' {
			r, end := unicodeEscape(raw, pos)
			if end < 0 {
				return dst, ErrBadEscape
			}
			dst = utf8.AppendRune(dst, r)
			pos = end
			continue
		}
		c, ok := unescaped(raw[pos+1])
		if !ok {
			return dst, ErrBadEscape
		}
		dst = append(dst, c)
		pos += 2
	}
	return dst, nil
}

func unescaped(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// AppendJSONString appends text, which is UTF-8, as a JSON string with the shortest escapes: only the quote, the
// backslash and control characters are escaped, as \b \t \n \f \r where there is such a form, else as \u00 and two
// lower-case hex digits (RFC 8785 section 3.2.2.2).
func AppendJSONString(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}
