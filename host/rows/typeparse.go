package rows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// TypeNames lists the types that ParseType knows, for messages.
const TypeNames = "string, boolean, int8, int16, int32, int64, float, double, decimal(precision,scale), timestamp, timestamp(s|ms|us), timestamp_ntz, date, binary, " +
	"list<type>, map<type, type>, struct<name: type, ..>, each of them possibly followed by not null"

// ParseType reads a type as a job file writes it: "int32", "decimal(9,2) not null", "struct<id: int64, tags: list<string>>".
// Names of fields that are not plain words stand in the quotes of JSON.
func ParseType(s string) (Type, error) {
	p := typeParser{text: s}
	t, err := p.parse(0)
	if err != nil {
		return Type{}, err
	}
	if p.space(); p.at != len(s) {
		return Type{}, fmt.Errorf("type %.200q: %.40q is not expected after %s", s, s[p.at:], t)
	}
	return t, nil
}

type typeParser struct {
	text string
	at   int
}

func (p *typeParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take goes past a token, if it comes next.
func (p *typeParser) take(token string) bool {
	if p.space(); !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *typeParser) word() string {
	p.space()
	start := p.at
	for p.at < len(p.text) && isWord(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

// wrong is an error about the whole text.
func (p *typeParser) wrong(format string, args ...any) error {
	return fmt.Errorf("type %.200q: %s", p.text, fmt.Sprintf(format, args...))
}

// parse reads a type inside of so many others.
func (p *typeParser) parse(depth int) (Type, error) {
	start := p.at
	word := p.word()
	t := Type{}
	for k, name := range kindNames {
		if word == name {
			t.Kind = k
		}
	}
	var err error
	switch t.Kind {
	case 0:
		return t, p.unknown(start)
	case Decimal:
		err = p.decimal(&t)
	case Timestamp:
		err = p.unit(&t)
	case TimestampNTZ:
		if p.take("(") {
			err = p.wrong("a timestamp_ntz has no unit: it is text, as an integer counts from an instant")
		}
	case List, Map, Struct:
		if depth == MaxNesting {
			return t, p.wrong("it nests deeper than %d levels", MaxNesting)
		}
		err = p.inside(&t, depth+1)
	}
	if err != nil {
		return t, err
	}
	if p.take("not") {
		if p.word() != "null" {
			return t, p.wrong("after not only null is possible")
		}
		t.Required = true
	}
	return t, nil
}

func (p *typeParser) unknown(start int) error {
	rest := strings.TrimSpace(p.text[start:])
	if end := strings.IndexAny(rest, "<>,"); end > 0 {
		rest = rest[:end]
	}
	return fmt.Errorf("unknown type %.100q; known are %s", rest, TypeNames)
}

func (p *typeParser) decimal(t *Type) error {
	if !p.take("(") {
		return p.wrong("a decimal is written decimal(precision,scale)")
	}
	precision, err1 := strconv.Atoi(p.word())
	comma := p.take(",")
	scale, err2 := strconv.Atoi(p.word())
	if err := errors.Join(err1, err2); err != nil || !comma || !p.take(")") {
		return p.wrong("a decimal is written decimal(precision,scale)")
	}
	if !validDecimal(precision, scale) {
		return p.wrong(decimalRange)
	}
	t.Precision, t.Scale = precision, scale
	return nil
}

func (p *typeParser) unit(t *Type) error {
	if !p.take("(") {
		return nil
	}
	word := p.word()
	for u := Seconds; u <= Micros; u++ {
		if unitNames[u] == word {
			t.Unit = u
		}
	}
	if t.Unit == NoUnit || !p.take(")") {
		return p.wrong("the unit of a timestamp is s, ms or us, as in timestamp(ms)")
	}
	return nil
}

// inside reads what follows list, map or struct.
func (p *typeParser) inside(t *Type, depth int) error {
	if !p.take("<") {
		return p.wrong("what a %s holds is written in angle brackets", t.Kind)
	}
	var err error
	switch t.Kind {
	case Struct:
		err = p.fields(t, depth)
	case Map:
		t.Key = &Type{}
		if *t.Key, err = p.parse(depth); err != nil {
			return err
		}
		t.Key.Required = false
		if !t.Key.Kind.isKey() {
			return p.wrong("the keys of a map are not %s; they can be neither floats nor nested", t.Key.Kind)
		}
		if !p.take(",") {
			return p.wrong("a map is written map<key type, value type>")
		}
		fallthrough
	default:
		t.Elem = &Type{}
		*t.Elem, err = p.parse(depth)
	}
	if err != nil {
		return err
	}
	if !p.take(">") {
		return p.wrong("a > is missing after what a %s holds", t.Kind)
	}
	return nil
}

func (p *typeParser) fields(t *Type, depth int) error {
	for {
		name, err := p.name()
		if err != nil {
			return err
		}
		if !p.take(":") {
			return p.wrong("a struct is written struct<name: type, ..>; a colon is missing after %.100q", name)
		}
		f, err := p.parse(depth)
		if err != nil {
			return err
		}
		if len(t.Fields) == MaxLeaves {
			return p.wrong("a struct has more than %d fields", MaxLeaves)
		}
		t.Fields = append(t.Fields, Column{Name: name, Type: f})
		if !p.take(",") {
			return nil
		}
	}
}

// name reads the name of a field.
func (p *typeParser) name() (string, error) {
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != '"' {
		name := p.word()
		if name == "" {
			return "", p.wrong("the name of a field is missing, or not a plain word and not in double quotes")
		}
		return name, nil
	}
	end, flags := scanString([]byte(p.text), p.at+1)
	if end < 0 {
		return "", p.wrong("the quotes around a name do not end")
	}
	raw := p.text[p.at+1 : end]
	p.at = end + 1
	if flags&hasEscape == 0 {
		return raw, nil
	}
	name, ok := unescape(nil, []byte(raw))
	if !ok {
		return "", p.wrong("the name %.100q has an escape that JSON does not know", raw)
	}
	return string(name), nil
}
