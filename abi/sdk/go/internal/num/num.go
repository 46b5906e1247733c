// Package num turns decimal text into integers and back, exactly and without floating point, at addresses in linear
// memory. It reads up to eight bytes behind a text and writes up to eight bytes behind what it returns, so both lie where
// that is allowed. Few branches and no loops on the usual path: in a Go module each taken branch costs several loads.
package num

import (
	"math"
	"math/bits"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// Room is what the longest number takes: sign, 19 digits, point, a zero before it, and what is written over.
const Room = 32

var pow10 = [20]uint64{
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
	1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
	1000000000000000000, 10000000000000000000,
}

// Eight is the number that eight digits make, the first one in the lowest byte; bad is not 0 when one is no digit.
func Eight(w uint64) (n, bad uint64) {
	d := w - '0'*ones
	bad = (d | (d + 0x76*ones)) & high
	d = d*10 + d>>8
	return ((d&0x000000ff000000ff)*(100+1000000<<32) + (d>>16&0x000000ff000000ff)*(1+10000<<32)) >> 32, bad
}

// Zeros are the digits that go before others to make eight of them, shift bits of them.
func Zeros(shift uint64) uint64 { return ('0' * ones) >> 1 >> ((63 - shift) & 63) }

// Int is the integer that n bytes at a stand for; false unless they are a plain integer (no fraction, no exponent) that
// fits 64 bits. Leading zeros are taken.
func Int(a, n uint64) (int64, bool) {
	w := mem.U64(a)
	minus := ((w&0xff ^ '-') - 1) >> 63 // 1 or 0
	digits := n - minus
	shift := (64 - 8*digits) & 63
	v, bad := Eight(w>>(8*minus&63)<<shift | Zeros(shift))
	if bad|(n-1)>>3|(digits-1)>>3 == 0 {
		return (int64(v) ^ -int64(minus)) + int64(minus), true
	}
	return intLong(a, n)
}

func intLong(a, n uint64) (int64, bool) {
	minus := n > 0 && mem.U8(a) == '-'
	if minus {
		a, n = a+1, n-1
	}
	if n == 0 {
		return 0, false
	}
	v := uint64(0)
	for _, c := range mem.Bytes(a, n) {
		d := uint64(c - '0')
		hi, lo := bits.Mul64(v, 10)
		if d > 9 || hi != 0 || lo > math.MaxUint64-d {
			return 0, false
		}
		v = lo + d
	}
	return signed(v, minus)
}

func signed(v uint64, minus bool) (int64, bool) {
	if minus {
		return -int64(v), v <= 1<<63
	}
	return int64(v), v <= math.MaxInt64
}

// Scaled is the value of the JSON number of n bytes at a, times 10^scale, rounded half up (a half goes away from zero);
// false when it is no JSON number or does not fit 64 bits. However long the text is, nothing is lost on the way.
func Scaled(a, n uint64, scale uint64) (int64, bool) {
	minus := uint64(0)
	if mem.U8(a) == '-' && n > 1 {
		minus = 1
	}
	digits := n - minus
	if digits-1 >= 8 {
		return scaledLong(a, n, scale)
	}
	w := mem.U64(a + minus)
	valid := uint64(math.MaxUint64) >> ((64 - 8*digits) & 63)
	x := w ^ '.'*ones
	point := (x - ones) & ^x & high & valid
	if point == 0 {
		shift := 64 - 8*digits
		v, bad := Eight(w<<(shift&63) | Zeros(shift))
		if bad != 0 || scale > 8 {
			return scaledLong(a, n, scale)
		}
		m := -int64(minus)
		return (int64(v*pow10[scale]) ^ m) - m, true
	}
	// The digits before the point and those behind it, moved together.
	at := uint64(bits.TrailingZeros64(point)) &^ 7
	fraction := digits - at/8 - 1
	before := uint64(1)<<(at&63) - 1
	w = w&before | w>>8&^before
	shift := 72 - 8*digits // 64 when there is the point alone, which at says too
	v, bad := Eight(w<<(shift&63) | Zeros(shift))
	if bad != 0 || at == 0 || fraction == 0 || fraction > scale || scale > 8 {
		return scaledLong(a, n, scale)
	}
	m := -int64(minus)
	return (int64(v*pow10[(scale-fraction)&15]) ^ m) - m, true
}

// scaledLong is the general case: any length, any scale, exponents. Only the first digit that is cut off decides the
// rounding.
func scaledLong(a, n uint64, scale uint64) (int64, bool) {
	text := mem.String(a, n)
	minus := n > 0 && text[0] == '-'
	if minus {
		text = text[1:]
	}
	whole := digitsOf(text)
	rest := text[whole:]
	fraction := ""
	if len(rest) > 0 && rest[0] == '.' {
		k := digitsOf(rest[1:])
		if k == 0 {
			return 0, false
		}
		fraction, rest = rest[1:1+k], rest[1+k:]
	}
	exp, ok := exponent(rest)
	if whole == 0 || !ok {
		return 0, false
	}
	// So many digits stand before the shifted decimal point.
	keep := int64(whole) + exp + int64(scale)
	v, up := uint64(0), uint64(0)
	for i := int64(0); i < max(keep, 0)+1; i++ {
		var d uint64
		switch {
		case i < int64(whole):
			d = uint64(text[i] - '0')
		case i-int64(whole) < int64(len(fraction)):
			d = uint64(fraction[i-int64(whole)] - '0')
		case v == 0:
			return 0, true // only zeros follow
		}
		if i == keep {
			up = (d + 5) / 10
		}
		if i >= keep {
			break
		}
		hi, lo := bits.Mul64(v, 10)
		if hi != 0 || lo > math.MaxUint64-d {
			return 0, false
		}
		v = lo + d
	}
	if v == math.MaxUint64 {
		return 0, false
	}
	return signed(v+up, minus)
}

func digitsOf(s string) int {
	n := 0
	for n < len(s) && s[n]-'0' <= 9 {
		n++
	}
	return n
}

func exponent(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	if s[0]|0x20 != 'e' {
		return 0, false
	}
	s = s[1:]
	sign := int64(1)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = 44-int64(s[0]), s[1:]
	}
	n := int64(0)
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<40)
	}
	return sign * n, s != ""
}

var pairs = func() (p [128]uint16) {
	for i := range 100 {
		p[i] = uint16('0'+i/10) | uint16('0'+i%10)<<8
	}
	return p
}()

// PutInt writes v in decimal at a, where Room bytes may be written, and returns where it ends.
func PutInt(a uint64, v int64) uint64 {
	if uint64(v) >= 100000000 {
		return putLong(a, v)
	}
	return Put(a, EightOf(uint32(v)))
}

// EightOf is the eight digits of n < 100000000, the first one in the lowest byte.
func EightOf(n uint32) uint64 {
	high := n / 10000
	return fourOf(high) | fourOf(n-high*10000)<<32
}

// fourOf is the four digits of n < 10000, the first one in the lowest byte.
func fourOf(n uint32) uint64 {
	high := n / 100
	return uint64(pairs[high&127]) | uint64(pairs[(n-high*100)&127])<<16
}

// Put writes eight digits at a without the leading zeros, of which the last digit is none, and returns where they end.
func Put(a, eight uint64) uint64 {
	zeros := uint64(bits.TrailingZeros64(eight^'0'*ones|1<<56)) &^ 7
	mem.PutU64(a, eight>>(zeros&63))
	return a + 8 - zeros/8
}

func putLong(a uint64, v int64) uint64 {
	u := uint64(v)
	if v < 0 {
		mem.PutU8(a, '-')
		a, u = a+1, -u
	}
	if u < 100000000 {
		return Put(a, EightOf(uint32(u)))
	}
	return putDigits(a, u, 1)
}

// putDigits writes u with at least width digits.
func putDigits(a, u uint64, width int) uint64 {
	n := width
	for n < 20 && u >= pow10[n] {
		n++
	}
	end := a + uint64(n)
	for at := end; at > a; {
		at--
		mem.PutU8(at, '0'+u%10)
		u /= 10
	}
	return end
}

// PutSmallDecimal is PutDecimal for unscaled < 10000 and a scale of 1 to 3.
func PutSmallDecimal(a, unscaled, scale uint64) uint64 {
	four := fourOf(uint32(unscaled))
	// The leading zeros, of which the digit before the point is none.
	zeros := min(uint64(bits.TrailingZeros64(four^0x30303030|1<<24)), 24-8*scale) &^ 7
	mem.PutU32(a, four>>(zeros&63))
	a += 4 - scale - zeros/8
	mem.PutU64(a, four>>((32-8*scale)&63)<<8|'.')
	return a + 1 + scale
}

// PutDecimal writes unscaled / 10^scale at a, always with scale digits behind the point, and returns where it ends. The
// scale is at most 18.
func PutDecimal(a uint64, unscaled int64, scale uint64) uint64 {
	scale = min(scale, 18)
	u := uint64(unscaled)
	if unscaled < 0 {
		mem.PutU8(a, '-')
		a, u = a+1, -u
	}
	if scale == 0 {
		return putDigits(a, u, 1)
	}
	whole, rest := u/pow10[scale], u%pow10[scale]
	a = putDigits(a, whole, 1)
	mem.PutU8(a, '.')
	return putDigits(a+1, rest, int(scale))
}
