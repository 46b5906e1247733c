package parquetfile

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
)

// physical describes a leaf in messages.
func physical(e *element) string {
	s := e.SchemaElement.Type.V.String()
	if e.LogicalType.Value != nil {
		return s + " " + e.LogicalType.String()
	}
	if e.ConvertedType.Valid {
		return fmt.Sprintf("%s of converted type %d", s, e.ConvertedType.V)
	}
	return s
}

// setterOf chooses how the values of a leaf become those of a type, or says that they do not.
func setterOf(t rows.Type, e *element) (setter, error) {
	var set setter
	physicalType := e.SchemaElement.Type.V
	switch t.Kind {
	case rows.Boolean:
		if physicalType == format.Boolean {
			set = setBoolean
		}
	case rows.Int8, rows.Int16, rows.Int32, rows.Int64:
		set = integerSetter(t, e)
	case rows.Float:
		if physicalType == format.Float {
			set = setFloat
		}
	case rows.Double:
		switch physicalType {
		case format.Double:
			set = setDouble
		case format.Float:
			set = setFloatAsDouble
		}
	case rows.Decimal:
		set = decimalSetter(t, e)
	case rows.Timestamp:
		set = timestampSetter(e)
	case rows.TimestampNTZ:
		set = localSetter(e)
	case rows.Date:
		if _, logical := e.LogicalType.Value.(*format.DateType); physicalType == format.Int32 && (logical || e.converted(deprecated.Date)) {
			set = setInt32
		}
	case rows.String:
		if physicalType == format.ByteArray && isText(e) {
			set = setText
		}
	case rows.Binary:
		if physicalType == format.ByteArray || physicalType == format.FixedLenByteArray && !e.isAnnotated() {
			set = setBinary
		}
	}
	if set == nil {
		return nil, notA(t, e)
	}
	return set, nil
}

// isText reports whether bytes may be text: they say so, or nothing, as with some older writers.
func isText(e *element) bool {
	switch e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return true
	case nil:
		return !e.ConvertedType.Valid || e.converted(deprecated.UTF8, deprecated.Enum, deprecated.Json)
	}
	return false
}

func setBoolean(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.Bools[slot] = 1, 0
	if x.Boolean() {
		v.Bools[slot] = 1
	}
	return nil
}

func setInt32(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.I32[slot] = 1, x.Int32()
	return nil
}

func setInt64(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.I64[slot] = 1, x.Int64()
	return nil
}

func setInt32As64(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.I64[slot] = 1, int64(x.Int32())
	return nil
}

func setFloat(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.F32[slot] = 1, x.Float()
	return nil
}

func setDouble(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.F64[slot] = 1, x.Double()
	return nil
}

func setFloatAsDouble(v *rows.Vector, slot int, x *parquet.Value) error {
	v.Valid[slot], v.F64[slot] = 1, float64(x.Float())
	return nil
}

func setBinary(v *rows.Vector, slot int, x *parquet.Value) error {
	return v.SetBytes(slot, x.ByteArray())
}

func setText(v *rows.Vector, slot int, x *parquet.Value) error {
	b := x.ByteArray()
	if !utf8.Valid(b) {
		return fmt.Errorf("the text %.40q is not valid UTF-8", b)
	}
	return v.SetBytes(slot, b)
}

// integerWidths are the bits of the kinds.
var integerWidths = map[rows.Kind]int{rows.Int8: 8, rows.Int16: 16, rows.Int32: 32, rows.Int64: 64}

// integerSetter takes integers of the type's width and of smaller ones. Without an annotation the width is that of the
// physical type; then 32 bits may hold smaller numbers, and each is looked at.
func integerSetter(t rows.Type, e *element) setter {
	want := integerWidths[t.Kind]
	if e.SchemaElement.Type.V != format.Int32 && e.SchemaElement.Type.V != format.Int64 {
		return nil
	}
	width, known := declaredWidth(e)
	switch {
	case known && width == 0:
		return nil
	case e.SchemaElement.Type.V == format.Int64:
		if want < 64 {
			return nil
		}
		return setInt64
	case known && width > want:
		return nil
	case want == 64:
		return setInt32As64
	case want == 32:
		return setInt32
	}
	return setSmall
}

// declaredWidth returns the bits that the annotation of an integer names: 0 for what is no signed integer, false without
// an annotation.
func declaredWidth(e *element) (bits int, known bool) {
	switch l := e.LogicalType.Value.(type) {
	case *format.IntType:
		if l.IsSigned {
			return int(l.BitWidth), true
		}
		return 0, true
	case nil:
	default:
		return 0, true
	}
	if !e.ConvertedType.Valid {
		return 0, false
	}
	switch e.ConvertedType.V {
	case deprecated.Int8:
		return 8, true
	case deprecated.Int16:
		return 16, true
	case deprecated.Int32:
		return 32, true
	case deprecated.Int64:
		return 64, true
	}
	return 0, true
}

func setSmall(v *rows.Vector, slot int, x *parquet.Value) error {
	return v.SetValue(slot, rows.Value{Int: int64(x.Int32())})
}

// timestampSetter takes all units, and the 96 bits of older writers. Times without a zone are taken for times of UTC.
func timestampSetter(e *element) setter {
	if e.SchemaElement.Type.V == format.Int96 {
		return setInt96
	}
	if e.SchemaElement.Type.V != format.Int64 {
		return nil
	}
	unit := time.Duration(0)
	if l, ok := e.LogicalType.Value.(*format.TimestampType); ok && l.Unit.Value != nil {
		unit = l.Unit.Value.Duration()
	} else if e.LogicalType.Value == nil && e.converted(deprecated.TimestampMillis) {
		unit = time.Millisecond
	} else if e.LogicalType.Value == nil && e.converted(deprecated.TimestampMicros) {
		unit = time.Microsecond
	}
	switch unit {
	case time.Millisecond:
		return setMillis
	case time.Microsecond:
		return setInt64
	case time.Nanosecond:
		return setNanos
	}
	return nil
}

// localSetter takes times that are said not to be of UTC, and the 96 bits of older writers, which say nothing of a zone. What a
// file holds as instants is no time of a clock.
func localSetter(e *element) setter {
	l, ok := e.LogicalType.Value.(*format.TimestampType)
	if e.SchemaElement.Type.V == format.Int64 && (!ok || l.IsAdjustedToUTC) {
		return nil
	}
	return timestampSetter(e)
}

func setMillis(v *rows.Vector, slot int, x *parquet.Value) error {
	ms := x.Int64()
	if ms > math.MaxInt64/1000 || ms < math.MinInt64/1000 {
		return fmt.Errorf("the time %d ms is out of range", ms)
	}
	v.Valid[slot], v.I64[slot] = 1, ms*1000
	return nil
}

var errNanos = errors.New("a time has digits below microseconds")

func setNanos(v *rows.Vector, slot int, x *parquet.Value) error {
	if x.Int64()%1000 != 0 {
		return errNanos
	}
	v.Valid[slot], v.I64[slot] = 1, x.Int64()/1000
	return nil
}

// setInt96 reads Spark's and Impala's old timestamps: nanoseconds of the day, then the Julian day.
func setInt96(v *rows.Vector, slot int, x *parquet.Value) error {
	const microsPerDay = 86_400_000_000
	w := x.Int96()
	nanos := int64(uint64(w[1])<<32 | uint64(w[0]))
	days := int64(int32(w[2])) - julianEpoch
	if nanos%1000 != 0 {
		return errNanos
	}
	if days > math.MaxInt64/microsPerDay-1 || days < math.MinInt64/microsPerDay+1 || nanos < 0 || nanos/1000 > microsPerDay {
		return errors.New("a time is out of range")
	}
	v.Valid[slot], v.I64[slot] = 1, days*microsPerDay+nanos/1000
	return nil
}

// decimalSetter takes decimals of the same scale and no more digits.
func decimalSetter(t rows.Type, e *element) setter {
	precision, scale := 0, 0
	if l, ok := e.LogicalType.Value.(*format.DecimalType); ok {
		precision, scale = int(l.Precision), int(l.Scale)
	} else if e.LogicalType.Value == nil && e.converted(deprecated.Decimal) {
		precision, scale = int(e.Precision.V), int(e.Scale.V)
	}
	if precision == 0 || precision > t.Precision || scale != t.Scale {
		return nil
	}
	limit := t
	check := func(v *rows.Vector, slot int, x rows.Int128) error { return v.SetValue(slot, rows.Value{Wide: x}) }
	switch e.SchemaElement.Type.V {
	case format.Int32:
		return func(v *rows.Vector, slot int, x *parquet.Value) error {
			return check(v, slot, intValue(limit, int64(x.Int32())).Wide)
		}
	case format.Int64:
		return func(v *rows.Vector, slot int, x *parquet.Value) error {
			return check(v, slot, intValue(limit, x.Int64()).Wide)
		}
	case format.ByteArray, format.FixedLenByteArray:
		return func(v *rows.Vector, slot int, x *parquet.Value) error {
			b, ok := within16(x.ByteArray())
			if !ok {
				return fmt.Errorf("a decimal of %d bytes is out of range", len(x.ByteArray()))
			}
			return check(v, slot, bigEndian(b))
		}
	}
	return nil
}

// within16 drops the bytes of a big-endian number in two's complement that repeat its sign.
func within16(b []byte) ([]byte, bool) {
	for len(b) > 16 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b, len(b) > 0 && len(b) <= 16
}
