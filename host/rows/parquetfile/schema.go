package parquetfile

import (
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
)

// newSchema returns the library's schema of some columns, in their order. withDictionary has a 1 for each leaf of them that
// is to have a dictionary.
func newSchema(schema *rows.Schema, columns []int, withDictionary []byte) *parquet.Schema {
	b := nodes{dictionary: withDictionary}
	root := group{}
	for _, c := range columns {
		column := schema.Column(c)
		root.fields = append(root.fields, field{Node: b.node(column.Type), name: column.Name})
	}
	return parquet.NewSchema("schema", root)
}

// nodes makes nodes of types, in the order of their leaves.
type nodes struct {
	dictionary []byte // of the leaves that are still to come
}

func (b *nodes) node(t rows.Type) parquet.Node {
	var n parquet.Node
	switch t.Kind {
	case rows.Struct:
		g := group{}
		for _, f := range t.Fields {
			g.fields = append(g.fields, field{Node: b.node(f.Type), name: f.Name})
		}
		n = g
	case rows.List:
		list := group{fields: []parquet.Field{field{Node: b.node(*t.Elem), name: "element"}}}
		n = group{as: parquet.List(parquet.Leaf(parquet.Int32Type)).Type(), fields: []parquet.Field{field{Node: parquet.Repeated(list), name: "list"}}}
	case rows.Map:
		key := b.node(required(*t.Key))
		entries := group{fields: []parquet.Field{field{Node: key, name: "key"}, field{Node: b.node(*t.Elem), name: "value"}}}
		n = group{as: mapType, fields: []parquet.Field{field{Node: parquet.Repeated(entries), name: "key_value"}}}
	default:
		n = b.leaf(t)
	}
	if t.Required {
		return parquet.Required(n)
	}
	return parquet.Optional(n)
}

var mapType = parquet.Map(parquet.Leaf(parquet.Int32Type), parquet.Leaf(parquet.Int32Type)).Type()

func (b *nodes) leaf(t rows.Type) parquet.Node {
	n := leaf(t)
	withDictionary := b.dictionary[0] == 1
	b.dictionary = b.dictionary[1:]
	if withDictionary {
		return parquet.Encoded(n, &parquet.RLEDictionary)
	}
	return parquet.Encoded(boundedLeaf(n, t), &parquet.Plain)
}

func leaf(t rows.Type) parquet.Node {
	switch t.Kind {
	case rows.String:
		return parquet.String()
	case rows.Boolean:
		return parquet.Leaf(parquet.BooleanType)
	case rows.Int8:
		return parquet.Int(8)
	case rows.Int16:
		return parquet.Int(16)
	case rows.Int32:
		return parquet.Leaf(parquet.Int32Type)
	case rows.Int64:
		return parquet.Leaf(parquet.Int64Type)
	case rows.Float:
		return parquet.Leaf(parquet.FloatType)
	case rows.Double:
		return parquet.Leaf(parquet.DoubleType)
	case rows.Timestamp:
		return parquet.Timestamp(parquet.Microsecond)
	case rows.TimestampNTZ:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case rows.Date:
		return parquet.Date()
	case rows.Decimal:
		return parquet.Decimal(t.Scale, t.Precision, decimalStorage(t.Precision))
	}
	return parquet.Leaf(parquet.ByteArrayType)
}

func decimalStorage(precision int) parquet.Type {
	switch {
	case precision <= 9:
		return parquet.Int32Type
	case precision <= 18:
		return parquet.Int64Type
	}
	return parquet.FixedLenByteArrayType(wideSize(precision))
}

// wideSize returns the fewest bytes that hold every decimal of a precision and its sign. 10^precision has
// floor(precision * log2(10)) + 1 bits.
func wideSize(precision int) int {
	digits := precision*33219281/10000000 + 1
	return (digits + 1 + 7) / 8
}

// group keeps the order of its fields, which a parquet.Group sorts by name.
type group struct {
	parquet.Group
	as     parquet.Type // how it is annotated, or nil
	fields []parquet.Field
}

func (g group) Fields() []parquet.Field { return g.fields }

func (g group) Type() parquet.Type {
	if g.as != nil {
		return g.as
	}
	return g.Group.Type()
}

// GoType returns a type without meaning: values come by column, and the library cannot name the fields of a struct after
// every column.
func (g group) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type field struct {
	parquet.Node
	name string
}

func (f field) Name() string                      { return f.name }
func (f field) Value(reflect.Value) reflect.Value { return reflect.Value{} }
