package files

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// Limits of a Parquet schema: they bound what a hostile file makes of it.
const (
	maxSchemaDepth = 64
	maxColumns     = 10_000
)

// shape says how a group is written as JSON.
type shape uint8

const (
	leaf   shape = iota
	object       // {"field": ..}
	list         // LIST: [..]
	table        // MAP with text keys: {"key": ..}
	pairs        // any other MAP: [{"key": .., "value": ..}]
)

// schemaNode is one element of a schema with the levels at which it exists (Dremel's definition and repetition levels).
type schemaNode struct {
	name     string
	key      []byte // `"name":`
	optional bool
	repeated bool
	def, rep int
	shape    shape
	convert  converter // of a leaf
	first    int       // its first column
	last     int       // and the one after its last
	children []*schemaNode
}

// rowTree turns rows, which are flat lists of values with levels, into JSON objects.
type rowTree struct {
	root   *schemaNode
	bools  []*schemaNode     // the columns of booleans
	values [][]parquet.Value // what is left of the row, by column
}

// valueError says that a value has no JSON form.
type valueError struct{ column, reason string }

func (e *valueError) Error() string { return "column " + e.column + ": " + e.reason }

var errShort = errors.New("a column has fewer values than its row needs")

// newRowTree builds the tree from a file's flat, depth-first schema and the calendar of its values.
func newRowTree(schema []format.SchemaElement, calendar parquetfile.Calendar) (*rowTree, error) {
	b := treeBuilder{rest: schema, calendar: calendar}
	root, err := b.node(0, 0, 0)
	if err != nil {
		return nil, err
	}
	if len(b.rest) > 0 || root.shape == leaf {
		return nil, errors.New("the schema is not one tree")
	}
	root.optional, root.repeated = false, false
	return &rowTree{root: root, bools: b.bools, values: make([][]parquet.Value, b.columns)}, nil
}

type treeBuilder struct {
	rest     []format.SchemaElement
	calendar parquetfile.Calendar
	columns  int
	bools    []*schemaNode
}

func (b *treeBuilder) node(depth, def, rep int) (*schemaNode, error) {
	if len(b.rest) == 0 || depth > maxSchemaDepth || b.columns > maxColumns {
		return nil, errors.New("the schema is cut short, too deep or too wide")
	}
	e := &b.rest[0]
	b.rest = b.rest[1:]
	n := &schemaNode{name: e.Name, key: append(jsonvalue.AppendText(nil, []byte(e.Name)), ':'), first: b.columns}
	if depth > 0 && e.RepetitionType.Valid {
		n.optional = e.RepetitionType.V == format.Optional
		n.repeated = e.RepetitionType.V == format.Repeated
	}
	if n.optional || n.repeated {
		def++
	}
	if n.repeated {
		rep++
	}
	n.def, n.rep = def, rep
	if e.Type.Valid {
		b.columns++
		n.convert = converterOf(e).rebased(b.calendar.Rebase(e))
		n.last = b.columns
		if e.Type.V == format.Boolean {
			b.bools = append(b.bools, n)
		}
		return n, nil
	}
	n.shape = object
	if e.NumChildren.Valid {
		for range e.NumChildren.V {
			child, err := b.node(depth+1, def, rep)
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, child)
		}
	}
	n.last = b.columns
	n.shape = shapeOf(e, n)
	return n, nil
}

// shapeOf recognises lists and maps. A group that is annotated as one and does not look like one stays an object.
func shapeOf(e *format.SchemaElement, n *schemaNode) shape {
	if len(n.children) != 1 || !n.children[0].repeated || n.repeated {
		return object
	}
	_, isList := e.LogicalType.Value.(*format.ListType)
	_, isMap := e.LogicalType.Value.(*format.MapType)
	if ct := e.ConvertedType; ct.Valid {
		isList = isList || ct.V == deprecated.List
		isMap = isMap || ct.V == deprecated.Map || ct.V == deprecated.MapKeyValue
	}
	entries := n.children[0]
	switch {
	case isList:
		return list
	case isMap && len(entries.children) == 2:
		if key := entries.children[0]; key.shape == leaf && !key.optional && !key.repeated && key.convert.text {
			return table
		}
		return pairs
	}
	return object
}

// element returns what a list's repeated group stands for: its only field, or by the rules for old files itself.
func (n *schemaNode) element() (node *schemaNode, itself bool) {
	r := n.children[0]
	if r.shape == leaf || len(r.children) != 1 || r.name == "array" || r.name == n.name+"_tuple" || r.shape != object {
		return r, true
	}
	return r.children[0], false
}

// object appends a row as one JSON object, fields in column order.
func (t *rowTree) object(dst []byte, row parquet.Row) ([]byte, error) {
	clear(t.values)
	for from := 0; from < len(row); {
		c := row[from].Column()
		to := from + 1
		for to < len(row) && row[to].Column() == c {
			to++
		}
		if c < 0 || c >= len(t.values) {
			return dst, fmt.Errorf("a value of column %d, which is not in the schema", c)
		}
		t.values[c] = row[from:to]
		from = to
	}
	dst, err := t.body(dst, t.root)
	if err != nil {
		return dst, err
	}
	for _, v := range t.values {
		if len(v) > 0 {
			return dst, errors.New("a column has more values than its row needs")
		}
	}
	return dst, nil
}

// next returns the next value of a node's first column.
func (t *rowTree) next(n *schemaNode) (parquet.Value, error) {
	if len(t.values[n.first]) == 0 {
		return parquet.Value{}, errShort
	}
	return t.values[n.first][0], nil
}

// skip drops one value of each of a node's columns: together they stand for what is null or empty.
func (t *rowTree) skip(n *schemaNode) error {
	for c := n.first; c < n.last; c++ {
		if len(t.values[c]) == 0 {
			return errShort
		}
		t.values[c] = t.values[c][1:]
	}
	return nil
}

// node appends a field's value: null, a bare repetition, or what it holds.
func (t *rowTree) node(dst []byte, n *schemaNode) ([]byte, error) {
	if n.first == n.last {
		return append(dst, "{}"...), nil
	}
	switch {
	case n.repeated:
		return t.repeat(append(dst, '['), n, ']', func(dst []byte) ([]byte, error) { return t.body(dst, n) })
	case n.optional:
		v, err := t.next(n)
		if err != nil {
			return dst, err
		}
		if v.DefinitionLevel() < n.def {
			return append(dst, "null"...), t.skip(n)
		}
	}
	return t.body(dst, n)
}

// repeat appends the elements of a repeated node and the closing bracket.
func (t *rowTree) repeat(dst []byte, n *schemaNode, end byte, one func([]byte) ([]byte, error)) ([]byte, error) {
	if n.first == n.last {
		return append(dst, end), nil
	}
	v, err := t.next(n)
	if err != nil {
		return dst, err
	}
	if v.DefinitionLevel() < n.def {
		return append(dst, end), t.skip(n)
	}
	for {
		if dst, err = one(dst); err != nil {
			return dst, err
		}
		rest := t.values[n.first]
		if len(rest) == 0 || rest[0].RepetitionLevel() < n.rep {
			return append(dst, end), nil
		}
		dst = append(dst, ',')
	}
}

// body appends what a node holds when it is there.
func (t *rowTree) body(dst []byte, n *schemaNode) ([]byte, error) {
	switch n.shape {
	case leaf:
		v, err := t.next(n)
		if err != nil {
			return dst, err
		}
		if v.DefinitionLevel() < n.def {
			return dst, errors.New("a required value is null")
		}
		t.values[n.first] = t.values[n.first][1:]
		dst, reason := n.convert.append(dst, v)
		if reason != "" {
			return dst, &valueError{column: n.name, reason: reason}
		}
		return dst, nil
	case list:
		e, itself := n.element()
		return t.repeat(append(dst, '['), n.children[0], ']', func(dst []byte) ([]byte, error) {
			if itself {
				return t.body(dst, e)
			}
			return t.node(dst, e)
		})
	case pairs:
		return t.repeat(append(dst, '['), n.children[0], ']', func(dst []byte) ([]byte, error) {
			return t.body(dst, n.children[0])
		})
	case table:
		return t.repeat(append(dst, '{'), n.children[0], '}', func(dst []byte) ([]byte, error) {
			dst, err := t.body(dst, n.children[0].children[0])
			if err != nil {
				return dst, err
			}
			return t.node(append(dst, ':'), n.children[0].children[1])
		})
	}
	dst = append(dst, '{')
	for i, c := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = t.node(append(dst, c.key...), c); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
