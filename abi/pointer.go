package abi

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParsePointer splits a JSON pointer (RFC 6901) into its unescaped reference tokens. The empty pointer has none and
// names the whole value.
func ParsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("JSON pointer %q: must be empty or begin with a slash", pointer)
	}
	if !utf8.ValidString(pointer) {
		return nil, fmt.Errorf("JSON pointer %q: not UTF-8", pointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		for at := strings.IndexByte(token, '~'); at >= 0; {
			if at+1 == len(token) || token[at+1] != '0' && token[at+1] != '1' {
				return nil, fmt.Errorf("JSON pointer %q: a ~ must be written ~0, and a slash in a name ~1", pointer)
			}
			next := strings.IndexByte(token[at+1:], '~')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// arrayIndex is the array index that a reference token names, or -1. RFC 6901 allows no leading zero; "-" names the
// element after the last, which is never there.
func arrayIndex(token string) int {
	if token == "" || len(token) > 9 || token[0] == '0' && len(token) > 1 {
		return -1
	}
	n := 0
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}
