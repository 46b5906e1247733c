package wasmgen

import "math"

// source gives choices out of bytes.
type source struct {
	b   []byte
	pos int
}

func (s *source) byte() byte {
	if s.pos >= len(s.b) {
		return 0
	}
	s.pos++
	return s.b[s.pos-1]
}

// below is a number below n, which is at most 65,536.
func (s *source) below(n int) int {
	v := int(s.byte())
	if n > 256 {
		v = v<<8 | int(s.byte())
	}
	return v % n
}

// one says yes in one of n cases, and no when the bytes are used up.
func (s *source) one(n int) bool { return s.below(n) == n-1 }

// numbers are such as break things.
var numbers = []uint64{
	0, 1, 2, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, math.MaxInt32, 1 << 31,
	math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64, 0x7f80_0000, 0x7fc0_0000, 0xffc0_0000, 0x7fa0_0001,
	0x3f80_0000, 0x4f00_0000, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0001, 0x7ff4_0000_0000_0000,
	0x3ff0_0000_0000_0000, 0x41e0_0000_0000_0000, 0x43e0_0000_0000_0000, 0x0000_0001_0000_0001,
}

// number is a bit pattern: small, remarkable, or any.
func (s *source) number() uint64 {
	switch s.below(4) {
	case 0:
		return uint64(s.byte())
	case 1, 2:
		n := numbers[s.below(len(numbers))]
		if s.one(4) {
			return -n
		}
		return n
	}
	n := uint64(0)
	for range 8 {
		n = n<<8 | uint64(s.byte())
	}
	return n
}

// mixer is SplitMix64.
type mixer uint64

func (m *mixer) next() uint64 {
	*m += 0x9e3779b97f4a7c15
	z := uint64(*m)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
