package sql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/rows"
)

// Statement is a statement of a user, with numbered parameters in place of named ones.
type Statement struct {
	SQL     string // with $1, $2 .., or as the database has numbered parameters
	Columns []int  // of the schema, by parameter

	text   string
	places []places
}

// places are two offsets, from which on SQL and the text of the user are the same up to the next ones.
type places struct{ sql, text int }

// ParseStatement reads SQL of a kind of database, as Database.Kind has it, with a parameter :column, or :"column", for the value
// of a column. Quoted texts, quoted names, comments and casts (::) are left alone. A column that stands twice is two parameters:
// each may be of another type.
func ParseStatement(kind, text string, schema *rows.Schema) (Statement, error) {
	d := dialects[kind]
	if d == nil {
		return Statement{}, fmt.Errorf("databases of kind %q take no statement", kind)
	}
	p := statementParser{dialect: d, in: text, schema: schema}
	if err := p.parse(); err != nil {
		return Statement{}, fmt.Errorf("at %s of the statement: %w", placeIn(text, p.at), err)
	}
	if len(p.columns) == 0 {
		return Statement{}, errors.New("the statement has no parameter, such as :" + schema.Column(0).Name)
	}
	if !slices.Contains(statementVerbs, p.verb) {
		return Statement{}, fmt.Errorf("the statement begins with %q; possible are %s", p.verb, strings.Join(statementVerbs, ", "))
	}
	return Statement{SQL: p.out.String(), Columns: p.columns, text: text, places: p.places}, nil
}

// Placed adds to an error of the database where in the user's text it is, which the database says in characters of SQL from 1; 0
// when it does not.
func (s *Statement) Placed(err error, position int) error {
	if err == nil || position < 1 || position > utf8.RuneCountInString(s.SQL)+1 {
		return err
	}
	at := 0
	for range position - 1 {
		_, n := utf8.DecodeRuneInString(s.SQL[at:])
		at += n
	}
	var before places
	for _, p := range s.places {
		if p.sql <= at {
			before = p
		}
	}
	return fmt.Errorf("%w, at %s of the statement", err, placeIn(s.text, min(before.text+at-before.sql, len(s.text))))
}

// placeIn returns line:column of an offset, both from 1, columns in characters.
func placeIn(text string, at int) string {
	line := strings.LastIndexByte(text[:at], '\n') + 1
	return fmt.Sprintf("%d:%d", 1+strings.Count(text[:at], "\n"), 1+utf8.RuneCountInString(text[line:at]))
}

// statementVerbs are what a statement may begin with: the transaction is ours to end.
var statementVerbs = []string{"insert", "update", "delete", "merge", "replace", "with", "select", "call"}

type statementParser struct {
	dialect *dialect
	in      string
	at      int
	schema  *rows.Schema
	out     strings.Builder
	columns []int
	places  []places
	verb    string
	within  int  // brackets that are open
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

// token returns how many bytes are to be copied; 0 after what is dealt with already.
func (p *statementParser) token() (int, error) {
	s := p.in[p.at:]
	switch {
	case strings.HasPrefix(s, "--"):
		if end := strings.IndexByte(s, '\n'); end >= 0 {
			return end + 1, nil
		}
		return len(s), nil
	case strings.HasPrefix(s, "/*"):
		return p.dialect.comment(s)
	case s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r':
		return 1, nil
	case p.ended:
		return 0, errors.New("it is more than one statement")
	case s[0] == ';':
		p.ended = true
		p.replace("", 1)
		return 0, nil
	case s[0] == 0:
		return 0, errors.New("it has a zero byte")
	case s[0] == '\'':
		return quoted(s, '\'', false)
	case p.dialect.quotes[s[0]] != 0:
		return quoted(s, p.dialect.quotes[s[0]], false)
	case s[0] == ':':
		return p.colon(s)
	case strings.IndexByte(p.dialect.params, s[0]) >= 0:
		return 0, fmt.Errorf("parameter %s: write it as :name, with the name of the schema's column whose value it takes", s[:1+nameLength(s[1:])])
	case s[0] == '$' && p.dialect.escapes:
		return dollarQuoted(s)
	case isNameByte(s[0]):
		return p.word(s)
	case s[0] == '[':
		p.within++
	case s[0] == ']':
		p.within--
	}
	return 1, nil
}

func (p *statementParser) word(s string) (int, error) {
	n := wordLength(s)
	if p.verb == "" {
		p.verb = strings.ToLower(s[:n])
	}
	if p.dialect.escapes && n == 1 && s[0]|0x20 == 'e' && strings.HasPrefix(s[1:], "'") {
		length, err := quoted(s[1:], '\'', true)
		return 1 + length, err
	}
	return n, nil
}

func (p *statementParser) colon(s string) (int, error) {
	if cast := strings.HasPrefix(s, "::"); cast || strings.HasPrefix(s, ":=") {
		switch {
		case p.dialect.casts:
			return 2, nil
		case cast:
			return 0, fmt.Errorf("a cast is written CAST(:column AS type) in %s", p.dialect.name)
		}
	}
	if p.within > 0 && !beginsName(s[1:]) {
		return 1, nil // of a part of an array, [1:2]
	}
	return 0, p.parameter(s)
}

// beginsName reports whether the name of a parameter stands at the start of s.
func beginsName(s string) bool {
	return s != "" && (s[0] == '"' || isNameByte(s[0]) && (s[0] < '0' || s[0] > '9'))
}

func (p *statementParser) parameter(s string) error {
	name, length := "", 0
	switch {
	case !beginsName(s[1:]):
		return errors.New("a colon without a name")
	case s[1] == '"':
		n, err := quoted(s[1:], '"', false)
		if err != nil {
			return err
		}
		name, length = strings.ReplaceAll(s[2:n], `""`, `"`), 1+n
	default:
		n := nameLength(s[1:])
		name, length = s[1:1+n], 1+n
	}
	col := p.schema.Index(name)
	if col < 0 {
		return fmt.Errorf("parameter :%s: the schema has no such column (a colon that is none of a parameter has a blank behind it)", name)
	}
	p.columns = append(p.columns, col)
	p.replace(p.dialect.param+strconv.Itoa(len(p.columns)), length)
	return nil
}

// replace writes something else in place of what stands at the front.
func (p *statementParser) replace(by string, length int) {
	p.places = append(p.places, places{p.out.Len(), p.at})
	p.out.WriteString(by)
	p.at += length
	p.places = append(p.places, places{p.out.Len(), p.at})
}
