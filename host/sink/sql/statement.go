package sql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
)

// Statement is a statement of a user, with numbered parameters in place of named ones.
type Statement struct {
	SQL     string // with $1, $2 ..
	Columns []int  // of the schema, by parameter
}

// ParseStatement reads SQL with a parameter :column, or :"column", for the value of a column. Quoted texts, quoted names,
// comments and casts (::) are left alone. A column that stands twice is two parameters: each may be of another type.
func ParseStatement(text string, schema *rows.Schema) (Statement, error) {
	p := statementParser{in: text, schema: schema}
	if err := p.parse(); err != nil {
		return Statement{}, fmt.Errorf("statement: %w", err)
	}
	if len(p.columns) == 0 {
		return Statement{}, errors.New("statement: it has no parameter, such as :" + schema.Column(0).Name)
	}
	if !slices.Contains(statementVerbs, p.verb) {
		return Statement{}, fmt.Errorf("statement: it begins with %q; possible are %s", p.verb, strings.Join(statementVerbs, ", "))
	}
	return Statement{SQL: p.out.String(), Columns: p.columns}, nil
}

// statementVerbs are what a statement may begin with: the transaction is ours to end.
var statementVerbs = []string{"insert", "update", "delete", "merge", "replace", "with", "select", "call"}

type statementParser struct {
	in      string
	at      int
	schema  *rows.Schema
	out     strings.Builder
	columns []int
	verb    string
	ended   bool // by a semicolon
}

func (p *statementParser) parse() error {
	for p.at < len(p.in) {
		n, err := p.token()
		if err != nil {
			return err
		}
		if n > 0 {
			p.out.WriteString(p.in[p.at : p.at+n])
			p.at += n
		}
	}
	return nil
}

// token returns how many bytes are to be copied; 0 after a parameter, which is written already.
func (p *statementParser) token() (int, error) {
	s := p.in[p.at:]
	switch {
	case strings.HasPrefix(s, "--"):
		if end := strings.IndexByte(s, '\n'); end >= 0 {
			return end + 1, nil
		}
		return len(s), nil
	case strings.HasPrefix(s, "/*"):
		return blockComment(s)
	case s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r':
		return 1, nil
	case p.ended:
		return 0, errors.New("it is more than one statement")
	case s[0] == ';':
		p.ended = true
		p.at++
		return 0, nil
	case s[0] == 0:
		return 0, errors.New("it has a zero byte")
	case s[0] == '\'':
		return quoted(s, '\'', p.at > 0 && (p.in[p.at-1]|0x20) == 'e')
	case s[0] == '"':
		return quoted(s, '"', false)
	case s[0] == '$':
		return dollarQuoted(s)
	case strings.HasPrefix(s, "::"), strings.HasPrefix(s, ":="):
		return 2, nil
	case s[0] == ':':
		return 0, p.parameter(s)
	case isNameByte(s[0]):
		n := nameLength(s)
		if p.verb == "" {
			p.verb = strings.ToLower(s[:n])
		}
		if n == 1 && len(s) > 1 && s[1] == '\'' {
			return 1, nil // E'..', whose quote asks for what stands before it
		}
		return n, nil
	}
	return 1, nil
}

func (p *statementParser) parameter(s string) error {
	name, length := "", 0
	switch {
	case len(s) > 1 && s[1] == '"':
		n, err := quoted(s[1:], '"', false)
		if err != nil {
			return err
		}
		name, length = strings.ReplaceAll(s[2:n], `""`, `"`), 1+n
	case len(s) > 1 && isNameByte(s[1]) && (s[1] < '0' || s[1] > '9'):
		n := nameLength(s[1:])
		name, length = s[1:1+n], 1+n
	default:
		return fmt.Errorf("a colon without a name at byte %d", p.at)
	}
	col := p.schema.Index(name)
	if col < 0 {
		return fmt.Errorf("parameter :%s: the schema has no such column", name)
	}
	p.columns = append(p.columns, col)
	p.out.WriteString("$" + strconv.Itoa(len(p.columns)))
	p.at += length
	return nil
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 0x80 || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

func nameLength(s string) int {
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

// quoted returns the length of a quoted text at the start of s.
func quoted(s string, quote byte, escapes bool) (int, error) {
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("a %c is not closed", quote)
}

// dollarQuoted returns the length of a text in $tag$ .. $tag$; a lone $ is a character like others.
func dollarQuoted(s string) (int, error) {
	n := 1 + nameLength(s[1:])
	if n == len(s) || s[n] != '$' || n > 1 && s[1] >= '0' && s[1] <= '9' {
		if n > 1 && s[1] >= '0' && s[1] <= '9' {
			return 0, fmt.Errorf("parameter %s: parameters have names here, as :column", s[:n])
		}
		return 1, nil
	}
	end := strings.Index(s[n+1:], s[:n+1])
	if end < 0 {
		return 0, fmt.Errorf("%s is not closed", s[:n+1])
	}
	return n + 1 + end + n + 1, nil
}

// blockComment returns the length of a comment, which may have others in it.
func blockComment(s string) (int, error) {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
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
