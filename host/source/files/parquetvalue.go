package files

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// converter writes one value of a column as JSON. reason says why there is no such text.
type converter struct {
	text   bool // the JSON is a string of the column's own text
	append func(dst []byte, v parquet.Value) (out []byte, reason string)
}

// maxScale bounds the digits that a decimal's scale adds to each value.
const maxScale = 1000

// converterOf chooses by annotation, then by physical type: numbers exact, times as RFC 3339 with microseconds and Z,
// also those that are said to be of no zone, text as it stands, other bytes in base64.
func converterOf(e *format.SchemaElement) converter {
	switch t := e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return textConverter(e)
	case *format.DecimalType:
		return decimalConverter(t.Scale)
	case *format.DateType:
		return converter{append: dateValue}
	case *format.TimeType:
		return converter{append: timeConverter(unitOf(t.Unit))}
	case *format.TimestampType:
		return converter{append: timestampConverter(unitOf(t.Unit))}
	case *format.IntType:
		if !t.IsSigned {
			return converter{append: unsignedValue}
		}
	case *format.UUIDType:
		return converter{append: uuidValue}
	case *format.Float16Type:
		return converter{append: float16Value}
	case *format.NullType:
		return converter{append: nullValue}
	case nil:
		if e.ConvertedType.Valid {
			if c, ok := legacyConverter(e); ok {
				return c
			}
		}
	}
	return converter{append: physicalValue}
}

// legacyConverter serves files that know converted types only.
func legacyConverter(e *format.SchemaElement) (converter, bool) {
	switch e.ConvertedType.V {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		return textConverter(e), true
	case deprecated.Decimal:
		return decimalConverter(e.Scale.V), true
	case deprecated.Date:
		return converter{append: dateValue}, true
	case deprecated.TimeMillis:
		return converter{append: timeConverter(time.Millisecond)}, true
	case deprecated.TimeMicros:
		return converter{append: timeConverter(time.Microsecond)}, true
	case deprecated.TimestampMillis:
		return converter{append: timestampConverter(time.Millisecond)}, true
	case deprecated.TimestampMicros:
		return converter{append: timestampConverter(time.Microsecond)}, true
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return converter{append: unsignedValue}, true
	}
	return converter{}, false
}

func unitOf(u format.TimeUnit) time.Duration {
	if u.Value == nil {
		return time.Microsecond
	}
	return u.Value.Duration()
}

// rebased writes what a value means by the calendar of its file; nil: no more than it says.
func (c converter) rebased(by *parquetfile.Rebase) converter {
	if by == nil {
		return c
	}
	given := c.append
	c.append = func(dst []byte, v parquet.Value) ([]byte, string) {
		if why := by.Amend(&v); why != nil {
			return dst, why.Error() + "; " + why.Hint()
		}
		return given(dst, v)
	}
	return c
}

func nullValue(dst []byte, _ parquet.Value) ([]byte, string) { return append(dst, "null"...), "" }

// textConverter is for bytes that are text. The annotation on anything else means nothing.
func textConverter(e *format.SchemaElement) converter {
	if e.Type.V != format.ByteArray && e.Type.V != format.FixedLenByteArray {
		return converter{append: physicalValue}
	}
	return converter{text: true, append: func(dst []byte, v parquet.Value) ([]byte, string) {
		return jsonvalue.AppendText(dst, v.ByteArray()), ""
	}}
}

// physicalValue writes a value that has no annotation.
func physicalValue(dst []byte, v parquet.Value) ([]byte, string) {
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.AppendBool(dst, v.Boolean()), ""
	case parquet.Int32:
		return strconv.AppendInt(dst, int64(v.Int32()), 10), ""
	case parquet.Int64:
		return strconv.AppendInt(dst, v.Int64(), 10), ""
	case parquet.Int96:
		return int96Value(dst, v.Int96())
	case parquet.Float:
		return jsonvalue.AppendFloat(dst, float64(v.Float()), 32), ""
	case parquet.Double:
		return jsonvalue.AppendFloat(dst, v.Double(), 64), ""
	case parquet.ByteArray, parquet.FixedLenByteArray:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.ByteArray())
		return append(dst, '"'), ""
	}
	return append(dst, "null"...), ""
}

func unsignedValue(dst []byte, v parquet.Value) ([]byte, string) {
	if v.Kind() == parquet.Int32 {
		return strconv.AppendUint(dst, uint64(v.Uint32()), 10), ""
	}
	return strconv.AppendUint(dst, v.Uint64(), 10), ""
}

// int96Value reads Spark's and Impala's old time stamps: nanoseconds of the day, then the Julian day.
func int96Value(dst []byte, v deprecated.Int96) ([]byte, string) {
	const unixEpoch = 2440588 // Julian day of 1970-01-01
	nanos := int64(uint64(v[1])<<32 | uint64(v[0]))
	days := int64(int32(v[2])) - unixEpoch
	return appendTime(dst, days*86400, nanos)
}

// wholeNumber returns the value of an integer column.
func wholeNumber(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

func dateValue(dst []byte, v parquet.Value) ([]byte, string) {
	t := time.Unix(wholeNumber(v)*86400, 0).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return dst, "the date lies outside the years 0 to 9999"
	}
	return t.AppendFormat(dst, `"2006-01-02"`), ""
}

func timeConverter(unit time.Duration) func([]byte, parquet.Value) ([]byte, string) {
	return func(dst []byte, v parquet.Value) ([]byte, string) {
		n := wholeNumber(v)
		if n < 0 || n >= int64(24*time.Hour/unit) {
			return dst, "the time lies outside a day"
		}
		return time.Unix(0, n*int64(unit)).UTC().AppendFormat(dst, `"15:04:05.000000"`), ""
	}
}

func timestampConverter(unit time.Duration) func([]byte, parquet.Value) ([]byte, string) {
	perSecond := int64(time.Second / unit)
	return func(dst []byte, v parquet.Value) ([]byte, string) {
		n := wholeNumber(v)
		sec, rest := n/perSecond, n%perSecond
		return appendTime(dst, sec, rest*int64(unit))
	}
}

func appendTime(dst []byte, sec, nanos int64) ([]byte, string) {
	t := time.Unix(sec, nanos).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return dst, "the time stamp lies outside the years 0 to 9999"
	}
	return t.AppendFormat(dst, `"2006-01-02T15:04:05.000000Z"`), ""
}

func uuidValue(dst []byte, v parquet.Value) ([]byte, string) {
	b := v.ByteArray()
	if len(b) != 16 {
		return physicalValue(dst, v)
	}
	dst = hex.AppendEncode(append(dst, '"'), b[:4])
	for _, part := range [][]byte{b[4:6], b[6:8], b[8:10], b[10:]} {
		dst = hex.AppendEncode(append(dst, '-'), part)
	}
	return append(dst, '"'), ""
}

// float16Value widens IEEE 754 half precision.
func float16Value(dst []byte, v parquet.Value) ([]byte, string) {
	b := v.ByteArray()
	if len(b) != 2 {
		return physicalValue(dst, v)
	}
	h := binary.LittleEndian.Uint16(b)
	exp, frac := int(h>>10&31), float64(h&1023)
	var f float64
	switch exp {
	case 0:
		f = math.Ldexp(frac, -24)
	case 31:
		if f = math.Inf(1); frac != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(1024+frac, exp-25)
	}
	if h>>15 == 1 {
		f = -f
	}
	return jsonvalue.AppendFloat(dst, f, 32), ""
}

func decimalConverter(scale int32) converter {
	return converter{append: func(dst []byte, v parquet.Value) ([]byte, string) {
		if scale < 0 || scale > maxScale {
			return dst, "a decimal of scale " + strconv.Itoa(int(scale))
		}
		var digits []byte
		switch v.Kind() {
		case parquet.Int32, parquet.Int64:
			digits = strconv.AppendInt(nil, wholeNumber(v), 10)
		case parquet.ByteArray, parquet.FixedLenByteArray:
			if len(v.ByteArray()) > maxScale {
				return dst, "a decimal of more bytes than any precision needs"
			}
			digits = bigEndian(v.ByteArray()).Append(nil, 10)
		default:
			return physicalValue(dst, v)
		}
		return jsonvalue.AppendPoint(dst, digits, int(scale)), ""
	}}
}

// bigEndian reads a two's complement number.
func bigEndian(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
