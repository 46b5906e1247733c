package rows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
)

// Limits of a schema.
const (
	MaxColumns    = 2000
	MaxLeaves     = 2000 // columns, with structs, lists and maps opened
	MaxNesting    = 32   // of structs, lists and maps
	MaxColumnName = 255  // bytes
)

// Column is a column of a schema or a field of a struct. It may hold null unless its type says otherwise.
type Column struct {
	Name string
	Type Type
}

// Schema is an ordered list of columns. It is never changed.
type Schema struct {
	columns []Column
	index   map[string]int
	hash    uint32 // abi.RowHash of ColumnsText
}

// NewSchema checks the columns and what they hold: at least one, names not empty, in valid Unicode, and different within
// the schema and within each struct even when case is ignored, as most readers ignore it.
func NewSchema(columns []Column) (*Schema, error) {
	if len(columns) == 0 {
		return nil, errors.New("a schema needs at least one column")
	}
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("%d columns; at most %d are possible", len(columns), MaxColumns)
	}
	leaves := 0
	if err := checkColumns(columns, 0, &leaves); err != nil {
		return nil, err
	}
	columns = append([]Column(nil), columns...)
	s := &Schema{columns: columns, index: indexOf(columns)}
	s.hash = abi.RowHash(s.ColumnsText())
	return s, nil
}

func indexOf(columns []Column) map[string]int {
	index := make(map[string]int, len(columns))
	for i, c := range columns {
		index[c.Name] = i
	}
	return index
}

// checkColumns checks columns inside of so many structs, lists and maps, and counts the leaves.
func checkColumns(columns []Column, depth int, leaves *int) error {
	folded := make(map[string]string, len(columns))
	for _, c := range columns {
		if err := checkName(c.Name); err != nil {
			return err
		}
		lower := strings.ToLower(c.Name)
		if other, taken := folded[lower]; taken {
			return fmt.Errorf("columns %q and %q differ at most in case; readers take them for one", other, c.Name)
		}
		folded[lower] = c.Name
		if err := c.Type.check(depth, leaves); err != nil {
			return fmt.Errorf("column %q %w", c.Name, err)
		}
	}
	return nil
}

func (t Type) check(depth int, leaves *int) error {
	if kindNames[t.Kind] == "" {
		return errors.New("has no type")
	}
	if !t.Kind.Nested() {
		if *leaves++; *leaves > MaxLeaves {
			return fmt.Errorf("is one of more than %d, with structs, lists and maps opened", MaxLeaves)
		}
		if t.Kind == Decimal && !validDecimal(t.Precision, t.Scale) {
			return fmt.Errorf("is a decimal(%d,%d): %s", t.Precision, t.Scale, decimalRange)
		}
		return nil
	}
	if depth == MaxNesting {
		return fmt.Errorf("nests deeper than %d levels", MaxNesting)
	}
	switch t.Kind {
	case Struct:
		if len(t.Fields) == 0 {
			return errors.New("is a struct without fields")
		}
		if err := checkColumns(t.Fields, depth+1, leaves); err != nil {
			return fmt.Errorf("has a field that is wrong: %w", err)
		}
		return nil
	case Map:
		if t.Key == nil || !t.Key.Kind.isKey() {
			return errors.New("is a map whose keys are neither " + keyNames)
		}
		if err := t.Key.check(depth+1, leaves); err != nil {
			return fmt.Errorf("has keys of a type that %w", err)
		}
	}
	if t.Elem == nil {
		return errors.New("does not say what it holds")
	}
	if err := t.Elem.check(depth+1, leaves); err != nil {
		return fmt.Errorf("holds what %w", err)
	}
	return nil
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

// Binary reports whether the path leads to what takes bytes: from a column by the fields of structs, through lists.
func (s *Schema) Binary(path ...string) bool {
	t := Type{Kind: Struct, Fields: s.columns}
	for _, name := range path {
		for t.Kind == List {
			t = *t.Elem
		}
		at := slices.IndexFunc(t.Fields, func(c Column) bool { return c.Name == name })
		if at < 0 {
			return false
		}
		t = t.Fields[at].Type
	}
	return t.Kind == Binary
}

// Equal reports whether both have the same columns in the same order.
func (s *Schema) Equal(o *Schema) bool { return sameColumns(s.columns, o.columns, Type.Equal) }
