package parquetfile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/wasmill/wasmill/host/rows"
)

// maxBound is the longest minimum or maximum that is written: longer ones would make footers grow without bound.
const maxBound = 64

// stats are the statistics of one column chunk. Which fields hold the bounds depends on the type.
type stats struct {
	kind       rows.Kind
	width      int // bytes of a fixed bound
	nulls      int64
	any        bool
	minI, maxI int64
	minF, maxF float64
	minB, maxB []byte
	// The first and second eight bytes of minB and maxB, big-endian and filled up with zeros: most values are seen to lie
	// between by one comparison or two.
	min8, max8, min16, max16 uint64
}

func (s *stats) reset(t rows.Type) {
	*s = stats{kind: t.Kind, width: 8, minB: s.minB[:0], maxB: s.maxB[:0]}
	switch {
	case t.Kind == rows.Boolean:
		s.width = 1
	case t.Kind == rows.Int32 || t.Kind == rows.Date || t.Kind == rows.Float || t.Kind == rows.Decimal && t.Precision <= 9:
		s.width = 4
	}
}

func statInts[T int64 | int32 | uint8](s *stats, values []T) {
	if len(values) == 0 {
		return
	}
	lo, hi := values[0], values[0]
	for _, x := range values {
		lo, hi = min(lo, x), max(hi, x)
	}
	if !s.any {
		s.any, s.minI, s.maxI = true, int64(lo), int64(hi)
		return
	}
	s.minI, s.maxI = min(s.minI, int64(lo)), max(s.maxI, int64(hi))
}

// statFloats leaves NaN out, as parquet.thrift demands.
func statFloats[T float64 | float32](s *stats, values []T) {
	for _, x := range values {
		f := float64(x)
		switch {
		case f != f:
		case !s.any:
			s.any, s.minF, s.maxF = true, f, f
		case f < s.minF:
			s.minF = f
		case f > s.maxF:
			s.maxF = f
		}
	}
}

// prefix returns eight bytes of b from the given place on as a number, filled up with zeros. Where the prefixes of two
// values differ, the values are in the same order.
func prefix(b []byte, from int) uint64 {
	if len(b) >= from+8 {
		return binary.BigEndian.Uint64(b[from:])
	}
	var x uint64
	for i := from; i < from+8; i++ {
		x <<= 8
		if i < len(b) {
			x |= uint64(b[i])
		}
	}
	return x
}

func (s *stats) bytes(b []byte) {
	x := prefix(b, 0)
	if s.min8 < x && x < s.max8 {
		return
	}
	if x == s.min8 && x == s.max8 && s.any && len(b) >= 8 {
		if y := prefix(b, 8); s.min16 < y && y < s.max16 {
			return
		}
	}
	s.widen(b)
}

// widen makes b part of the bounds.
func (s *stats) widen(b []byte) {
	switch {
	case !s.any:
		s.any = true
		s.minB, s.maxB = append(s.minB, b...), append(s.maxB, b...)
	case bytes.Compare(b, s.minB) < 0:
		s.minB = append(s.minB[:0], b...)
	case bytes.Compare(b, s.maxB) > 0:
		s.maxB = append(s.maxB[:0], b...)
	default:
		return
	}
	s.min8, s.max8 = prefix(s.minB, 0), prefix(s.maxB, 0)
	s.min16, s.max16 = prefix(s.minB, 8), prefix(s.maxB, 8)
}

// bounds returns the minimum and maximum in PLAIN form, and whether there are any to write.
func (s *stats) bounds() (lo, hi []byte, ok bool) {
	if !s.any {
		return nil, nil, false
	}
	switch s.kind {
	case rows.String, rows.Binary:
		return s.minB, s.maxB, len(s.minB) <= maxBound && len(s.maxB) <= maxBound
	case rows.Double:
		return fixedBound(math.Float64bits(lowZero(s.minF)), 8), fixedBound(math.Float64bits(highZero(s.maxF)), 8), true
	case rows.Float:
		lo32, hi32 := math.Float32bits(float32(lowZero(s.minF))), math.Float32bits(float32(highZero(s.maxF)))
		return fixedBound(uint64(lo32), 4), fixedBound(uint64(hi32), 4), true
	}
	return fixedBound(uint64(s.minI), s.width), fixedBound(uint64(s.maxI), s.width), true
}

func fixedBound(x uint64, width int) []byte { return binary.LittleEndian.AppendUint64(nil, x)[:width] }

// lowZero and highZero make a zero bound cover both zeros, as parquet.thrift demands.
func lowZero(f float64) float64 {
	if f == 0 {
		return math.Copysign(0, -1)
	}
	return f
}

func highZero(f float64) float64 {
	if f == 0 {
		return 0
	}
	return f
}
