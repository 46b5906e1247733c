package rows

import (
	"encoding/base64"
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// parseInt reads a JSON number with an exact integer value between lo and hi.
func parseInt(b []byte, i int, lo, hi int64) (int64, int, failure) {
	p := i
	neg := b[p] == '-'
	if neg {
		p++
	}
	start := p
	var x int64
	for p < len(b) && b[p]-'0' <= 9 && p-start < 18 {
		x = x*10 + int64(b[p]-'0')
		p++
	}
	if plainEnd(b, start, p) {
		if neg {
			x = -x
		}
		if x < lo || x > hi {
			return 0, i, failure{outOfRange, i}
		}
		return x, p, failure{}
	}
	if b[i] == '"' {
		return quotedInt(b, i, lo, hi)
	}
	end, ok := scanNumber(b, i)
	if !ok {
		return 0, i, wrongType(b, i)
	}
	v, code := exact(b[i:end], 0, 19)
	if code != fits {
		return 0, i, failure{code, i}
	}
	x = int64(v.Lo)
	if v.Hi != x>>63 || x < lo || x > hi {
		return 0, i, failure{outOfRange, i}
	}
	return x, end, failure{}
}

// plainEnd reports whether the digits b[start:p] are a whole JSON integer.
func plainEnd(b []byte, start, p int) bool {
	if p == start || b[start] == '0' && p-start > 1 {
		return false
	}
	if p == len(b) {
		return true
	}
	c := b[p]
	return c-'0' > 9 && c != '.' && c|0x20 != 'e'
}

// number is a JSON number taken apart: an integer without its trailing zeros, times a power of ten.
type number struct {
	neg         bool
	first, last int   // the significant digits lie in text[first:last], a point among them
	digits      int64 // how many; 0 for zero
	exp         int64 // of the last significant digit
}

// maxExponent caps exponents far outside of every type, so that sums cannot overflow.
const maxExponent = 1 << 40

func takeApart(text []byte) number {
	var n number
	var point, after, sig, trail int64 // digits after the point, significant ones, zeros at the end
	n.first = -1
	i := 0
	if text[0] == '-' {
		n.neg = true
		i = 1
	}
	for ; i < len(text) && text[i]|0x20 != 'e'; i++ {
		c := text[i]
		if c == '.' {
			point = 1
			continue
		}
		after += point
		if c == '0' {
			if n.first >= 0 {
				trail++
			}
			continue
		}
		if n.first < 0 {
			n.first = i
		}
		sig += trail + 1
		trail = 0
		n.last = i + 1
	}
	n.digits = sig
	n.exp = trail - after
	if i < len(text) {
		n.exp += exponent(text[i+1:])
	}
	return n
}

func exponent(text []byte) int64 {
	neg := text[0] == '-'
	if neg || text[0] == '+' {
		text = text[1:]
	}
	var e int64
	for _, c := range text {
		e = min(e*10+int64(c-'0'), maxExponent)
	}
	if neg {
		return -e
	}
	return e
}

// exact returns a JSON number times 10^scale, when that is an integer of at most the given number of digits.
func exact(text []byte, scale, precision int) (Int128, failCode) {
	n := takeApart(text)
	if n.digits == 0 {
		return Int128{}, fits
	}
	zeros := n.exp + int64(scale)
	if zeros < 0 {
		return Int128{}, tooPrecise
	}
	if n.digits+zeros > int64(precision) {
		return Int128{}, outOfRange
	}
	var hi, lo uint64
	for _, c := range text[n.first:n.last] {
		if c != '.' {
			hi, lo = times10(hi, lo, uint64(c-'0'))
		}
	}
	for ; zeros > 0; zeros-- {
		hi, lo = times10(hi, lo, 0)
	}
	if n.neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	return Int128{Hi: int64(hi), Lo: lo}, fits
}

// times10 returns 10 * x + d. Up to 38 digits stay below 2^127.
func times10(hi, lo, d uint64) (uint64, uint64) {
	top, low := bits.Mul64(lo, 10)
	low, carry := bits.Add64(low, d, 0)
	return hi*10 + top + carry, low
}

// decimalCaps is what the fast path of a decimal of up to 18 digits needs.
type decimalCaps struct {
	scale int
	max   int64 // 10^precision - 1
}

func capsOf(t Type) decimalCaps {
	if t.Kind != Decimal || t.Precision > 18 {
		return decimalCaps{}
	}
	return decimalCaps{scale: t.Scale, max: pow10[t.Precision] - 1}
}

var pow10 = [...]int64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
}

// decimal reads a number, or a string that holds one, into slot n.
func (v *Vector) decimal(b []byte, i, n int) (int, failure) {
	if b[i] == '"' {
		return v.quotedDecimal(b, i, n)
	}
	if v.store != inWide {
		if x, end, ok := shortDecimal(b, i, v.limit); ok {
			v.setUnscaled(n, Int128{Hi: x >> 63, Lo: uint64(x)})
			return end, failure{}
		}
	}
	end, ok := scanNumber(b, i)
	if !ok {
		return i, wrongType(b, i)
	}
	x, code := exact(b[i:end], v.Type.Scale, v.Type.Precision)
	if code != fits {
		return i, failure{code, i}
	}
	v.setUnscaled(n, x)
	return end, failure{}
}

func (v *Vector) quotedDecimal(b []byte, i, n int) (int, failure) {
	text, end, fail := quotedNumber(b, i)
	if fail.code != fits {
		return i, fail
	}
	x, code := exact(text, v.Type.Scale, v.Type.Precision)
	if code != fits {
		return i, failure{code, i}
	}
	v.setUnscaled(n, x)
	return end, failure{}
}

func (v *Vector) setUnscaled(n int, x Int128) {
	switch v.store {
	case inI32:
		v.I32[n] = int32(x.Lo)
	case inI64:
		v.I64[n] = int64(x.Lo)
	default:
		v.Wide[n] = x
	}
}

// shortDecimal reads an ordinary decimal of up to 18 digits without an exponent. It leaves all else to exact.
func shortDecimal(b []byte, i int, limit decimalCaps) (int64, int, bool) {
	m, end, frac, neg, ok := mantissa(b, i, 18)
	if !ok || frac > limit.scale {
		return 0, i, false
	}
	up := pow10[limit.scale-frac]
	if m > limit.max/up {
		return 0, i, false
	}
	m *= up
	if neg {
		m = -m
	}
	return m, end, true
}

// mantissa reads a number of at most maxDigits digits without an exponent as an integer and the count of its fractional
// digits.
func mantissa(b []byte, i, maxDigits int) (m int64, end, frac int, neg, ok bool) {
	p := i
	if b[p] == '-' {
		neg = true
		p++
	}
	start := p
	for p < len(b) && b[p]-'0' <= 9 && p-start <= maxDigits {
		m = m*10 + int64(b[p]-'0')
		p++
	}
	count := p - start
	if count == 0 || count > maxDigits || b[start] == '0' && count > 1 {
		return 0, i, 0, neg, false
	}
	if p < len(b) && b[p] == '.' {
		p++
		for p < len(b) && b[p]-'0' <= 9 && count+frac <= maxDigits {
			m = m*10 + int64(b[p]-'0')
			p++
			frac++
		}
		if frac == 0 || count+frac > maxDigits {
			return 0, i, 0, neg, false
		}
	}
	if p < len(b) && (b[p]|0x20 == 'e' || b[p]-'0' <= 9 || b[p] == '.') {
		return 0, i, 0, neg, false
	}
	return m, p, frac, neg, true
}

var float10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseFloat reads a JSON number as the nearest float of the given size. A short number is one exact integer divided by
// one exact power of ten, which IEEE 754 rounds correctly in a single operation on every machine.
func parseFloat(b []byte, i, size int) (float64, int, failure) {
	if size == 64 {
		if m, end, frac, neg, ok := mantissa(b, i, 15); ok {
			f := float64(m) / float10[frac]
			if neg {
				f = -f
			}
			return f, end, failure{}
		}
	}
	if b[i] == '"' {
		return quotedFloat(b, i, size)
	}
	end, ok := scanNumber(b, i)
	if !ok {
		return 0, i, wrongType(b, i)
	}
	f, err := strconv.ParseFloat(unsafe.String(&b[i], end-i), size)
	if err != nil {
		return 0, i, failure{outOfRange, i}
	}
	return f, end, failure{}
}

// base64 reads a string of padded standard base64 into slot n.
func (v *Vector) base64(b []byte, i, n int) (int, failure) {
	if b[i] != '"' {
		return i, wrongType(b, i)
	}
	raw, end, fail := stringText(b, i)
	if fail.code != fits {
		return i, fail
	}
	start := int(v.Ends[n])
	size := base64.StdEncoding.DecodedLen(len(raw))
	if int64(start)+int64(size) > maxData {
		return i, failure{tooLong, i}
	}
	if need := start + size; need > cap(v.Data) {
		grown := make([]byte, start, max(2*cap(v.Data), need))
		copy(grown, v.Data[:start])
		v.Data = grown
	}
	got, err := strictBase64.Decode(v.Data[start:start+size], raw)
	if err != nil || base64.StdEncoding.EncodedLen(got) != len(raw) {
		return i, failure{badText, i}
	}
	v.Data = v.Data[:start+got]
	v.Ends[n+1] = uint32(start + got)
	return end, failure{}
}

var strictBase64 = base64.StdEncoding.Strict()

// quiet makes each NaN the one that others write: for some engines, NaNs of other bits, math.NaN's among them, are other values.
func quiet(f float64) float64 {
	if f != f {
		return math.Float64frombits(0x7ff8 << 48)
	}
	return f
}

func quiet32(f float32) float32 {
	if f != f {
		return math.Float32frombits(0x7fc0 << 16)
	}
	return f
}
