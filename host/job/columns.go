package job

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/wasmill/wasmill/host/rows"
)

// Column is one column of a sink's schema, by its name in the JSON object.
type Column struct {
	Name string
	Type ColumnType
}

// ColumnType is the type of a column.
type ColumnType struct {
	// Kind is string, boolean, int8, int16, int32, int64, float, double, decimal, timestamp, timestamp_ntz, date, binary, list,
	// map or struct.
	Kind string
	// Precision and Scale are those of a decimal: 1 to 38 digits, Scale of them after the point.
	Precision, Scale int
	// Text is the whole type where there is more to it, as rows.ParseType reads it: "list<string>", "int64 not null".
	Text string `json:",omitempty"`
}

// String returns the type as a job file writes it.
func (t ColumnType) String() string {
	switch {
	case t.Text != "":
		return t.Text
	case t.Kind == "decimal":
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	}
	return t.Kind
}

func columnTypeOf(t rows.Type) ColumnType {
	c := ColumnType{Kind: t.Kind.String(), Precision: t.Precision, Scale: t.Scale}
	if text := t.String(); text != c.String() {
		c.Text = text
	}
	return c
}

var plainKinds = [...]string{"string", "boolean", "int8", "int16", "int32", "int64", "float", "double", "timestamp", "timestamp_ntz", "date", "binary"}

// columnAliases are what other systems call the types.
var columnAliases = map[string]string{
	"int": "int32", "integer": "int32", "long": "int64", "bigint": "int64", "smallint": "int16", "short": "int16", "tinyint": "int8", "byte": "int8",
	"bool": "boolean", "text": "string", "varchar": "string", "str": "string", "float32": "float", "real": "float", "number": "double",
	"float64": "double", "datetime": "timestamp", "time": "timestamp", "bytes": "binary", "blob": "binary",
	"numeric": `decimal(18,2)`, "decimal": `decimal(18,2)`, "array": "list<string>", "list": "list<string>", "map": "map<string, string>",
	"struct": "struct<name: string>", "object": "struct<name: string>", "timestamp_ms": "timestamp(ms)", "timestamp_us": "timestamp(us)",
	"timestamptz": "timestamp", "timestamp_ltz": "timestamp", "timestampntz": "timestamp_ntz", "local_timestamp": "timestamp_ntz",
}

var (
	decimalType = regexp.MustCompile(`^decimal\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*\)$`)
	// columnForm is what an editor can check of a type.
	columnForm    = `^(?:` + strings.Join(plainKinds[:], "|") + `|timestamp\((?:s|ms|us)\)|decimal\(\s*[0-9]{1,2}\s*,\s*[0-9]{1,2}\s*\)|(?:list|map|struct)\s*<.+>)(?:\s+not\s+null)?$`
	brokenDecimal = regexp.MustCompile(`^decimal\(\s*[0-9]+$`)
)

// columns reads a schema: a mapping whose order counts.
func (c *checker) columns(n *yaml.Node, path string) ([]Column, bool) {
	typed, ok := c.fields(n, path)
	if !ok {
		return nil, false
	}
	if _, err := rows.NewSchema(typed); err != nil {
		return nil, c.wrong(n, path, CodeValue, err.Error())
	}
	columns := make([]Column, len(typed))
	for i, t := range typed {
		columns[i] = Column{Name: t.Name, Type: columnTypeOf(t.Type)}
	}
	return columns, true
}

// fields reads the columns of a schema or the fields of a struct.
func (c *checker) fields(n *yaml.Node, path string) ([]rows.Column, bool) {
	if n.Kind != yaml.MappingNode {
		return nil, c.wrong(n, path, CodeType, "expected columns as name: type, got "+kindOf(n))
	}
	if len(n.Content) == 0 {
		return nil, c.wrong(n, path, CodeValue, "a schema needs at least one column")
	}
	if len(n.Content) > 2*rows.MaxColumns {
		return nil, c.wrong(n, path, CodeRange, fmt.Sprintf("%d columns; at most %d are possible", len(n.Content)/2, rows.MaxColumns))
	}
	ok := true
	folded := map[string]string{}
	var columns []rows.Column
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		p := join(path, k.Value)
		c.note(p, k, v)
		if text, parts := torn(n.Content[i:]); parts > 0 {
			what := fmt.Sprintf("a type with a comma must be quoted here: %q", cut(text))
			if brokenDecimal.MatchString(v.Value) {
				what = `a decimal must be quoted here, because of its comma: "decimal(9,2)"`
			}
			ok = c.wrong(v, p, CodeValue, what)
			i += 2 * parts
			continue
		}
		if why := badColumnName(k.Value); why != "" {
			ok = c.wrong(k, p, CodeValue, why)
			continue
		}
		if other, dup := folded[strings.ToLower(k.Value)]; dup && other != k.Value {
			ok = c.wrong(k, p, CodeDuplicate, fmt.Sprintf("columns %q and %q differ in case only; Spark, Delta and SQLite take them for one", cut(other), cut(k.Value)))
			continue
		}
		folded[strings.ToLower(k.Value)] = k.Value
		t, good := c.columnType(v, p)
		ok = ok && good
		columns = append(columns, rows.Column{Name: k.Value, Type: t})
	}
	return columns, ok
}

// torn puts a type together that its commas have torn apart, as it stands between braces without quotes, and counts the members
// that are its parts but for the first; 0 for one that is whole. YAML takes them for keys without a value.
func torn(members []*yaml.Node) (text string, parts int) {
	head := members[1]
	if head.Kind != yaml.ScalarNode || quoted(head) {
		return "", 0
	}
	text = head.Value
	for i := 2; unclosed(text) > 0; i += 2 {
		if i >= len(members) || quoted(members[i]) || members[i+1].Kind != yaml.ScalarNode || quoted(members[i+1]) {
			return "", 0
		}
		text += ", " + members[i].Value
		if v := members[i+1]; scalar(v) != scalarNull {
			text += ": " + v.Value // of a struct
		}
		parts++
	}
	return text, parts
}

func quoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
}

// unclosed counts the brackets of a type that are not closed.
func unclosed(text string) int {
	return strings.Count(text, "<") + strings.Count(text, "(") - strings.Count(text, ">") - strings.Count(text, ")")
}

var tornEnd = regexp.MustCompile(`^[a-z0-9_(<]*[>)]+(\s+not\s+null)?$`)

// unopened reports whether a text looks like the end of a type whose brackets are opened before it.
func unopened(text string) bool { return tornEnd.MatchString(text) && unclosed(text) < 0 }

func badColumnName(name string) string {
	switch {
	case name == "":
		return "a column needs a name"
	case len(name) > 255:
		return "a column's name has at most 255 bytes"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "a column's name holds no control characters"
	}
	return ""
}

// columnType reads a type: a text, or a mapping of fields, which is a struct.
func (c *checker) columnType(n *yaml.Node, path string) (rows.Type, bool) {
	if n.Kind == yaml.MappingNode {
		fields, ok := c.fields(n, path)
		return rows.Type{Kind: rows.Struct, Fields: fields}, ok
	}
	if n.Kind != yaml.ScalarNode {
		return rows.Type{}, c.wrong(n, path, CodeType, `expected a type, got `+kindOf(n)+`; a list is written "list<string>", a struct {name: string}`)
	}
	if m := decimalType.FindStringSubmatch(n.Value); m != nil {
		p, _ := strconv.Atoi(m[1])
		s, _ := strconv.Atoi(m[2])
		if p < 1 || p > 38 || s > p {
			return rows.Type{}, c.wrong(n, path, CodeRange, fmt.Sprintf("%s: a decimal has 1 to 38 digits, and at most that many after the point", cut(n.Value)))
		}
	}
	t, err := rows.ParseType(n.Value)
	if err == nil {
		return t, true
	}
	if strings.ContainsAny(n.Value, "(<> ") {
		return rows.Type{}, c.wrong(n, path, CodeValue, err.Error())
	}
	return rows.Type{}, c.unknownType(n, path)
}

func (c *checker) unknownType(n *yaml.Node, path string) bool {
	m := Mistake{
		Pos: at(n), Path: path, Code: CodeValue,
		Message: kindOf(n) + " is no column type; types are " + strings.Join(plainKinds[:], ", ") + ", decimal(p,s), list<..>, map<.., ..>, struct<name: ..>",
	}
	if alias := columnAliases[strings.ToLower(n.Value)]; alias != "" {
		m.Suggestion = strconv.Quote(alias)
	} else {
		m.Suggestion = closest(n.Value, plainKinds[:])
	}
	c.add(m)
	return false
}
