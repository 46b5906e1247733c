package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Name is the name of a table.
type Name struct {
	Schema string // "" when the database is to find it
	Table  string
}

// ParseName reads a table's name as a job file has it: name or schema.name, each part as the database has it, letter by
// letter, or in double quotes, which are doubled inside.
func ParseName(s string) (Name, error) {
	var parts []string
	rest := s
	for {
		part, after, err := namePart(rest)
		if err != nil {
			return Name{}, fmt.Errorf("%.200q is no name of a table: %w", s, err)
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		if after[0] != '.' {
			return Name{}, fmt.Errorf("%.200q is no name of a table: something follows a quoted part", s)
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		return Name{Table: parts[0]}, nil
	case 2:
		return Name{Schema: parts[0], Table: parts[1]}, nil
	}
	return Name{}, fmt.Errorf("%.200q is no name of a table: it has %d parts, and a schema and a table are two", s, len(parts))
}

func namePart(s string) (part, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		at := strings.IndexByte(s, '.')
		if at < 0 {
			at = len(s)
		}
		return s[:at], s[at:], checkIdent(s[:at])
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), s[i+1:], checkIdent(b.String())
	}
	return "", "", fmt.Errorf("a quote is not closed")
}

func checkIdent(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("a part is empty")
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("it is not valid text")
	}
	return nil
}

// Quote returns an identifier in quotes, as both databases take it.
func Quote(ident string) string { return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"` }

// Quoted returns the name as SQL.
func (n Name) Quoted() string {
	if n.Schema == "" {
		return Quote(n.Table)
	}
	return Quote(n.Schema) + "." + Quote(n.Table)
}
