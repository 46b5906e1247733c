package postgres

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/wasmill/wasmill/host/rows"
)

// form is a binary form of the server's, or text.
type form uint8

const (
	asBool form = iota + 1
	asInt2
	asInt4
	asInt8
	asFloat4
	asFloat8
	asNumeric
	asDate
	asTimestamp
	asBytes
	asText
	asUUID
	asJSON      // JSON of a nested value
	asJSONB     // the same, with the version that jsonb begins with
	asTextJSONB // a text that is JSON, into jsonb
)

// paramTypes are the types of a statement's parameters, by OIDs that are fixed; 0 leaves it to the server.
var paramTypes = map[rows.Kind]uint32{
	rows.Boolean: 16, rows.Int8: 21, rows.Int16: 21, rows.Int32: 23, rows.Int64: 20, rows.Float: 700, rows.Double: 701,
	rows.Decimal: 1700, rows.Date: 1082, rows.Timestamp: 1184, rows.TimestampNTZ: 1114, rows.Binary: 17,
}

var paramForms = map[rows.Kind]form{
	rows.Boolean: asBool, rows.Int8: asInt2, rows.Int16: asInt2, rows.Int32: asInt4, rows.Int64: asInt8, rows.Float: asFloat4, rows.Double: asFloat8,
	rows.Decimal: asNumeric, rows.Date: asDate, rows.Timestamp: asTimestamp, rows.TimestampNTZ: asTimestamp, rows.Binary: asBytes,
	rows.String: asText, rows.List: asJSON, rows.Map: asJSON, rows.Struct: asJSON,
}

const (
	microsTo2000 = 946_684_800_000_000
	daysTo2000   = 10_957
	null         = math.MaxUint32 // the length of a null
)

// appendField appends a value with its length before it.
func appendField(b []byte, f form, v *rows.Vector, row int) []byte {
	if v.Valid[row] == 0 {
		return binary.BigEndian.AppendUint32(b, null)
	}
	switch f {
	case asInt4:
		b = binary.BigEndian.AppendUint32(b, 4)
		return binary.BigEndian.AppendUint32(b, uint32(v.I32[row]))
	case asInt8:
		b = binary.BigEndian.AppendUint32(b, 8)
		return binary.BigEndian.AppendUint64(b, uint64(integer(v, row)))
	case asFloat8:
		b = binary.BigEndian.AppendUint32(b, 8)
		return binary.BigEndian.AppendUint64(b, math.Float64bits(float(v, row)))
	case asTimestamp:
		b = binary.BigEndian.AppendUint32(b, 8)
		return binary.BigEndian.AppendUint64(b, uint64(v.I64[row]-microsTo2000))
	case asText, asBytes:
		text := v.Bytes(row)
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		return append(b, text...)
	case asNumeric:
		return appendNumeric(b, v, row)
	}
	return appendOther(b, f, v, row)
}

func appendOther(b []byte, f form, v *rows.Vector, row int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	switch f {
	case asBool:
		b = append(b, v.Bools[row])
	case asInt2:
		b = binary.BigEndian.AppendUint16(b, uint16(v.I32[row]))
	case asFloat4:
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(v.F32[row]))
	case asDate:
		b = binary.BigEndian.AppendUint32(b, uint32(v.I32[row]-daysTo2000))
	case asUUID:
		if u, ok := parseUUID(v.Bytes(row)); ok { // else its rule is broken; the server refuses a UUID without bytes
			b = append(b, u[:]...)
		}
	case asJSON:
		b = v.AppendJSON(b, row)
	case asJSONB:
		b = v.AppendJSON(append(b, 1), row)
	case asTextJSONB:
		b = append(append(b, 1), v.Bytes(row)...)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func integer(v *rows.Vector, row int) int64 {
	if v.Type.Kind == rows.Int64 {
		return v.I64[row]
	}
	return int64(v.I32[row])
}

func float(v *rows.Vector, row int) float64 {
	if v.Type.Kind == rows.Float {
		return float64(v.F32[row])
	}
	return v.F64[row]
}

// appendNumeric appends a decimal or an integer: count of digits, weight of the first, sign, digits after the point, and the
// digits to the base of 10,000. Zeros at both ends are left out.
func appendNumeric(b []byte, v *rows.Vector, row int) []byte {
	var hi, lo uint64
	scale := 0
	if v.Type.Kind == rows.Decimal {
		x := v.Unscaled(row)
		hi, lo, scale = uint64(x.Hi), x.Lo, v.Type.Scale
	} else {
		i := integer(v, row)
		hi, lo = uint64(i>>63), uint64(i)
	}
	sign := uint16(0)
	if int64(hi) < 0 {
		sign = 0x4000
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	// Groups from the last on; the first of them is filled up with zeros to the right.
	var groups [12]uint16
	n, fraction := 0, (scale+3)/4
	if odd := scale % 4; odd != 0 {
		var rest uint64
		hi, lo, rest = divide(hi, lo, pow10[odd])
		groups[0] = uint16(rest * pow10[4-odd])
		n = 1
	}
	for hi|lo != 0 {
		var rest uint64
		hi, lo, rest = divide(hi, lo, 10_000)
		groups[n] = uint16(rest)
		n++
	}
	weight := n - 1 - fraction
	last := 0
	for last < n && groups[last] == 0 {
		last++
	}
	for n > last && groups[n-1] == 0 {
		n--
		weight--
	}
	if n == last {
		weight, sign = 0, 0
	}
	b = binary.BigEndian.AppendUint32(b, uint32(8+2*(n-last)))
	b = binary.BigEndian.AppendUint16(b, uint16(n-last))
	b = binary.BigEndian.AppendUint16(b, uint16(weight))
	b = binary.BigEndian.AppendUint16(b, sign)
	b = binary.BigEndian.AppendUint16(b, uint16(scale))
	for i := n - 1; i >= last; i-- {
		b = binary.BigEndian.AppendUint16(b, groups[i])
	}
	return b
}

var pow10 = [...]uint64{1, 10, 100, 1000, 10_000}

func divide(hi, lo, by uint64) (qhi, qlo, rest uint64) {
	qhi, rest = hi/by, hi%by
	qlo, rest = bits.Div64(rest, lo, by)
	return qhi, qlo, rest
}
