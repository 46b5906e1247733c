package wasmill

import "math/bits"

// Sub is a - b; false when it does not fit 64 bits.
func Sub(a, b int64) (int64, bool) {
	d := a - b
	return d, (a^b)&(a^d) >= 0
}

// Mul is a * b; false when it does not fit 64 bits.
func Mul(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 {
		return 0, false
	}
	return withSign(lo, (a < 0) != (b < 0))
}

// DivRound is a / b rounded half up (a half goes away from zero); false when b is 0 or the quotient does not fit.
func DivRound(a, b int64) (int64, bool) {
	if b == 0 {
		return 0, false
	}
	x, y := magnitude(a), magnitude(b)
	q, rest := x/y, x%y
	if rest >= y-rest {
		q++
	}
	return withSign(q, (a < 0) != (b < 0))
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func withSign(u uint64, minus bool) (int64, bool) {
	if minus {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}
