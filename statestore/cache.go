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

type cacheGen struct {
	arena   arena
	entries []cacheEntry
	index   []uint64
}

type cacheEntry struct {
	key, value []byte
	expiry     int64
	hash       uint64
	found      bool
}

// cacheEntrySize is that of an entry with its place in the index, without its bytes.
const cacheEntrySize = 80 + 24

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
		if e := &g.entries[uint32(slot)-1]; bytes.Equal(e.key, key) {
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
	g.entries = append(g.entries, cacheEntry{key: g.arena.copy(key), hash: hash})
	place(g.index, hash, len(g.entries))
	return &g.entries[len(g.entries)-1]
}

func (g *cacheGen) held() int64 {
	return g.arena.bytes + int64(len(g.entries))*cacheEntrySize
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
		if old := c.old.find(hash, key); old != nil {
			e = c.store(hash, key, old.value, old.expiry, old.found)
		}
	}
	switch {
	case e == nil:
		return nil, 0, cacheUnknown
	case !e.found:
		return nil, 0, cacheAbsent
	}
	return e.value, e.expiry, cacheFound
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
	switch {
	case !found:
		e.value = e.value[:0]
	case e.value != nil && cap(e.value) >= len(value):
		e.value = append(e.value[:0], value...)
	default:
		e.value = c.young.arena.copy(value)
	}
	e.expiry, e.found = expiry, found
	return e
}
