package parquetfile

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/wasmill/wasmill/host/rows"
)

// A page ends at this many rows, or bytes of values, whichever comes first; bytes are looked at once a step of rows.
const (
	pageRows  = 65536
	pageBytes = 256 << 10
	pageStep  = 1024
)

// pageBuffer gathers one data page.
type pageBuffer struct {
	levels  []uint8 // definition levels
	nulls   int
	values  []byte   // PLAIN values
	bools   []uint8  // booleans, not yet packed
	indices []uint32 // dictionary indices
	out     []byte
	i64     []int64
	i32     []int32
	f64     []float64
	f32     []float32
}

func (p *pageBuffer) reset() {
	p.levels, p.values, p.bools, p.indices = p.levels[:0], p.values[:0], p.bools[:0], p.indices[:0]
	p.nulls = 0
}

// room returns how many rows may come before the page's size is looked at again.
func (p *pageBuffer) room() int { return min(pageStep, pageRows-len(p.levels)) }

func (p *pageBuffer) full() bool { return len(p.levels) >= pageRows || len(p.values) >= pageBytes }

// body returns the whole page: levels, then values.
func (p *pageBuffer) body(dict bool, width int) []byte {
	p.out = appendLevels(p.out[:0], p.levels, p.nulls)
	switch {
	case dict:
		p.out = appendHybrid(append(p.out, byte(width)), p.indices, width)
	case len(p.bools) > 0:
		p.out = appendBits(p.out, p.bools)
	default:
		p.out = append(p.out, p.values...)
	}
	return p.out
}

// levels1 appends the definition levels of n rows from the at-th on.
func (p *pageBuffer) levels1(v *rows.Vector, r Rows, at, n int) {
	from := len(p.levels)
	if r.Index == nil {
		p.levels = append(p.levels, v.Valid[at:at+n]...)
	} else {
		for _, i := range r.Index[at : at+n] {
			p.levels = append(p.levels, v.Valid[i])
		}
	}
	present := 0
	for _, l := range p.levels[from:] {
		present += int(l)
	}
	p.nulls += n - present
}

// plain appends the PLAIN values of n rows from the at-th on, nulls left out, and takes them into the statistics.
func (p *pageBuffer) plain(v *rows.Vector, r Rows, at, n int, s *stats) {
	switch {
	case v.Ends != nil:
		p.plainBytes(v, r, at, n, s)
	case v.I64 != nil:
		p.i64 = gather(p.i64[:0], v.I64, v.Valid, r, at, n)
		statInts(s, p.i64)
		dst := p.extend(8 * len(p.i64))
		for i, x := range p.i64 {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(x))
		}
	case v.I32 != nil:
		p.i32 = gather(p.i32[:0], v.I32, v.Valid, r, at, n)
		statInts(s, p.i32)
		dst := p.extend(4 * len(p.i32))
		for i, x := range p.i32 {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(x))
		}
	case v.F64 != nil:
		p.f64 = gather(p.f64[:0], v.F64, v.Valid, r, at, n)
		statFloats(s, p.f64)
		dst := p.extend(8 * len(p.f64))
		for i, x := range p.f64 {
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(x))
		}
	case v.F32 != nil:
		p.f32 = gather(p.f32[:0], v.F32, v.Valid, r, at, n)
		statFloats(s, p.f32)
		dst := p.extend(4 * len(p.f32))
		for i, x := range p.f32 {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case v.Wide != nil:
		p.plainWide(v, r, at, n)
	default:
		from := len(p.bools)
		p.bools = gather(p.bools, v.Bools, v.Valid, r, at, n)
		statInts(s, p.bools[from:])
	}
}

// extend makes the values n bytes longer and returns the new bytes.
func (p *pageBuffer) extend(n int) []byte {
	from := len(p.values)
	p.values = slices.Grow(p.values, n)[:from+n]
	return p.values[from:]
}

// gather appends the values of n rows from the at-th on, nulls left out.
func gather[T any](dst, src []T, valid []uint8, r Rows, at, n int) []T {
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	k := from
	if r.Index == nil {
		for i := at; i < at+n; i++ {
			dst[k] = src[i]
			k += int(valid[i])
		}
		return dst[:k]
	}
	for _, i := range r.Index[at : at+n] {
		dst[k] = src[i]
		k += int(valid[i])
	}
	return dst[:k]
}

func (p *pageBuffer) plainBytes(v *rows.Vector, r Rows, at, n int, s *stats) {
	dst := p.values
	if r.Index == nil {
		dst = slices.Grow(dst, 4*n+int(v.Ends[at+n]-v.Ends[at]))
	}
	for k := at; k < at+n; k++ {
		i := k
		if r.Index != nil {
			i = int(r.Index[k])
		}
		if v.Valid[i] == 0 {
			continue
		}
		b := v.Data[v.Ends[i]:v.Ends[i+1]]
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(b))), b...)
		s.bytes(b)
	}
	p.values = dst
}

// plainWide appends decimals as big-endian two's complement of the fewest bytes that hold the precision.
func (p *pageBuffer) plainWide(v *rows.Vector, r Rows, at, n int) {
	size := wideSize(v.Type.Precision)
	var full [16]byte
	for k := at; k < at+n; k++ {
		i := k
		if r.Index != nil {
			i = int(r.Index[k])
		}
		if v.Valid[i] == 0 {
			continue
		}
		binary.BigEndian.PutUint64(full[:8], uint64(v.Wide[i].Hi))
		binary.BigEndian.PutUint64(full[8:], v.Wide[i].Lo)
		p.values = append(p.values, full[16-size:]...)
	}
}

// wideSize returns the fewest bytes that hold every decimal of a precision and its sign. 10^precision has
// floor(precision * log2(10)) + 1 bits.
func wideSize(precision int) int {
	digits := precision*33219281/10000000 + 1
	return (digits + 1 + 7) / 8
}
