package statestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// rawChunk is how many bytes of entries are kept in one piece of memory.
const rawChunk = 64 << 10

// unknownExpiry says that nobody has read when the entry expired that a change replaces.
const unknownExpiry = -1 << 63

// run is a sorted list of changes, in the encoding of the changelog: uvarint length of the key, key, uvarint length of
// the stored value + 1 (0: deleted), stored value. It does not change once it is built.
type run struct {
	chunks [][]byte
	refs   []ref
	index  []uint64
	bytes  int64
	puts   int64

	// expiring lists the puts with an expiry, by expiry and key.
	expiring []expiring
	// replaced has, for each change, the expiry of what it replaces: 0 none, or unknownExpiry. Nil when nothing expires.
	replaced []int64
}

type ref struct{ chunk, at uint32 }

type expiring struct {
	at  int64
	key []byte
}

func compareExpiring(a, b expiring) int {
	return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.key, b.key))
}

// entrySize is what a change takes; stored is negative for a deletion.
func entrySize(key, stored int) int {
	return uvarintLen(key) + key + uvarintLen(stored+1) + max(stored, 0)
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// room returns the chunk that has room for size more bytes.
func (r *run) room(size int) *[]byte {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last])+size > max(rawChunk, size) {
		start := rawChunk
		if last < 0 {
			start = 2 << 10 // most batches are small
		}
		r.chunks = append(r.chunks, make([]byte, 0, max(start, size)))
		last++
	}
	return &r.chunks[last]
}

// begin notes where the next change will stand and writes its key.
func (r *run) begin(key []byte, stored int) *[]byte {
	size := entrySize(len(key), stored)
	c := r.room(size)
	r.refs = append(r.refs, ref{uint32(len(r.chunks) - 1), uint32(len(*c))})
	r.bytes += int64(size)
	*c = append(binary.AppendUvarint(*c, uint64(len(key))), key...)
	return c
}

func (r *run) put(key, value []byte, expiry int64) {
	stored := 1 + len(value)
	if expiry != 0 {
		stored += 8
	}
	c := r.begin(key, stored)
	*c = appendStored(binary.AppendUvarint(*c, uint64(stored+1)), value, expiry)
	r.puts++
	if expiry != 0 {
		at := r.refs[len(r.refs)-1]
		k, _ := r.at(at)
		r.expiring = append(r.expiring, expiring{expiry, k})
	}
}

func (r *run) delete(key []byte) {
	c := r.begin(key, -1)
	*c = append(*c, 0)
}

// at returns the change at a place; stored is nil when it is a deletion.
func (r *run) at(p ref) (key, stored []byte) {
	b := r.chunks[p.chunk][p.at:]
	n, used := binary.Uvarint(b)
	b = b[used:]
	key, b = b[:n:n], b[n:]
	n, used = binary.Uvarint(b)
	if n == 0 {
		return key, nil
	}
	return key, b[used : used+int(n)-1 : used+int(n)-1]
}

// finish builds the index. hashes are those of the keys, or nil.
func (r *run) finish(hashes []uint64) {
	size := 8
	for size < len(r.refs)*2 {
		size *= 2
	}
	r.index = make([]uint64, size)
	for i, p := range r.refs {
		var h uint64
		if hashes != nil {
			h = hashes[i]
		} else {
			key, _ := r.at(p)
			h = hashKey(key)
		}
		place(r.index, h, i+1)
	}
	for i := range r.expiring { // chunks may have moved while they grew
		r.expiring[i].key = bytes.Clone(r.expiring[i].key)
	}
	slices.SortFunc(r.expiring, compareExpiring)
}

// find returns the number of a key's change, or -1.
func (r *run) find(hash uint64, key []byte) int {
	mask := uint64(len(r.index) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := r.index[at]
		if slot == 0 {
			return -1
		}
		if slot>>32 != hash>>32 {
			continue
		}
		i := int(uint32(slot)) - 1
		if k, _ := r.at(r.refs[i]); bytes.Equal(k, key) {
			return i
		}
	}
}

func (r *run) key(i int) []byte {
	k, _ := r.at(r.refs[i])
	return k
}

// search returns the number of the first change at or above key.
func (r *run) search(key []byte) int {
	at, _ := slices.BinarySearchFunc(r.refs, key, func(p ref, key []byte) int {
		k, _ := r.at(p)
		return bytes.Compare(k, key)
	})
	return at
}

// changeSet is all changes of one batch: runs one after the other, in key order, none of them empty.
type changeSet struct {
	runs    []*run
	entries int64
	bytes   int64 // of the entries as encoded
}

func (s *changeSet) add(r *run) {
	if len(r.refs) == 0 {
		return
	}
	s.runs = append(s.runs, r)
	s.entries += int64(len(r.refs))
	s.bytes += r.bytes
}

// runOf returns the number of the run whose last key is at or above key.
func (s *changeSet) runOf(key []byte) int {
	at, _ := slices.BinarySearchFunc(s.runs, key, func(r *run, key []byte) int {
		return bytes.Compare(r.key(len(r.refs)-1), key)
	})
	return at
}

// get returns the change of a key: stored is nil when it is a deletion.
func (s *changeSet) get(hash uint64, key []byte) (stored []byte, changed bool) {
	at := s.runOf(key)
	if at == len(s.runs) {
		return nil, false
	}
	r := s.runs[at]
	i := r.find(hash, key)
	if i < 0 {
		return nil, false
	}
	_, stored = r.at(r.refs[i])
	return stored, true
}

// held is the memory that the changes take.
func (s *changeSet) held() int64 {
	n := s.bytes
	for _, r := range s.runs {
		n += int64(len(r.refs))*8 + int64(len(r.index))*8 + int64(len(r.replaced))*8 + int64(len(r.expiring))*48
	}
	return n
}

// digest is the xxh3-128 of the entries as encoded.
func (s *changeSet) digest() [16]byte {
	h := xxh3.New()
	for _, r := range s.runs {
		for _, c := range r.chunks {
			_, _ = h.Write(c)
		}
	}
	return h.Sum128().Bytes()
}
