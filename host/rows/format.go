package rows

import (
	"math"
	"math/bits"
	"strconv"
)

// AppendText appends the value of row i as csv shows it: exact decimals, the shortest digits of a float that read back the
// same, timestamps in RFC 3339 with microseconds and Z, those without a zone in the same form without the Z, base64 for
// binary, lists, maps and structs as JSON. A null appends nothing.
func (v *Vector) AppendText(dst []byte, i int) []byte {
	if v.Valid[i] == 0 {
		return dst
	}
	if v.Type.Kind.Nested() {
		return v.AppendJSON(dst, i)
	}
	return v.Value(i).AppendText(dst, v.Type)
}

// Unscaled returns the decimal of row i times ten to the power of its scale.
func (v *Vector) Unscaled(i int) Int128 {
	switch v.store {
	case inI32:
		return Int128{Hi: int64(v.I32[i]) >> 63, Lo: uint64(int64(v.I32[i]))}
	case inI64:
		return Int128{Hi: v.I64[i] >> 63, Lo: uint64(v.I64[i])}
	}
	return v.Wide[i]
}

func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, size)
}

func (x Int128) appendDecimal(dst []byte, scale int) []byte {
	hi, lo := uint64(x.Hi), x.Lo
	if x.Hi < 0 {
		dst = append(dst, '-')
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	var buf [40]byte
	at := len(buf)
	for n := 0; n <= scale || hi|lo != 0; n++ {
		if n == scale && scale > 0 {
			at--
			buf[at] = '.'
		}
		top, rest := hi/10, hi%10
		low, digit := bits.Div64(rest, lo, 10)
		hi, lo = top, low
		at--
		buf[at] = byte('0' + digit)
	}
	return append(dst, buf[at:]...)
}

// AppendTimestamp appends microseconds since 1970 as date, separator and time in UTC. With full there are always six
// fractional digits and a Z; without, trailing zeros and the zone are left out, as in Spark's partition names.
func AppendTimestamp(dst []byte, micros int64, separator byte, full bool) []byte {
	days := floorDiv(micros, secondsPerDay*microsPerSecond)
	rest := micros - days*secondsPerDay*microsPerSecond
	seconds, frac := rest/microsPerSecond, rest%microsPerSecond
	dst = append(appendDate(dst, days), separator)
	dst = append(appendPadded(dst, int(seconds/3600), 2), ':')
	dst = append(appendPadded(dst, int(seconds/60%60), 2), ':')
	dst = appendPadded(dst, int(seconds%60), 2)
	if full || frac != 0 {
		dst = appendPadded(append(dst, '.'), int(frac), 6)
	}
	if full {
		return append(dst, 'Z')
	}
	for frac != 0 && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// AppendLocal appends microseconds since 1970 as a date and a time without a zone, with six fractional digits.
func AppendLocal(dst []byte, micros int64) []byte {
	dst = AppendTimestamp(dst, micros, 'T', true)
	return dst[:len(dst)-len("Z")]
}

func appendDate(dst []byte, days int64) []byte {
	y, m, d := dateOf(days)
	if y < 0 {
		dst = append(dst, '-')
		y = -y
	}
	dst = append(appendPadded(dst, y, 4), '-')
	dst = append(appendPadded(dst, m, 2), '-')
	return appendPadded(dst, d, 2)
}

func appendPadded(dst []byte, n, width int) []byte {
	for limit := 10; width > 1; width-- {
		if n < limit {
			for w := width - 1; w > 0; w-- {
				dst = append(dst, '0')
			}
			break
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// AppendJSON appends the value of row i as a JSON value that Append reads back: text as AppendText writes it, in quotes
// where JSON has no such kind.
func (v *Vector) AppendJSON(dst []byte, i int) []byte {
	if v.Valid[i] == 0 {
		return append(dst, "null"...)
	}
	switch v.Type.Kind {
	case List:
		return v.appendList(dst, i)
	case Map:
		return v.appendMap(dst, i)
	case Struct:
		return v.appendStruct(dst, i)
	}
	return v.Value(i).AppendJSON(dst, v.Type)
}

func (v *Vector) appendList(dst []byte, i int) []byte {
	dst = append(dst, '[')
	from, to := v.Span(i)
	for k := from; k < to; k++ {
		if k > from {
			dst = append(dst, ',')
		}
		dst = v.Children[0].AppendJSON(dst, k)
	}
	return append(dst, ']')
}

// appendMap writes an object, with the text of each key as its name.
func (v *Vector) appendMap(dst []byte, i int) []byte {
	dst = append(dst, '{')
	keys := v.Children[0]
	from, to := v.Span(i)
	for k := from; k < to; k++ {
		if k > from {
			dst = append(dst, ',')
		}
		if keys.Type.Kind == String {
			dst = AppendQuoted(dst, keys.Bytes(k))
		} else {
			dst = append(keys.AppendText(append(dst, '"'), k), '"')
		}
		dst = v.Children[1].AppendJSON(append(dst, ':'), k)
	}
	return append(dst, '}')
}

func (v *Vector) appendStruct(dst []byte, i int) []byte {
	dst = append(dst, '{')
	for f, c := range v.Children {
		if f > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuoted(dst, []byte(v.Type.Fields[f].Name))
		dst = c.AppendJSON(append(dst, ':'), i)
	}
	return append(dst, '}')
}

// AppendQuoted appends valid UTF-8 text as a JSON string.
func AppendQuoted(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}
