package rows

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// Of the years 0001 to 9999.
const (
	firstMicro = firstSecond * microsPerSecond
	lastMicro  = (lastSecond+1)*microsPerSecond - 1
	firstDay   = firstSecond / secondsPerDay
	lastDate   = lastSecond / secondsPerDay
)

// holds reports whether a value that is not null lies in the type's range.
func (t *Type) holds(x *Value) bool {
	switch t.Kind {
	case Boolean:
		return x.Int>>1 == 0
	case Decimal:
		return x.Wide.digitsWithin(t.Precision)
	case Float:
		return math.IsNaN(x.Float) || float64(float32(x.Float)) == x.Float
	case String:
		return utf8.Valid(x.Bytes)
	}
	lo, hi := t.span()
	return x.Int >= lo && x.Int <= hi
}

// span returns the least and the greatest number of a type that Value.Int holds.
func (t *Type) span() (lo, hi int64) {
	switch t.Kind {
	case Int8:
		return math.MinInt8, math.MaxInt8
	case Int16:
		return math.MinInt16, math.MaxInt16
	case Int32:
		return math.MinInt32, math.MaxInt32
	case Date:
		return firstDay, lastDate
	case Timestamp, TimestampNTZ:
		return firstMicro, lastMicro
	}
	return math.MinInt64, math.MaxInt64
}

// digitsWithin reports whether the number has at most so many digits, up to MaxPrecision.
func (x Int128) digitsWithin(precision int) bool {
	hi, lo := uint64(x.Hi), x.Lo
	if x.Hi < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	limit := power10[precision]
	return hi < uint64(limit.Hi) || hi == uint64(limit.Hi) && lo < limit.Lo
}

// power10 holds the powers of ten up to that of MaxPrecision.
var power10 = func() (p [MaxPrecision + 1]Int128) {
	hi, lo := uint64(0), uint64(1)
	for i := range p {
		p[i] = Int128{Hi: int64(hi), Lo: lo}
		hi, lo = times10(hi, lo, 0)
	}
	return p
}()
