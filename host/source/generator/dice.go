package generator

import (
	"encoding/binary"
	"math/bits"
)

// dice is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): a counter and a mixer,
// so that the throws for event n do not depend on those before.
type dice uint64

func (d *dice) throw() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below throws for 0..n-1. The bias is below n / 2^64.
func (d *dice) below(n int64) int64 { return int64(d.throw() % uint64(n)) }

// upTo throws for 0..n-1 by the upper half of a product, without a division; 0 for n = 0. The bias is below n / 2^64.
func (d *dice) upTo(n int64) int64 {
	high, _ := bits.Mul64(d.throw(), uint64(n))
	return int64(high)
}

// appendLetters appends n letters a to z, eight a throw: letter i is 'a' + 26 b / 256 for byte i of the throw, the lowest
// first, so that each letter comes 9 or 10 times in 256.
func (d *dice) appendLetters(b []byte, n int64) []byte {
	const even, base = 0x00ff00ff00ff00ff, 0x6161616161616161
	end := len(b) + int(n)
	for len(b) < end {
		x := d.throw()
		low, high := (x&even)*26>>8&even, (x>>8&even)*26&^even
		b = binary.LittleEndian.AppendUint64(b, (low|high)+base)
	}
	return b[:end]
}

// times returns a times b, b in units of 2^-62, rounded down.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high<<2 | low>>62
}
