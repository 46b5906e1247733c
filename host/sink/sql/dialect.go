package sql

import (
	"errors"
	"fmt"
	"strings"
)

// dialect is how a kind of database reads the text of a statement, where that matters for finding parameters.
type dialect struct {
	name string
	// nested comments hold others.
	nested bool
	// escapes: E'..' is a text with backslashes, $tag$ .. $tag$ one without any.
	escapes bool
	// casts are written ::, and arguments by name :=.
	casts bool
	// quotes are the quotes of names, with what ends them.
	quotes map[byte]byte
	// param begins a numbered parameter.
	param string
	// params are the characters that begin a parameter, and that mean nothing else.
	params string
}

// dialects are those of the kinds of databases.
var dialects = map[string]*dialect{
	"postgres": {name: "PostgreSQL", nested: true, escapes: true, casts: true, quotes: map[byte]byte{'"': '"'}, param: "$"},
	"sqlite":   {name: "SQLite", quotes: map[byte]byte{'"': '"', '`': '`', '[': ']'}, param: "?", params: "?@$"},
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 0x80 || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// nameLength returns the length of the name of a parameter at the start of s.
func nameLength(s string) int {
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

// wordLength returns the length of a word or a number at the start of s. A word may have a $, but not as its first character.
func wordLength(s string) int {
	n := nameLength(s)
	for isDigit := s[0] >= '0' && s[0] <= '9'; !isDigit && n < len(s) && s[n] == '$'; {
		n += 1 + nameLength(s[n+1:])
	}
	return n
}

// quoted returns the length of what stands in quotes at the start of s, where the quote that ends it is doubled; a ] cannot be.
func quoted(s string, end byte, escapes bool) (int, error) {
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] != end:
		case end != ']' && i+1 < len(s) && s[i+1] == end:
			i++
		default:
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("a %c is not closed", s[0])
}

// dollarQuoted returns the length of a text in $tag$ .. $tag$; a lone $ is a character like others.
func dollarQuoted(s string) (int, error) {
	n := 1 + nameLength(s[1:])
	numbered := n > 1 && s[1] >= '0' && s[1] <= '9'
	switch {
	case numbered:
		return 0, fmt.Errorf("parameter %s: parameters have names here, as :column", s[:n])
	case n == len(s) || s[n] != '$':
		return 1, nil
	}
	end := strings.Index(s[n+1:], s[:n+1])
	if end < 0 {
		return 0, fmt.Errorf("%s is not closed", s[:n+1])
	}
	return n + 1 + end + n + 1, nil
}

// comment returns the length of a comment in /* */ at the start of s.
func (d *dialect) comment(s string) (int, error) {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			if depth == 0 || d.nested {
				depth++
			}
			i++
		case "*/":
			if depth--; depth == 0 {
				return i + 2, nil
			}
			i++
		}
	}
	return 0, errors.New("a comment is not closed")
}
