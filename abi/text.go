package abi

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// EscapeText makes bytes from a guest fit to show: at most limit bytes of them, cut at a whole character, with
// backslashes doubled and everything that is not printable UTF-8 written as an escape, so that it stays on one line.
func EscapeText(b []byte, limit int) string {
	b = cutText(b, limit)
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, b[0])
		case r == '\\':
			out = append(out, `\\`...)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case strconv.IsPrint(r):
			out = append(out, b[:n]...)
		default:
			out = fmt.Appendf(out, `\u{%x}`, r)
		}
		b = b[n:]
	}
	return string(out)
}

// cutText cuts b to at most limit bytes. A character that the cut would split is left out whole.
func cutText(b []byte, limit int) []byte {
	if len(b) <= limit {
		return b
	}
	for back := 0; back < utf8.UTFMax && back < limit; back++ {
		at := limit - back
		if !utf8.RuneStart(b[at]) {
			continue
		}
		if r, n := utf8.DecodeRune(b[at:]); r != utf8.RuneError || n > 1 {
			return b[:at]
		}
		break
	}
	return b[:limit]
}
