package parquetfile

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/host/rows"
)

// A dictionary is given up when it grows beyond these, or when most of the values seen at a checkpoint are new.
const (
	dictEntries = 1 << 15
	dictBytes   = 512 << 10
	dictCheck   = 512
)

// dictionary finds the distinct values of one column chunk and numbers them by first appearance.
type dictionary struct {
	indices []uint32 // of the values that are not null, in order
	slots   []uint32 // open addressing; number + 1, or 0
	hashes  []uint64 // by number
	fixed   []uint64 // by number, for fixed-size values
	ends    []uint32 // byte values: number i is data[ends[i]:ends[i+1]]
	data    []byte
	recent  [64]uint32 // number + 1 of the last value with a given length and ends, or 0
	kind    rows.Kind
	size    int // bytes of a fixed-size value, 0 for byte values
	plain   int // bytes of all values in PLAIN form
}

func (d *dictionary) len() int { return len(d.hashes) }

// width is the number of bits of an index.
func (d *dictionary) width() int { return bits.Len(uint(max(len(d.hashes), 1) - 1)) }

// build reads a column and reports whether a dictionary makes it smaller.
func (d *dictionary) build(from []Rows, col int) bool {
	d.indices, d.hashes, d.fixed, d.data = d.indices[:0], d.hashes[:0], d.fixed[:0], d.data[:0]
	d.ends = append(d.ends[:0], 0)
	if d.slots == nil {
		d.slots = make([]uint32, 1024)
	}
	clear(d.slots)
	clear(d.recent[:])
	d.plain = 0
	for _, r := range from {
		v := r.Table.Column(col)
		d.kind = v.Type.Kind
		for at := 0; at < r.Len(); at += dictCheck {
			n := min(dictCheck, r.Len()-at)
			if !d.add(v, r, at, n) {
				return false
			}
			seen := len(d.indices)
			if seen >= dictCheck && len(d.hashes) > seen/2 || len(d.hashes) > dictEntries || len(d.data) > dictBytes {
				return false
			}
		}
	}
	own := len(d.hashes)*d.size + len(d.data) + 4*(len(d.ends)-1)
	return len(d.indices) > 0 && own+len(d.indices)*d.width()/8 < d.plain
}

// add takes n rows from the at-th on. It reports false for types that have no dictionary.
func (d *dictionary) add(v *rows.Vector, r Rows, at, n int) bool {
	switch {
	case v.Ends != nil:
		d.size = 0
		d.addBytes(v, r, at, n)
	case v.I64 != nil:
		d.size = 8
		addFixed(d, v.I64, v.Valid, r, at, n, func(x int64) uint64 { return uint64(x) })
	case v.I32 != nil:
		d.size = 4
		addFixed(d, v.I32, v.Valid, r, at, n, func(x int32) uint64 { return uint64(uint32(x)) })
	case v.F64 != nil:
		d.size = 8
		addFixed(d, v.F64, v.Valid, r, at, n, math.Float64bits)
	default:
		return false
	}
	return true
}

func addFixed[T any](d *dictionary, values []T, valid []uint8, r Rows, at, n int, asBits func(T) uint64) {
	for k := at; k < at+n; k++ {
		i := k
		if r.Index != nil {
			i = int(r.Index[k])
		}
		if valid[i] == 0 {
			continue
		}
		d.plain += d.size
		d.indices = append(d.indices, d.findFixed(asBits(values[i])))
	}
}

func (d *dictionary) findFixed(x uint64) uint32 {
	h := x * 0x9e3779b97f4a7c15
	h ^= h >> 32
	mask := uint64(len(d.slots) - 1)
	for s := h & mask; ; s = (s + 1) & mask {
		n := d.slots[s]
		if n == 0 {
			d.fixed = append(d.fixed, x)
			return d.insert(s, h)
		}
		if d.fixed[n-1] == x {
			return n - 1
		}
	}
}

func (d *dictionary) addBytes(v *rows.Vector, r Rows, at, n int) {
	for k := at; k < at+n; k++ {
		i := k
		if r.Index != nil {
			i = int(r.Index[k])
		}
		if v.Valid[i] == 0 {
			continue
		}
		b := v.Data[v.Ends[i]:v.Ends[i+1]]
		d.plain += len(b) + 4
		d.indices = append(d.indices, d.findBytes(b))
	}
}

// findBytes looks first where the last value of this length and ends was found: a column of few words is then never hashed.
func (d *dictionary) findBytes(b []byte) uint32 {
	recent := &d.recent[0]
	if len(b) > 0 {
		recent = &d.recent[(len(b)*5^int(b[0])*3^int(b[len(b)-1]))&63]
	}
	if n := *recent; n > 0 && string(d.data[d.ends[n-1]:d.ends[n]]) == string(b) {
		return n - 1
	}
	n := d.lookUp(b)
	*recent = n + 1
	return n
}

func (d *dictionary) lookUp(b []byte) uint32 {
	h := xxh3.Hash(b)
	mask := uint64(len(d.slots) - 1)
	for s := h & mask; ; s = (s + 1) & mask {
		n := d.slots[s]
		if n == 0 {
			d.data = append(d.data, b...)
			d.ends = append(d.ends, uint32(len(d.data)))
			return d.insert(s, h)
		}
		if d.hashes[n-1] == h && string(d.data[d.ends[n-1]:d.ends[n]]) == string(b) {
			return n - 1
		}
	}
}

func (d *dictionary) insert(slot, hash uint64) uint32 {
	d.hashes = append(d.hashes, hash)
	d.slots[slot] = uint32(len(d.hashes))
	if len(d.hashes)*2 > len(d.slots) {
		d.rehash()
	}
	return uint32(len(d.hashes) - 1)
}

func (d *dictionary) rehash() {
	d.slots = make([]uint32, 2*len(d.slots))
	mask := uint64(len(d.slots) - 1)
	for n, h := range d.hashes {
		s := h & mask
		for d.slots[s] != 0 {
			s = (s + 1) & mask
		}
		d.slots[s] = uint32(n + 1)
	}
}

// appendPlain appends the dictionary page's values.
func (d *dictionary) appendPlain(dst []byte) []byte {
	for n := range d.hashes {
		switch d.size {
		case 0:
			b := d.data[d.ends[n]:d.ends[n+1]]
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(b))), b...)
		case 4:
			dst = binary.LittleEndian.AppendUint32(dst, uint32(d.fixed[n]))
		default:
			dst = binary.LittleEndian.AppendUint64(dst, d.fixed[n])
		}
	}
	return dst
}

// stats takes all entries into the statistics: each is a value of the column.
func (d *dictionary) stats(s *stats) {
	for n := range d.hashes {
		switch {
		case d.size == 0:
			s.bytes(d.data[d.ends[n]:d.ends[n+1]])
		case d.kind == rows.Double:
			statFloats(s, []float64{math.Float64frombits(d.fixed[n])})
		case d.size == 4:
			statInts(s, []int32{int32(d.fixed[n])})
		default:
			statInts(s, []int64{int64(d.fixed[n])})
		}
	}
}
