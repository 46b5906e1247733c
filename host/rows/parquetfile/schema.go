package parquetfile

import (
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
)

// newSchema returns the library's schema of some columns, in their order. withDictionary has a 1 for each of them that is to
// have a dictionary.
func newSchema(schema *rows.Schema, columns []int, withDictionary []byte) *parquet.Schema {
	root := ordered{Group: parquet.Group{}}
	for i, c := range columns {
		column := schema.Column(c)
		node := leaf(column.Type)
		if withDictionary[i] == 1 {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		} else {
			node = parquet.Encoded(boundedLeaf(node, column.Type), &parquet.Plain)
		}
		root.fields = append(root.fields, field{Node: parquet.Optional(node), name: column.Name})
	}
	return parquet.NewSchema("schema", root)
}

func leaf(t rows.Type) parquet.Node {
	switch t.Kind {
	case rows.String:
		return parquet.String()
	case rows.Boolean:
		return parquet.Leaf(parquet.BooleanType)
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

// ordered is a group that keeps the order of its fields, which a parquet.Group sorts by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

// GoType returns a type without meaning: values come by column, and the library cannot name the fields of a struct after
// every column.
func (o ordered) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type field struct {
	parquet.Node
	name string
}

func (f field) Name() string                      { return f.name }
func (f field) Value(reflect.Value) reflect.Value { return reflect.Value{} }
