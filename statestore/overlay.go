package statestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// What a record knows.
const (
	recRead      = 1 << iota // base is what this batch has read of the state before it
	recBaseFound             // the base has the entry (it may be hidden by its expiry)
	recWritten               // this batch puts or deletes the entry
	recDeleted               // the last write is a deletion
	recForced                // the deletion is needed although the entry was read as absent: it is there and hidden
	recOrdered               // the record is in the order
	recRemade                // deleted and put again by this batch: a timer that does not fire now
)

// record is one entry as one batch sees it.
type record struct {
	key         []byte // whole data key
	base, value []byte
	baseExpiry  int64
	expiry      int64
	hash        uint64
	flags       uint8
}

// overlay is what one lane of one batch has read and written: a hash table, and an order of what is written once somebody
// asks for it.
type overlay struct {
	arena arena
	slabs [][]record
	count int
	index []uint64 // upper half of the hash, and number of the record + 1
	order order
	list  []sortable
	hash  []uint64 // of the records of a run that is being built
	// sorted is set when the order is kept.
	sorted bool
}

func (o *overlay) record(i int) *record { return &o.slabs[i>>slabShift][i&(slabLen-1)] }

// hashSeed keeps whoever chooses keys from choosing those that collide. Hashes are of this process alone.
var hashSeed = maphash.MakeSeed()

func hashKey(key []byte) uint64 { return maphash.Bytes(hashSeed, key) }

// find returns the record of a key, or nil.
func (o *overlay) find(hash uint64, key []byte) *record {
	if len(o.index) == 0 {
		return nil
	}
	mask := uint64(len(o.index) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := o.index[at]
		if slot == 0 {
			return nil
		}
		if slot>>32 != hash>>32 {
			continue
		}
		if r := o.record(int(uint32(slot)) - 1); bytes.Equal(r.key, key) {
			return r
		}
	}
}

// add makes the record of a key that has none. The key is copied.
func (o *overlay) add(hash uint64, key []byte) *record {
	if (o.count+1)*2 > len(o.index) {
		o.rehash()
	}
	if o.count>>slabShift == len(o.slabs) {
		o.slabs = append(o.slabs, make([]record, slabLen))
	}
	r := o.record(o.count)
	*r = record{key: o.arena.copy(key), hash: hash}
	o.count++
	place(o.index, hash, o.count)
	return r
}

// place puts number n (from 1) into a hash table that has room.
func place(index []uint64, hash uint64, n int) {
	mask := uint64(len(index) - 1)
	at := hash & mask
	for index[at] != 0 {
		at = (at + 1) & mask
	}
	index[at] = hash>>32<<32 | uint64(uint32(n))
}

func (o *overlay) rehash() {
	o.index = make([]uint64, max(64, len(o.index)*2))
	for i := range o.count {
		place(o.index, o.record(i).hash, i+1)
	}
}

// setValue stores a value in a record, in place of its last one if that has room: the bytes a Get returned are valid only
// until a write.
func (o *overlay) setValue(r *record, value []byte) {
	switch {
	case cap(r.value) >= len(value) && r.value != nil:
		r.value = r.value[:len(value)]
	case r.value != nil:
		r.value = o.arena.alloc(len(value), len(value)+len(value)/2)
	default:
		r.value = o.arena.alloc(len(value), len(value))
	}
	copy(r.value, value)
}

// written marks a record as written and keeps the order.
func (o *overlay) written(r *record) {
	r.flags |= recWritten
	if o.sorted && r.flags&recOrdered == 0 {
		r.flags |= recOrdered
		o.order.insert(r)
	}
}

// sort makes sure that the order has every written record.
func (o *overlay) sort() {
	if o.sorted {
		return
	}
	o.sorted = true
	o.order.fill(o.writes())
}

// sortable is a written record with what its key begins with after the transform, which is one for all of a lane.
type sortable struct {
	first, second uint64
	*record
}

const sortedFrom = 3 // bytes that all keys of a lane have in common

func (s *sortable) compare(t *sortable) int {
	if s.first != t.first {
		return cmp.Compare(s.first, t.first)
	}
	if s.second != t.second {
		return cmp.Compare(s.second, t.second)
	}
	return bytes.Compare(s.key, t.key)
}

// prefix is the first eight bytes, zeros for those that are missing.
func prefix(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var p [8]byte
	copy(p[:], b)
	return binary.BigEndian.Uint64(p[:])
}

// writes returns the written records in key order. The list is used again by the next call.
func (o *overlay) writes() []sortable {
	list := o.list[:0]
	for i := range o.count {
		if r := o.record(i); r.flags&recWritten != 0 {
			list = append(list, sortable{prefix(r.key[sortedFrom:]), prefix(r.key[min(sortedFrom+8, len(r.key)):]), r})
		}
	}
	slices.SortFunc(list, func(a, b sortable) int { return a.compare(&b) })
	o.list = list
	return list
}

// held is the memory of all that the overlay has.
func (o *overlay) held() int64 {
	return o.arena.bytes + int64(o.count)*recordSize + int64(len(o.index))*8
}

// recordSize is that of a record in memory, with its place in the order.
const recordSize = 112

// reset forgets everything and keeps some memory for the next use.
func (o *overlay) reset() {
	o.arena.reset(maxIdle)
	for _, s := range o.slabs[:min(len(o.slabs), (o.count+slabLen-1)>>slabShift)] {
		clear(s)
	}
	if most := maxIdle / recordSize >> slabShift; len(o.slabs) > most {
		clear(o.slabs[most:])
		o.slabs = o.slabs[:most]
		o.index = nil
	}
	clear(o.list)
	if cap(o.list) > maxIdle/32 {
		o.list, o.hash = nil, nil
	}
	clear(o.index)
	o.count, o.sorted = 0, false
	o.order = order{}
}

// order is a list of records in key order, in blocks that are split when they are full.
type order struct {
	blocks [][]*record
}

const orderBlock = 256

func (o *order) fill(sorted []sortable) {
	o.blocks = nil
	for chunk := range slices.Chunk(sorted, orderBlock/2) {
		b := make([]*record, 0, orderBlock)
		for i := range chunk {
			chunk[i].flags |= recOrdered
			b = append(b, chunk[i].record)
		}
		o.blocks = append(o.blocks, b)
	}
}

// find returns the place of the first record at or above key: a block and a place in it, at most one past the last block.
func (o *order) find(key []byte) (block, at int) {
	block, _ = slices.BinarySearchFunc(o.blocks, key, func(b []*record, key []byte) int {
		return bytes.Compare(b[len(b)-1].key, key)
	})
	if block == len(o.blocks) {
		return block, 0
	}
	at, _ = slices.BinarySearchFunc(o.blocks[block], key, func(r *record, key []byte) int { return bytes.Compare(r.key, key) })
	return block, at
}

func (o *order) insert(r *record) {
	if len(o.blocks) == 0 {
		o.blocks = append(o.blocks, append(make([]*record, 0, orderBlock), r))
		return
	}
	block, at := o.find(r.key)
	if block == len(o.blocks) {
		block--
		at = len(o.blocks[block])
	}
	b := slices.Insert(o.blocks[block], at, r)
	o.blocks[block] = b
	if len(b) < orderBlock {
		return
	}
	upper := append(make([]*record, 0, orderBlock), b[orderBlock/2:]...)
	clear(b[orderBlock/2:])
	o.blocks[block] = b[:orderBlock/2]
	o.blocks = slices.Insert(o.blocks, block+1, upper)
}
