package rows

import (
	"encoding/base64"
	"math"
	"strconv"
)

// Value is one value of a type that is not nested, or null. Which member counts depends on the type.
type Value struct {
	Null  bool
	Int   int64   // Boolean: 0 or 1; Int8 to Int64; Date: days since 1970; Timestamp, TimestampNTZ: microseconds since 1970
	Float float64 // Float, Double
	Wide  Int128  // Decimal: times ten to the power of its scale
	Bytes []byte  // String, Binary
}

// Value returns the value of slot i of a vector that is not nested. Its bytes are the vector's.
func (v *Vector) Value(i int) Value {
	if v.Valid[i] == 0 {
		return Value{Null: true}
	}
	switch v.Type.Kind {
	case Decimal:
		return Value{Wide: v.Unscaled(i)}
	case Float:
		return Value{Float: float64(v.F32[i])}
	}
	switch v.store {
	case inBools:
		return Value{Int: int64(v.Bools[i])}
	case inI32:
		return Value{Int: int64(v.I32[i])}
	case inI64:
		return Value{Int: v.I64[i]}
	case inF64:
		return Value{Float: v.F64[i]}
	}
	return Value{Bytes: v.Bytes(i)}
}

// AppendText appends a value of the type as Vector.AppendText does. A null appends nothing.
func (x Value) AppendText(dst []byte, t Type) []byte {
	if x.Null {
		return dst
	}
	switch t.Kind {
	case String:
		return append(dst, x.Bytes...)
	case Boolean:
		return strconv.AppendBool(dst, x.Int != 0)
	case Float:
		return appendFloat(dst, x.Float, 32)
	case Double:
		return appendFloat(dst, x.Float, 64)
	case Decimal:
		return x.Wide.appendDecimal(dst, t.Scale)
	case Timestamp:
		return AppendTimestamp(dst, x.Int, 'T', true)
	case TimestampNTZ:
		return AppendLocal(dst, x.Int)
	case Date:
		return appendDate(dst, x.Int)
	case Binary:
		return base64.StdEncoding.AppendEncode(dst, x.Bytes)
	}
	return strconv.AppendInt(dst, x.Int, 10)
}

// AppendJSON appends a value of the type as Vector.AppendJSON does.
func (x Value) AppendJSON(dst []byte, t Type) []byte {
	if x.Null {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case String:
		return AppendQuoted(dst, x.Bytes)
	case Timestamp, TimestampNTZ, Date, Binary:
		return append(x.AppendText(append(dst, '"'), t), '"')
	case Float, Double:
		if math.IsNaN(x.Float) || math.IsInf(x.Float, 0) {
			return append(x.AppendText(append(dst, '"'), t), '"')
		}
	}
	return x.AppendText(dst, t)
}

// ParseValue reads a value of a type that is not nested from its text, as AppendText writes it and csv has it. An error is a
// *sink.Misfit.
func ParseValue(t Type, text []byte) (Value, error) {
	t.Required = true
	column := []Column{{Name: "value", Type: t}}
	one := NewTable(&Schema{columns: column, index: indexOf(column)})
	object := append(AppendQuoted([]byte(`{"value":`), text), '}')
	if err := one.Append(object); err != nil {
		return Value{}, err
	}
	return one.Column(0).Value(0), nil
}
