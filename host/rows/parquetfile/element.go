package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a file's schema: they bound what a hostile file makes of it.
const (
	maxFileDepth   = 100
	maxFileColumns = 20_000
)

// element is one element of a file's schema with the levels at which it exists (Dremel's definition and repetition levels).
type element struct {
	*format.SchemaElement
	optional bool
	repeated bool
	def, rep int
	first    int // its first leaf column
	children []*element
}

// elements makes a tree of a file's flat, depth-first schema.
func elements(schema []format.SchemaElement) (*element, error) {
	b := elementReader{rest: schema}
	root, err := b.read(0, 0, 0)
	if err != nil {
		return nil, err
	}
	if len(b.rest) > 0 || len(root.children) == 0 {
		return nil, errors.New("the schema is not one tree of columns")
	}
	return root, nil
}

type elementReader struct {
	rest   []format.SchemaElement
	leaves int
}

func (b *elementReader) read(depth, def, rep int) (*element, error) {
	if len(b.rest) == 0 || depth > maxFileDepth || b.leaves > maxFileColumns {
		return nil, errors.New("the schema is cut short, too deep or too wide")
	}
	e := &element{SchemaElement: &b.rest[0], first: b.leaves}
	b.rest = b.rest[1:]
	if depth > 0 && e.RepetitionType.Valid {
		e.optional = e.RepetitionType.V == format.Optional
		e.repeated = e.RepetitionType.V == format.Repeated
	}
	if e.optional || e.repeated {
		def++
	}
	if e.repeated {
		rep++
	}
	e.def, e.rep = def, rep
	if e.SchemaElement.Type.Valid {
		b.leaves++
		return e, nil
	}
	if !e.NumChildren.Valid || e.NumChildren.V <= 0 {
		return nil, errors.New("the schema has a group without fields")
	}
	for range e.NumChildren.V {
		child, err := b.read(depth+1, def, rep)
		if err != nil {
			return nil, err
		}
		e.children = append(e.children, child)
	}
	return e, nil
}

func (e *element) isLeaf() bool { return len(e.children) == 0 }

// entries returns the repeated group of a list or map.
func (e *element) entries() *element {
	if len(e.children) != 1 || !e.children[0].repeated {
		return nil
	}
	return e.children[0]
}

// listElement returns what a list holds: the only field of its repeated group or, in lists of two levels, which older
// writers make, the group itself. The rules are those of the format's LogicalTypes.md.
func (e *element) listElement() *element {
	r := e.entries()
	if r == nil {
		return nil
	}
	if r.isLeaf() || len(r.children) != 1 || r.children[0].repeated || r.Name == "array" || r.Name == e.Name+"_tuple" {
		return r
	}
	return r.children[0]
}

// isAnnotated reports whether a leaf has a logical type of either kind.
func (e *element) isAnnotated() bool { return e.LogicalType.Value != nil || e.ConvertedType.Valid }

// converted reports whether a leaf has one of the converted types, which older writers use alone.
func (e *element) converted(types ...deprecated.ConvertedType) bool {
	for _, t := range types {
		if e.ConvertedType.Valid && e.ConvertedType.V == t {
			return true
		}
	}
	return false
}
