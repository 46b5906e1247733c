package files

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// uriPlain are the ASCII bytes that java.net.URI leaves alone in a path, and that Spark so writes as they are.
const uriPlain = "-_.!~'()*,;:$&+=/@"

const hexDigits = "0123456789ABCDEF"

// toURI writes an absolute path as Spark's file source log does: file://, blank and percent and all else that a URI
// forbids escaped, other characters raw. Bytes that are not UTF-8 are escaped, so that every name survives JSON.
func toURI(path string) string {
	var b strings.Builder
	b.Grow(len(path) + 8)
	b.WriteString("file://")
	for i := 0; i < len(path); {
		c := path[i]
		if c < utf8.RuneSelf {
			if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte(uriPlain, c) >= 0 {
				b.WriteByte(c)
			} else {
				escape(&b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError || r < 0xa0 {
			for _, c := range []byte(path[i : i+n]) {
				escape(&b, c)
			}
		} else {
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

func escape(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(hexDigits[c>>4])
	b.WriteByte(hexDigits[c&15])
}

// fromURI reads what toURI and Spark write: file:///x, file:/x or a bare path.
func fromURI(uri string) (string, error) {
	path := uri
	if rest, ok := strings.CutPrefix(path, "file:"); ok {
		path = strings.TrimPrefix(rest, "//")
	}
	if !strings.HasPrefix(path, "/") {
		return "", errors.New("not an absolute path of this machine: " + uri)
	}
	if strings.IndexByte(path, '%') < 0 {
		return path, nil
	}
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b = append(b, path[i])
			continue
		}
		if i+2 >= len(path) {
			return "", errors.New("bad escape in path: " + uri)
		}
		hi, lo := unhex(path[i+1]), unhex(path[i+2])
		if hi < 0 || lo < 0 {
			return "", errors.New("bad escape in path: " + uri)
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
