package rows

import "strconv"

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
	Int8
	Int16
	List
	Map
	Struct
	TimestampNTZ // microseconds since 1970 of a clock without a time zone
)

var kindNames = map[Kind]string{
	String: "string", Boolean: "boolean", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", Float: "float", Double: "double",
	Decimal: "decimal", Timestamp: "timestamp", Date: "date", Binary: "binary", List: "list", Map: "map", Struct: "struct",
	TimestampNTZ: "timestamp_ntz",
}

func (k Kind) String() string { return kindNames[k] }

// Nested reports whether values of the kind hold other values.
func (k Kind) Nested() bool { return k == List || k == Map || k == Struct }

// isKey reports whether the keys of a map may be of the kind. Floats may not: NaN is no key.
func (k Kind) isKey() bool { return k != 0 && !k.Nested() && k != Float && k != Double }

const keyNames = "string, boolean, int8, int16, int32, int64, decimal, timestamp, timestamp_ntz, date nor binary"

// Unit is what an integer counts that stands for a timestamp.
type Unit uint8

// The units. Without one, a timestamp is text.
const (
	NoUnit Unit = iota
	Seconds
	Millis
	Micros
)

var unitNames = [...]string{Seconds: "s", Millis: "ms", Micros: "us"}

// MaxPrecision is the largest number of digits of a decimal.
const MaxPrecision = 38

const decimalRange = "the precision is 1 to 38, the scale 0 to the precision"

func validDecimal(precision, scale int) bool {
	return precision >= 1 && precision <= MaxPrecision && scale >= 0 && scale <= precision
}

// Type is the type of a column.
type Type struct {
	Kind      Kind
	Required  bool // null does not fit
	Precision int  // of a Decimal: digits
	Scale     int  // of a Decimal: digits after the point
	Unit      Unit // of a Timestamp: what an integer in the input counts; no property of the values
	Fields    []Column
	Key       *Type // of a Map; whether it is Required means nothing, as keys always are
	Elem      *Type // of a List, and of a Map's values
}

// Equal reports whether both are the same in all that String shows.
func (t Type) Equal(o Type) bool {
	return t.Required == o.Required && t.Unit == o.Unit && t.same(o, Type.Equal)
}

// SameData reports whether values of both look the same in a table: Required and Unit, at any level, do not matter.
func (t Type) SameData(o Type) bool { return t.same(o, Type.SameData) }

func (t Type) same(o Type, inside func(a, b Type) bool) bool {
	if t.Kind != o.Kind {
		return false
	}
	switch t.Kind {
	case Decimal:
		return t.Precision == o.Precision && t.Scale == o.Scale
	case Struct:
		return sameColumns(t.Fields, o.Fields, inside)
	case Map:
		a, b := *t.Key, *o.Key
		a.Required, b.Required = true, true
		return inside(a, b) && inside(*t.Elem, *o.Elem)
	case List:
		return inside(*t.Elem, *o.Elem)
	}
	return true
}

func sameColumns(a, b []Column, same func(a, b Type) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !same(a[i].Type, b[i].Type) {
			return false
		}
	}
	return true
}

// String returns the type as ParseType reads it.
func (t Type) String() string { return string(t.appendTo(nil, whole)) }

// brief is String cut for messages.
func (t Type) brief() string {
	const most = 100
	if s := t.String(); len(s) <= most {
		return s
	}
	return t.Kind.String()
}

// How a type is written: with all that it says, or bare of `not null` and units.
const (
	whole = iota
	bare
)

func (t Type) appendTo(dst []byte, how int) []byte {
	dst = append(dst, t.Kind.String()...)
	switch t.Kind {
	case Decimal:
		dst = strconv.AppendInt(append(dst, '('), int64(t.Precision), 10)
		dst = append(strconv.AppendInt(append(dst, ','), int64(t.Scale), 10), ')')
	case Timestamp:
		if t.Unit != NoUnit && how == whole {
			dst = append(append(append(dst, '('), unitNames[t.Unit]...), ')')
		}
	case List:
		dst = append(t.Elem.appendTo(append(dst, '<'), how), '>')
	case Map:
		key := *t.Key
		key.Required = false
		dst = append(key.appendTo(append(dst, '<'), how), ',', ' ')
		dst = append(t.Elem.appendTo(dst, how), '>')
	case Struct:
		separator := "<"
		for _, f := range t.Fields {
			dst = append(dst, separator...)
			separator = ", "
			dst = f.Type.appendTo(append(appendName(dst, f.Name), ':', ' '), how)
		}
		dst = append(dst, '>')
	}
	if t.Required && how == whole {
		dst = append(dst, " not null"...)
	}
	return dst
}

// appendName writes a field's name, in the quotes of JSON unless it is a plain word.
func appendName(dst []byte, name string) []byte {
	if name == "" {
		return append(dst, `""`...)
	}
	for i := range len(name) {
		if !isWord(name[i]) {
			return AppendQuoted(dst, []byte(name))
		}
	}
	return append(dst, name...)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
