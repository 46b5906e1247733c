package delta

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wasmill/wasmill/host/rows"
)

// primitives are the names of Delta's types.
var primitives = map[string]rows.Kind{
	"string": rows.String, "boolean": rows.Boolean, "byte": rows.Int8, "short": rows.Int16, "integer": rows.Int32, "long": rows.Int64,
	"float": rows.Float, "double": rows.Double, "date": rows.Date, "timestamp": rows.Timestamp, "binary": rows.Binary,
	"timestamp_ntz": rows.TimestampNTZ,
}

var primitiveNames = func() map[rows.Kind]string {
	names := make(map[rows.Kind]string, len(primitives))
	for name, kind := range primitives {
		names[kind] = name
	}
	return names
}()

// SchemaString writes a schema as metaData holds it.
func SchemaString(s *rows.Schema) string { return string(appendStruct(nil, s.Columns())) }

func appendStruct(dst []byte, columns []rows.Column) []byte {
	dst = append(dst, `{"type":"struct","fields":[`...)
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, c)
	}
	return append(dst, "]}"...)
}

func appendField(dst []byte, c rows.Column) []byte {
	dst = rows.AppendQuoted(append(dst, `{"name":`...), []byte(c.Name))
	dst = appendType(append(dst, `,"type":`...), c.Type)
	dst = strconv.AppendBool(append(dst, `,"nullable":`...), !c.Type.Required)
	return append(dst, `,"metadata":{}}`...)
}

func appendType(dst []byte, t rows.Type) []byte {
	switch t.Kind {
	case rows.Struct:
		return appendStruct(dst, t.Fields)
	case rows.List:
		dst = appendType(append(dst, `{"type":"array","elementType":`...), *t.Elem)
		dst = strconv.AppendBool(append(dst, `,"containsNull":`...), !t.Elem.Required)
		return append(dst, '}')
	case rows.Map:
		dst = appendType(append(dst, `{"type":"map","keyType":`...), *t.Key)
		dst = appendType(append(dst, `,"valueType":`...), *t.Elem)
		dst = strconv.AppendBool(append(dst, `,"valueContainsNull":`...), !t.Elem.Required)
		return append(dst, '}')
	case rows.Decimal:
		return fmt.Appendf(dst, `"decimal(%d,%d)"`, t.Precision, t.Scale)
	}
	return append(append(append(dst, '"'), primitiveNames[t.Kind]...), '"')
}

// The wire forms of a schema. Type is a name in quotes or an object.
type (
	structWire struct {
		Type   string           `json:"type"`
		Fields []jsontext.Value `json:"fields"`
	}
	fieldWire struct {
		Name     string         `json:"name"`
		Type     jsontext.Value `json:"type"`
		Nullable *bool          `json:"nullable"`
	}
	containerWire struct {
		Type              string         `json:"type"`
		ElementType       jsontext.Value `json:"elementType"`
		ContainsNull      *bool          `json:"containsNull"`
		KeyType           jsontext.Value `json:"keyType"`
		ValueType         jsontext.Value `json:"valueType"`
		ValueContainsNull *bool          `json:"valueContainsNull"`
	}
)

// ParseSchema reads the schemaString of metaData. A type that rows do not have is an error that names the column.
func ParseSchema(schemaString string) (*rows.Schema, error) {
	t, err := parseType(jsontext.Value(schemaString), 0)
	if err != nil {
		return nil, err
	}
	if t.Kind != rows.Struct {
		return nil, errors.New("the schema is not a struct")
	}
	return rows.NewSchema(t.Fields)
}

func parseType(v jsontext.Value, depth int) (rows.Type, error) {
	if depth > rows.MaxNesting+1 {
		return rows.Type{}, fmt.Errorf("the schema nests deeper than %d levels", rows.MaxNesting)
	}
	if v.Kind() == '"' {
		var name string
		if err := json.Unmarshal(v, &name); err != nil {
			return rows.Type{}, err
		}
		return primitive(name)
	}
	var c containerWire
	if err := json.Unmarshal(v, &c); err != nil {
		return rows.Type{}, fmt.Errorf("read a type: %w", err)
	}
	switch c.Type {
	case "struct":
		return parseStruct(v, depth)
	case "array":
		elem, err := parseType(c.ElementType, depth+1)
		elem.Required = c.ContainsNull != nil && !*c.ContainsNull
		return rows.Type{Kind: rows.List, Elem: &elem}, err
	case "map":
		key, err := parseType(c.KeyType, depth+1)
		if err != nil {
			return rows.Type{}, err
		}
		key.Required = true
		elem, err := parseType(c.ValueType, depth+1)
		elem.Required = c.ValueContainsNull != nil && !*c.ValueContainsNull
		return rows.Type{Kind: rows.Map, Key: &key, Elem: &elem}, err
	}
	return rows.Type{}, fmt.Errorf("unknown type %.100q", c.Type)
}

func parseStruct(v jsontext.Value, depth int) (rows.Type, error) {
	var s structWire
	if err := json.Unmarshal(v, &s); err != nil {
		return rows.Type{}, fmt.Errorf("read a struct: %w", err)
	}
	t := rows.Type{Kind: rows.Struct}
	for _, raw := range s.Fields {
		var f fieldWire
		if err := json.Unmarshal(raw, &f); err != nil {
			return rows.Type{}, fmt.Errorf("read a field: %w", err)
		}
		ft, err := parseType(f.Type, depth+1)
		if err != nil {
			return rows.Type{}, fmt.Errorf("column %q: %w", f.Name, err)
		}
		ft.Required = f.Nullable != nil && !*f.Nullable
		t.Fields = append(t.Fields, rows.Column{Name: f.Name, Type: ft})
	}
	return t, nil
}

func primitive(name string) (rows.Type, error) {
	if kind, ok := primitives[name]; ok {
		return rows.Type{Kind: kind}, nil
	}
	if name == "decimal" {
		return rows.Type{Kind: rows.Decimal, Precision: 10}, nil // Spark's default, as it writes it nowhere else
	}
	if strings.HasPrefix(name, "decimal(") {
		t, err := rows.ParseType(name)
		t.Required, t.Unit = false, rows.NoUnit
		return t, err
	}
	return rows.Type{}, fmt.Errorf("the type %.100q is not supported", name)
}

// AddColumns returns a schemaString with further columns at its end. What it says of the others stays byte for byte: it may
// hold metadata that is not known here.
func AddColumns(schemaString string, columns []rows.Column) (string, error) {
	var s structWire
	if err := json.Unmarshal([]byte(schemaString), &s); err != nil {
		return "", fmt.Errorf("read the schema: %w", err)
	}
	for _, c := range columns {
		s.Fields = append(s.Fields, appendField(nil, c))
	}
	out, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write the schema: %w", err)
	}
	if _, err := ParseSchema(string(out)); err != nil {
		return "", err
	}
	return string(out), nil
}

// forbidden are the characters that Spark takes in no column name of a table without column mapping.
const forbidden = " ,;{}()\n\t="

// CheckNames refuses column names, nested ones included, that readers of Delta tables do not take.
func CheckNames(s *rows.Schema) error { return checkNames(s.Columns()) }

func checkNames(columns []rows.Column) error {
	for _, c := range columns {
		if strings.ContainsAny(c.Name, forbidden) {
			return fmt.Errorf("column %q: a name in a Delta table has none of the characters %q", c.Name, forbidden)
		}
		if err := checkInner(c.Type); err != nil {
			return err
		}
	}
	return nil
}

func checkInner(t rows.Type) error {
	if err := checkNames(t.Fields); err != nil {
		return err
	}
	for _, inner := range []*rows.Type{t.Key, t.Elem} {
		if inner == nil {
			continue
		}
		if err := checkInner(*inner); err != nil {
			return err
		}
	}
	return nil
}

// CheckPartition refuses partition columns that are not there, twice there, all there is, or of a type whose values have no
// certain text.
func CheckPartition(s *rows.Schema, columns []string) error {
	seen := make(map[string]bool, len(columns))
	for _, name := range columns {
		i := s.Index(name)
		switch {
		case i < 0:
			return fmt.Errorf("partition column %q is not in the schema", name)
		case seen[name]:
			return fmt.Errorf("partition column %q is named twice", name)
		case s.Column(i).Type.Kind.Nested(), s.Column(i).Type.Kind == rows.Binary:
			return fmt.Errorf("partition column %q: a table cannot be partitioned by a %s", name, s.Column(i).Type.Kind)
		}
		seen[name] = true
	}
	if len(columns) == s.Len() {
		return errors.New("every column is a partition column; files need one of their own")
	}
	return nil
}
