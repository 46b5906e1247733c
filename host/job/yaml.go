package job

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Bounds on the text of a job file.
const (
	maxFile  = 1 << 20
	maxDepth = 64
	maxNodes = 100_000
)

// load reads the text as one YAML document without anchors, aliases, tags and duplicate keys.
func load(text []byte, c *mistakes) *yaml.Node {
	if m := guardText(text); m != nil {
		c.add(*m)
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(bytes.TrimPrefix(text, []byte("\ufeff")), &doc); err != nil {
		c.add(yamlMistake(text, err))
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		c.add(Mistake{Pos: Pos{1, 1}, Code: CodeYAML, Message: "the file is empty"})
		return nil
	}
	g := guard{c: c}
	if !g.node(doc.Content[0], 0) {
		return nil
	}
	return doc.Content[0]
}

// guardText finds what the parser would not report with a place.
func guardText(text []byte) *Mistake {
	if len(text) > maxFile {
		return &Mistake{Pos: Pos{1, 1}, Code: CodeYAML, Message: fmt.Sprintf("the file has %d bytes; a job file has at most 1 MiB", len(text))}
	}
	line := 1
	for rest := text; len(rest) > 0; line++ {
		row, after, _ := bytes.Cut(rest, []byte("\n"))
		if col, bad := badByte(row); bad {
			return &Mistake{Pos: Pos{line, col}, Code: CodeYAML, Message: "the text is not UTF-8"}
		}
		rest = after
	}
	return nil
}

func badByte(row []byte) (col int, bad bool) {
	col = 1
	for len(row) > 0 {
		r, n := utf8.DecodeRune(row)
		if r == utf8.RuneError && n == 1 {
			return col, true
		}
		row = row[n:]
		col++
	}
	return 0, false
}

// yamlMistake turns the parser's error into a mistake. Some of its errors have no place.
func yamlMistake(text []byte, err error) Mistake {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	if errors.As(err, &many) && len(many.Errors) > 0 {
		one = many.Errors[0]
	} else if !errors.As(err, &one) {
		return Mistake{Pos: Pos{1, 1}, Code: CodeYAML, Message: "not YAML: " + err.Error()}
	}
	m := Mistake{Pos: Pos{max(one.Mark.Line, 1), max(one.Mark.Column, 1)}, Code: CodeYAML}
	switch {
	case strings.Contains(one.Message, "no documents"):
		m.Message = "the file is empty"
	case strings.Contains(one.Message, "found multiple"):
		m.Message = "the file holds several documents; a job file is one"
		m.Line = secondDocument(text)
	case strings.Contains(one.Message, "incompatible YAML"):
		m.Message = "a %YAML directive; job files are YAML 1.2 without one, remove the line"
	case tabAt(text, m.Line) > 0:
		m.Column = tabAt(text, m.Line)
		m.Message = "a tab in the indentation; indent with spaces"
	case openStruct.MatchString(lineUpTo(text, m.Pos)):
		m.Message = `a type with a colon must be quoted here: "struct<name: type>", or written {name: type}`
	default:
		m.Message = "not YAML: " + strings.TrimPrefix(one.Message, "yaml: ")
		if one.ContextMsg != "" {
			m.Message += " " + one.ContextMsg
		}
	}
	return m
}

// openStruct is the beginning of a struct's type without quotes, up to the colon that ends it for YAML.
var openStruct = regexp.MustCompile(`[:,{]\s+[a-z]*[a-z<, ]*struct\s*<[^"'<>{}]*$`)

// lineUpTo returns what stands before a place in its line.
func lineUpTo(text []byte, p Pos) string {
	for range p.Line - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	row, _, _ := bytes.Cut(text, []byte("\n"))
	runes := []rune(string(row))
	return string(runes[:min(max(p.Column-1, 0), len(runes))])
}

// tabAt returns the column of a tab in a line's indentation, 0 when there is none.
func tabAt(text []byte, line int) int {
	for range line - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	row, _, _ := bytes.Cut(text, []byte("\n"))
	indent := row[:len(row)-len(bytes.TrimLeft(row, " \t"))]
	return bytes.IndexByte(indent, '\t') + 1
}

// secondDocument returns the line of the `---` that begins another document.
func secondDocument(text []byte) int {
	seen := false
	for i, row := range bytes.Split(text, []byte("\n")) {
		if bytes.HasPrefix(row, []byte("---")) && seen {
			return i + 1
		}
		row = bytes.TrimSpace(row)
		seen = seen || len(row) > 0 && row[0] != '#' && row[0] != '%'
	}
	return 1
}

// guard refuses what job files do not use and bounds the tree, before anything walks it.
type guard struct {
	c     *mistakes
	nodes int
}

func (g *guard) node(n *yaml.Node, depth int) bool {
	g.nodes++
	switch {
	case depth > maxDepth:
		return g.refuse(n, fmt.Sprintf("nested more than %d deep", maxDepth))
	case g.nodes > maxNodes:
		return g.refuse(n, fmt.Sprintf("more than %d values in one file", maxNodes))
	case n.Kind == yaml.AliasNode:
		return g.refuse(n, "aliases (*"+cut(n.Value)+") are not used in job files; write the value out")
	case n.Anchor != "":
		// Without an alias the value still reads, so the rest of the file is checked too.
		g.refuse(n, "anchors (&"+cut(n.Anchor)+") are not used in job files; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		g.refuse(n, "tags ("+cut(n.Tag)+") are not used in job files; quote a value to make it a text")
	}
	ok := true
	for _, child := range n.Content {
		if !g.node(child, depth+1) {
			ok = false
			if g.nodes > maxNodes {
				return false
			}
		}
	}
	if n.Kind == yaml.MappingNode && !g.keys(n) {
		ok = false
	}
	return ok
}

// keys demands that the keys of a mapping are texts and different. A duplicate does not stop the reading of the file.
func (g *guard) keys(n *yaml.Node) bool {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return g.refuse(k, "a key must be a text")
		}
		if k.Value == "<<" && k.Style == 0 {
			return g.refuse(k, "merge keys (<<) are not used in job files; write the fields out")
		}
		if unopened(k.Value) {
			continue // a part of a type that its commas have torn apart, reported at its head
		}
		if first, dup := seen[k.Value]; dup {
			g.c.add(Mistake{Pos: at(k), Code: CodeDuplicate, Message: fmt.Sprintf("%q is already given on line %d", cut(k.Value), first)})
			continue
		}
		seen[k.Value] = k.Line
	}
	return true
}

func (g *guard) refuse(n *yaml.Node, message string) bool {
	g.c.add(Mistake{Pos: at(n), Code: CodeYAML, Message: message})
	return false
}

func at(n *yaml.Node) Pos { return Pos{Line: n.Line, Column: n.Column} }

// cut shortens a text of the file for a message.
func cut(s string) string {
	if len(s) <= 80 {
		return s
	}
	n := 77
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// scalarKind is what a scalar is by the YAML 1.2 core schema, whatever the library made of it: yes, on and 1:30 are texts.
type scalarKind int

const (
	scalarText scalarKind = iota
	scalarNull
	scalarBool
	scalarInt
	scalarFloat
)

var (
	coreInt   = regexp.MustCompile(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

func scalar(n *yaml.Node) scalarKind {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return scalarText
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return scalarNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return scalarBool
	}
	switch {
	case coreInt.MatchString(n.Value):
		return scalarInt
	case coreFloat.MatchString(n.Value):
		return scalarFloat
	}
	return scalarText
}

// integer returns the exact value of a core integer.
func integer(text string) *big.Int {
	base := 10
	if s, ok := strings.CutPrefix(text, "0x"); ok {
		text, base = s, 16
	} else if s, ok := strings.CutPrefix(text, "0o"); ok {
		text, base = s, 8
	}
	v, ok := new(big.Int).SetString(text, base)
	if !ok {
		return new(big.Int)
	}
	return v
}

// int64Of returns v, or the nearest end of the range when it does not fit.
func int64Of(v *big.Int) int64 {
	switch {
	case v.IsInt64():
		return v.Int64()
	case v.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// kindOf names what a node is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch scalar(n) {
	case scalarNull:
		return "nothing"
	case scalarBool, scalarInt, scalarFloat:
		return cut(n.Value)
	}
	return fmt.Sprintf("%q", cut(n.Value))
}
