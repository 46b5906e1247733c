package statestore

import "bytes"

// What a cache knows of a key.
const (
	cacheUnknown = iota
	cacheAbsent
	cacheFound
)

// cache holds the last values of entries of one lane over its batches, also that there are none. It has two generations:
// when the younger one is half of the budget the older one is dropped, and what is used moves to the younger. A nil cache
// knows nothing and takes nothing.
//
// The bytes it returns stay as they are until put replaces them.
type cache struct {
	young, old cacheGen
	budget     int64 // of the values
	lists      lists
}

// cacheGen is one generation. It holds no pointers but to whole chunks: the garbage collector has nothing to look through.
type cacheGen struct {
	chunks  [][]byte
	bytes   int64
	entries []cacheEntry
	index   []uint64
}

type cacheEntry struct {
	hash       uint64
	expiry     int64
	key, value span
	room       uint32 // of the value
	found      bool
}

// span is a piece of a chunk.
type span struct{ chunk, at, length uint32 }

// cacheEntrySize is that of an entry with its place in the index, without its bytes.
const cacheEntrySize = 56 + 24

// alloc makes a piece of n bytes.
func (g *cacheGen) alloc(n int) span {
	last := len(g.chunks) - 1
	if last < 0 || cap(g.chunks[last])-len(g.chunks[last]) < n {
		size := arenaChunk
		if last < 0 {
			size = arenaChunk / 16
		}
		g.chunks = append(g.chunks, make([]byte, 0, max(size, n)))
		last++
	}
	at := len(g.chunks[last])
	g.chunks[last] = g.chunks[last][:at+n]
	g.bytes += int64(n)
	return span{uint32(last), uint32(at), uint32(n)}
}

func (g *cacheGen) at(s span) []byte {
	return g.chunks[s.chunk][s.at : s.at+s.length : s.at+s.length]
}

func (g *cacheGen) find(hash uint64, key []byte) *cacheEntry {
	if len(g.index) == 0 {
		return nil
	}
	mask := uint64(len(g.index) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := g.index[at]
		if slot == 0 {
			return nil
		}
		if slot>>32 != hash>>32 {
			continue
		}
		if e := &g.entries[uint32(slot)-1]; bytes.Equal(g.at(e.key), key) {
			return e
		}
	}
}

func (g *cacheGen) add(hash uint64, key []byte) *cacheEntry {
	if (len(g.entries)+1)*2 > len(g.index) {
		g.index = make([]uint64, max(64, len(g.index)*2))
		for i := range g.entries {
			place(g.index, g.entries[i].hash, i+1)
		}
	}
	k := g.alloc(len(key))
	copy(g.at(k), key)
	g.entries = append(g.entries, cacheEntry{hash: hash, key: k})
	place(g.index, hash, len(g.entries))
	return &g.entries[len(g.entries)-1]
}

func (g *cacheGen) set(e *cacheEntry, value []byte, expiry int64, found bool) {
	e.expiry, e.found = expiry, found
	if uint32(len(value)) > e.room {
		e.value = g.alloc(len(value))
		e.room = e.value.length
	}
	e.value.length = uint32(len(value))
	copy(g.at(e.value), value)
}

func (g *cacheGen) held() int64 {
	return g.bytes + int64(len(g.entries))*cacheEntrySize
}

func (c *cache) held() int64 { return c.young.held() + c.old.held() + c.lists.bytes }

// setBudget shares a budget between values and lists.
func (c *cache) setBudget(bytes int64) {
	c.budget, c.lists.budget = bytes/2, bytes/2
}

func (c *cache) get(hash uint64, key []byte) (value []byte, expiry int64, state int) {
	if c == nil {
		return nil, 0, cacheUnknown
	}
	e := c.young.find(hash, key)
	if e == nil {
		old := c.old.find(hash, key)
		if old == nil {
			return nil, 0, cacheUnknown
		}
		e = c.store(hash, key, c.old.at(old.value), old.expiry, old.found)
	}
	if !e.found {
		return nil, 0, cacheAbsent
	}
	return c.young.at(e.value), e.expiry, cacheFound
}

// put notes what is known of a key.
func (c *cache) put(hash uint64, key, value []byte, expiry int64, found bool) {
	if c != nil {
		c.store(hash, key, value, expiry, found)
	}
}

// update is put for a key that the cache has already; it does not take new ones.
func (c *cache) update(hash uint64, key, value []byte, expiry int64, found bool) {
	if c != nil && (c.young.find(hash, key) != nil || c.old.find(hash, key) != nil) {
		c.store(hash, key, value, expiry, found)
	}
}

func (c *cache) store(hash uint64, key, value []byte, expiry int64, found bool) *cacheEntry {
	if c.young.held() > c.budget/2 {
		c.old, c.young = c.young, cacheGen{}
	}
	e := c.young.find(hash, key)
	if e == nil {
		e = c.young.add(hash, key)
	}
	if !found {
		value = nil
	}
	c.young.set(e, value, expiry, found)
	return e
}
