package rows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a column.
type Kind uint8

// The kinds of columns.
const (
	String Kind = iota + 1
	Boolean
	Int32
	Int64
	Float
	Double
	Decimal
	Timestamp // microseconds since 1970, UTC
	Date      // days since 1970
	Binary
)

var kindNames = map[Kind]string{
	String: "string", Boolean: "boolean", Int32: "int32", Int64: "int64", Float: "float", Double: "double",
	Decimal: "decimal", Timestamp: "timestamp", Date: "date", Binary: "binary",
}

func (k Kind) String() string { return kindNames[k] }

// MaxPrecision is the largest number of digits of a decimal.
const MaxPrecision = 38

// Limits of a schema.
const (
	MaxColumns    = 2000
	MaxColumnName = 255 // bytes
)

// Type is the type of a column. Precision and Scale belong to Decimal alone.
type Type struct {
	Kind      Kind
	Precision int
	Scale     int
}

// String returns the type as ParseType reads it.
func (t Type) String() string {
	if t.Kind == Decimal {
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	}
	return t.Kind.String()
}

// TypeNames lists the types that ParseType knows, for messages.
const TypeNames = "string, boolean, int32, int64, float, double, decimal(precision,scale), timestamp, date, binary"

// ParseType reads a type as a job file writes it: "int32", "decimal(9,2)".
func ParseType(s string) (Type, error) {
	s = strings.TrimSpace(s)
	for k, name := range kindNames {
		if s == name && k != Decimal {
			return Type{Kind: k}, nil
		}
	}
	args, ok := strings.CutPrefix(s, "decimal(")
	if !ok || !strings.HasSuffix(args, ")") {
		return Type{}, fmt.Errorf("unknown type %q; known are %s", s, TypeNames)
	}
	left, right, ok := strings.Cut(strings.TrimSuffix(args, ")"), ",")
	precision, err1 := strconv.Atoi(strings.TrimSpace(left))
	scale, err2 := strconv.Atoi(strings.TrimSpace(right))
	if !ok || err1 != nil || err2 != nil {
		return Type{}, fmt.Errorf("type %q: a decimal is written decimal(precision,scale)", s)
	}
	if precision < 1 || precision > MaxPrecision || scale < 0 || scale > precision {
		return Type{}, fmt.Errorf("type %q: the precision is 1 to %d, the scale 0 to the precision", s, MaxPrecision)
	}
	return Type{Kind: Decimal, Precision: precision, Scale: scale}, nil
}

// Column is one column of a schema. Every column may hold null.
type Column struct {
	Name string
	Type Type
}

// Schema is an ordered list of columns. It is never changed.
type Schema struct {
	columns []Column
	index   map[string]int
}

// NewSchema checks the columns: at least one, names not empty, in valid Unicode, and different even when case is ignored,
// as most readers ignore it.
func NewSchema(columns []Column) (*Schema, error) {
	if len(columns) == 0 {
		return nil, errors.New("a schema needs at least one column")
	}
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("%d columns; at most %d are possible", len(columns), MaxColumns)
	}
	s := &Schema{columns: append([]Column(nil), columns...), index: make(map[string]int, len(columns))}
	folded := make(map[string]string, len(columns))
	for i, c := range columns {
		if err := checkName(c.Name); err != nil {
			return nil, err
		}
		if kindNames[c.Type.Kind] == "" {
			return nil, fmt.Errorf("column %q has no type", c.Name)
		}
		if other, taken := folded[strings.ToLower(c.Name)]; taken {
			return nil, fmt.Errorf("columns %q and %q differ at most in case; readers take them for one", other, c.Name)
		}
		folded[strings.ToLower(c.Name)] = c.Name
		s.index[c.Name] = i
	}
	return s, nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New("a column has an empty name")
	}
	if len(name) > MaxColumnName {
		return fmt.Errorf("column %.20q...: a name has at most %d bytes", name, MaxColumnName)
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("column %q: the name is not valid text", name)
	}
	return nil
}

// Len returns the number of columns.
func (s *Schema) Len() int { return len(s.columns) }

// Column returns column i.
func (s *Schema) Column(i int) Column { return s.columns[i] }

// Columns returns a copy of the columns.
func (s *Schema) Columns() []Column { return append([]Column(nil), s.columns...) }

// Index returns the place of a column, or -1.
func (s *Schema) Index(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}
