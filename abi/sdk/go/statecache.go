package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

// Limits of ABI 1.
const (
	maxStateKey   = 4096
	maxStateValue = 512 << 10
	maxTables     = 64
	minTime       = -62135596800000000 // the year 1, in microseconds
	maxTime       = 253402300800000000 // the year 10000
)

// Sizes of the cache, in bytes. It is emptied after a frame when it is large, and before a record when it is huge.
const (
	chunkSize  = 256 << 10
	largeCache = 4 << 20
	hugeCache  = 16 << 20
)

// Flags of a cached entry.
const (
	entryKnown = 1 << iota // the value is the entry's value
	entryDirty             // it was not written yet
	entryWanted
	entryErased // a timer was deleted in this batch: it is a new one when it is set again
)

// entry is an entry of state that was read or written in this batch, or a timer: then table is maxTables and its domain, and
// sub begins with the time. Words are an address and a length above it; a value that is not there has length -1.
type entry struct {
	sub, value uint64
	spare      uint64 // where the next value may go: the one before the last
	at         int64  // expiry, or a timer's time
	room       uint32 // how many bytes fit where the value lies
	spareRoom  uint32
	turn       uint32 // when the value was put
	hash       uint32
	key        uint32
	next       uint32 // the entry of the same key before it, plus 1
	table      uint16
	flags      uint8
}

// stateKey is a key that has entries.
type stateKey struct {
	word  uint64
	hash  uint32
	last  uint32 // its last entry, plus 1
	clear bool   // a clear of it was not written yet
}

// pending is a clear that was not written yet.
type pending struct {
	prefix uint64
	key    uint32
	table  Table
}

// store is what the module knows of its state: a cache in blocks that never move. Entries are visited in the order in which
// they came, so nothing depends on hashes.
type store struct {
	keep    bool
	singles []Table // tables with one entry a key that is read by default

	key  uint32 // the key at hand, plus 1; 0 when it was not looked up yet
	rec  uint64 // the record it belongs to
	turn uint32 // counts the records that used state

	keys     []stateKey
	entries  []entry
	keySlots []uint32 // by hash: index plus 1
	slots    []uint32
	dirty    []uint32
	timers   []uint32 // dirty ones
	wanted   []uint32
	clears   []pending
	deletes  bool // of timers
	timed    bool // the cache has timers

	chunks    []mem.Arena
	chunk     int
	next, end uint64
	used      uint64
	ops       mem.Arena
	pages     []*page
	depth     int
}

// wish is what every Prefetch function gets.
var wish Want

// keyed is the state of the one transform of this module.
var keyed store

// keepState makes the module one with state.
func keepState() {
	keyed.keep = true
	module.state = stateHooks{start: keyed.start, before: keyed.before, after: keyed.after}
}

// start makes the arenas. It is also how a process, in tests, begins anew.
func (s *store) start() bool {
	*s = store{keep: true, singles: s.singles, keySlots: make([]uint32, 2048), slots: make([]uint32, 4096)}
	s.keys, s.entries = make([]stateKey, 0, 1024), make([]entry, 0, 2048)
	s.dirty, s.wanted = make([]uint32, 0, 2048), make([]uint32, 0, 1024)
	return s.ops.Hold(maxOps*opSize+8) && s.refill(0)
}

// refill goes on with the next chunk that has n bytes.
func (s *store) refill(n uint64) bool {
	if s.next != 0 {
		s.chunk++
	}
	for s.chunk < len(s.chunks) && s.chunks[s.chunk].Len < n {
		s.chunks = append(s.chunks[:s.chunk], s.chunks[s.chunk+1:]...)
	}
	if s.chunk == len(s.chunks) {
		var c mem.Arena
		if !c.Hold(max(n, chunkSize)) {
			return false
		}
		s.chunks = append(s.chunks, c)
	}
	c := &s.chunks[s.chunk]
	s.next, s.end = c.Base, c.Base+c.Len
	return true
}

// alloc is the address of n bytes, which stay until the cache is emptied.
func (s *store) alloc(n uint64) uint64 {
	n = (n + 7) &^ 7
	if s.end-s.next < n && !s.refill(n) {
		panic("wasmill: not enough memory for state")
	}
	at := s.next
	s.next += n
	s.used += n
	return at
}

// copied is b in the cache's own memory, as a word.
func (s *store) copied(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	at := s.alloc(uint64(len(b)))
	copy(mem.Bytes(at, uint64(len(b))), b)
	return at | uint64(len(b))<<32
}

// empty forgets everything; all that was dirty is written.
func (s *store) empty() {
	clear(s.keySlots)
	clear(s.slots)
	s.keys, s.entries, s.wanted = s.keys[:0], s.entries[:0], s.wanted[:0]
	s.key, s.used, s.chunk, s.timed = 0, 0, 0, false
	c := &s.chunks[0]
	s.next, s.end = c.Base, c.Base+c.Len
}

func mix(h uint64) uint64 {
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

func hashOf(h uint64, b []byte) uint32 {
	h = mix(h ^ module.out.batch.Seed[0] + uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ *(*uint64)(unsafe.Pointer(unsafe.SliceData(b))))
	}
	for _, c := range b {
		h = mix(h ^ uint64(c) + 1)
	}
	return uint32(h)
}

func same(word uint64, b []byte) bool {
	return word>>32 == uint64(len(b)) && mem.String(word&0xffffffff, word>>32) == string(b)
}

// hand is the key at hand.
func (s *store) hand() uint32 {
	if s.key != 0 && s.rec == module.rec.at {
		return s.key - 1
	}
	if module.rec.at == 0 {
		panic("wasmill: state belongs to a key, and there is no record at the end of a lane: call UseKey")
	}
	key := module.rec.Key()
	if key == nil {
		panic("wasmill: state belongs to a key, and this record has none")
	}
	s.use(key)
	return s.key - 1
}

// use makes key the one at hand.
func (s *store) use(key []byte) {
	if len(key) > maxStateKey {
		panic("wasmill: a key has at most 4 KiB")
	}
	if s.used > hugeCache && s.depth == 0 {
		s.flush()
		s.empty()
	}
	s.turn++
	s.rec = module.rec.at
	h := hashOf(0, key)
	mask := uint32(len(s.keySlots) - 1)
	at := h & mask
	for ; s.keySlots[at] != 0; at = (at + 1) & mask {
		if k := &s.keys[s.keySlots[at]-1]; k.hash == h && same(k.word, key) {
			s.key = s.keySlots[at]
			return
		}
	}
	s.keys = append(s.keys, stateKey{word: s.copied(key), hash: h})
	s.key = uint32(len(s.keys))
	s.keySlots[at] = s.key
	if len(s.keys)*2 > len(s.keySlots) {
		s.keySlots = make([]uint32, 2*len(s.keySlots))
		for i := range s.keys {
			insert(s.keySlots, s.keys[i].hash, uint32(i+1))
		}
	}
}

// insert puts what is not in a table there.
func insert(slots []uint32, hash, index uint32) {
	mask := uint32(len(slots) - 1)
	at := hash & mask
	for slots[at] != 0 {
		at = (at + 1) & mask
	}
	slots[at] = index
}

// entry is the cached entry of the key at hand, made if it was not there. Its pointer is good until the next one is made.
func (s *store) entry(table Table, sub []byte) (index uint32, e *entry) {
	key := s.hand()
	if limit := maxStateKey + uint64(table/maxTables)*8; uint64(len(sub))+s.keys[key].word>>32 > limit {
		panic("wasmill: a key and its sub-key together have at most 4 KiB")
	}
	h := hashOf(uint64(key)<<16|uint64(table)|1<<63, sub)
	mask := uint32(len(s.slots) - 1)
	at := h & mask
	for ; s.slots[at] != 0; at = (at + 1) & mask {
		e := &s.entries[s.slots[at]-1]
		if e.hash == h && e.key == key && e.table == uint16(table) && same(e.sub, sub) {
			return s.slots[at] - 1, e
		}
	}
	index = uint32(len(s.entries))
	s.entries = append(s.entries, entry{sub: s.copied(sub), value: nullWord, hash: h, key: key, next: s.keys[key].last, table: uint16(table)})
	s.keys[key].last = index + 1
	s.slots[at] = index + 1
	s.used += uint64(unsafe.Sizeof(entry{}))
	if len(s.entries)*2 > len(s.slots) {
		s.slots = make([]uint32, 2*len(s.slots))
		for i := range s.entries {
			insert(s.slots, s.entries[i].hash, uint32(i+1))
		}
	}
	return index, &s.entries[index]
}
