package sandbox

import "github.com/wasmill/wasmill/abi"

// indexes are the records of a lane run by their number: those handed to the guest, and those it gave a verdict on. The
// numbers of a lane begin at 0 and have few gaps, so each takes one bit.
type indexes struct {
	handed, settled bits
}

func (x *indexes) hand(index uint32) {
	if index != abi.NoIndex {
		x.handed.set(index)
	}
}

// allows says whether an emitted record may stem from its index. A dead letter or a failure settles its record, once.
func (x *indexes) allows(r *abi.Record) bool {
	if r.Index == abi.NoIndex {
		return r.Kind == abi.KindRecord
	}
	if !x.handed.has(r.Index) {
		return false
	}
	if r.Kind == abi.KindRecord {
		return true
	}
	if x.settled.has(r.Index) {
		return false
	}
	x.settled.set(r.Index)
	return true
}

type bits []uint64

func (b bits) has(i uint32) bool {
	return int(i/64) < len(b) && b[i/64]&(1<<(i%64)) != 0
}

func (b *bits) set(i uint32) {
	if need := int(i/64) + 1; need > len(*b) {
		*b = append(*b, make([]uint64, need-len(*b))...)
	}
	(*b)[i/64] |= 1 << (i % 64)
}
