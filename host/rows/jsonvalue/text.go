package jsonvalue

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends text, which must be valid UTF-8, as a JSON string. ok is false, and dst of no use, when it is not.
func AppendString(dst, text []byte) (out []byte, ok bool) {
	if !utf8.Valid(text) {
		return dst, false
	}
	return AppendText(dst, text), true
}

// AppendText appends a JSON string. Bytes that are not UTF-8 pass through, for those who find that out later.
func AppendText(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// AppendBytes appends bytes as a JSON string of base64.
func AppendBytes(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// AppendFloat appends the shortest text that reads back as f; bits is 32 or 64.
func AppendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, f, form, -1, bits)
}

// MaxDecimalBytes bounds the bytes of a decimal, and MaxScale its scale.
const (
	MaxDecimalBytes = 1000
	MaxScale        = 1000
)

// AppendDecimal appends a decimal of big-endian two's complement digits.
func AppendDecimal(dst, digits []byte, scale int) []byte {
	var text [24]byte
	if len(digits) <= 8 {
		var x int64
		for i, c := range digits {
			if i == 0 {
				x = int64(int8(c))
			} else {
				x = x<<8 | int64(c)
			}
		}
		return AppendPoint(dst, strconv.AppendInt(text[:0], x, 10), scale)
	}
	n := new(big.Int).SetBytes(digits)
	if digits[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
	}
	return AppendPoint(dst, n.Append(text[:0], 10), scale)
}

// AppendPoint sets the point into the digits of an integer.
func AppendPoint(dst, digits []byte, scale int) []byte {
	if digits[0] == '-' {
		dst = append(dst, '-')
		digits = digits[1:]
	}
	if scale == 0 {
		return append(dst, digits...)
	}
	whole := len(digits) - scale
	if whole <= 0 {
		dst = append(dst, '0', '.')
		for range -whole {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:whole]...)
	return append(append(dst, '.'), digits[whole:]...)
}

// The seconds since 1970 in which the years 0001 and 9999 begin and end.
const (
	firstSecond = -62_135_596_800
	lastSecond  = 253_402_300_799
)

// AppendTime appends a time stamp: seconds since 1970 and nanoseconds from 0 to 999,999,999 after them. ok is false when it
// lies outside of the years. zone adds the Z.
func AppendTime(dst []byte, sec, nanos int64, zone bool) (out []byte, ok bool) {
	if sec < firstSecond || sec > lastSecond {
		return dst, false
	}
	form := `"2006-01-02T15:04:05.000000`
	if nanos%1000 != 0 {
		form = `"2006-01-02T15:04:05.000000000`
	}
	dst = time.Unix(sec, nanos).UTC().AppendFormat(dst, form)
	if zone {
		dst = append(dst, 'Z')
	}
	return append(dst, '"'), true
}

// Split cuts a count of units since 1970 into whole seconds and the nanoseconds after them.
func Split(n, perSecond int64) (sec, nanos int64) {
	sec, rest := n/perSecond, n%perSecond
	if rest < 0 {
		sec, rest = sec-1, rest+perSecond
	}
	return sec, rest * (1_000_000_000 / perSecond)
}

// AppendDate appends days since 1970. ok is false when they lie outside of the years.
func AppendDate(dst []byte, days int64) (out []byte, ok bool) {
	if days < firstSecond/86_400 || days > lastSecond/86_400 {
		return dst, false
	}
	return time.Unix(days*86_400, 0).UTC().AppendFormat(dst, `"2006-01-02"`), true
}

// AppendClock appends a time of day in nanoseconds. ok is false when it lies outside of a day.
func AppendClock(dst []byte, nanos int64) (out []byte, ok bool) {
	if nanos < 0 || nanos >= 86_400_000_000_000 {
		return dst, false
	}
	form := `"15:04:05.000000"`
	if nanos%1000 != 0 {
		form = `"15:04:05.000000000"`
	}
	return time.Unix(0, nanos).UTC().AppendFormat(dst, form), true
}

// AppendUUID appends 16 bytes in five groups.
func AppendUUID(dst, b []byte) []byte {
	dst = hex.AppendEncode(append(dst, '"'), b[:4])
	for _, part := range [][]byte{b[4:6], b[6:8], b[8:10], b[10:16]} {
		dst = hex.AppendEncode(append(dst, '-'), part)
	}
	return append(dst, '"')
}

// AppendDuration appends twelve bytes of months, days and milliseconds, little-endian, as an object of these.
func AppendDuration(dst, b []byte) []byte {
	for i, name := range []string{`{"months":`, `,"days":`, `,"millis":`} {
		dst = strconv.AppendUint(append(dst, name...), uint64(binary.LittleEndian.Uint32(b[4*i:])), 10)
	}
	return append(dst, '}')
}
