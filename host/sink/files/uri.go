package files

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fileURI writes an absolute path as Hadoop's Path.toUri does: what a path of java.net.URI may not hold is
// percent-encoded, other characters beyond ASCII stay as they are.
func fileURI(path string) string {
	var b strings.Builder
	b.WriteString("file://")
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		if plainInURI(r, size) {
			b.WriteString(path[i : i+size])
		} else {
			for _, c := range []byte(path[i : i+size]) {
				const hex = "0123456789ABCDEF"
				b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			}
		}
		i += size
	}
	return b.String()
}

func plainInURI(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size <= 1:
		return false
	case r >= utf8.RuneSelf:
		return !unicode.IsControl(r) && !unicode.Is(unicode.Z, r)
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("/-_.!~*'():@&=+$,;", r)
}

// pathOfURI reads a path back from a manifest. Readers of Spark's manifests meet all three forms: file:///x, file:/x, /x.
func pathOfURI(uri string) (string, error) {
	rest, found := strings.CutPrefix(uri, "file:")
	if found {
		rest, _ = strings.CutPrefix(rest, "//")
	}
	return url.PathUnescape(rest)
}
