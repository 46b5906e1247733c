//go:build failpoints

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
)

// held is a backend of the state in memory that holds the background apply back: taking a batch over costs next to nothing,
// touches no disk, and leaves the garbage collector nothing to look through. It answers as of the newest batch alone, which
// is right for a job that runs, as what is newer than a batch stands in the changes over it. Nothing is left when the
// process ends. It is there to measure what the real apply costs the batches beside it; a read costs what it costs there, as
// each looks for a pair in a store on disk that nobody writes to.
type held struct {
	still  statestore.Backend
	mu     sync.RWMutex
	marker statestore.Marker
	blocks [][]heldPair // in key order, none empty
	arena  heldArena
	count  int64
	oldest int64
}

type heldPair struct{ key, value heldSpan }

// stillPairs is how many pairs the store has that nobody writes to, those of a batch a tenth of them.
const stillPairs = 600_000

func openHeld(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
	cfg.Fresh = true
	still, err := badger.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	value := make([]byte, 48)
	for batch := range int64(10) {
		err := still.Apply(ctx, statestore.Marker{Batch: batch}, func(yield func(statestore.Change, error) bool) {
			for i := uint64(batch); i < stillPairs; i += 10 {
				if !yield(statestore.Change{Key: stillKey(i), Value: value}, nil) {
					return
				}
			}
		})
		if err != nil {
			return nil, errors.Join(err, still.Close())
		}
	}
	if err := still.Close(); err != nil { // all is in tables then
		return nil, err
	}
	cfg.Fresh = false
	still, err = badger.Open(ctx, cfg)
	return &held{still: still, marker: statestore.Marker{Batch: -1}, oldest: -1}, err
}

// stillKey is as long as keys of windows are; those that come close together lie far apart.
func stillKey(i uint64) []byte {
	return fmt.Appendf(nil, "\x10 a window of customer %020d", i)
}

// look reads a pair of the store on disk, or, for what is not found, looks for one that it has not got.
func (h *held) look(key []byte, found bool) error {
	i := xxh3.Hash(key) % stillPairs
	if !found {
		i += stillPairs
	}
	_, _, err := h.still.Get(1<<40, stillKey(i), nil)
	return err
}

// heldSpan is a piece of a chunk of memory.
type heldSpan struct{ chunk, at, length uint32 }

const (
	heldChunk = 1 << 20
	heldUnit  = 32 // pieces are multiples of it, and used again by their size
	heldBlock = 512
)

type heldArena struct {
	chunks [][]byte
	free   map[uint32][]heldSpan
	bytes  int64
}

func (a *heldArena) at(s heldSpan) []byte {
	return a.chunks[s.chunk][s.at : s.at+s.length : s.at+s.length]
}

func (a *heldArena) add(b []byte) heldSpan {
	units := uint32(len(b)+heldUnit-1) / heldUnit
	a.bytes += int64(units) * heldUnit
	if list := a.free[units]; len(list) > 0 {
		s := list[len(list)-1]
		a.free[units] = list[:len(list)-1]
		s.length = uint32(len(b))
		copy(a.at(s), b)
		return s
	}
	last := len(a.chunks) - 1
	if need := int(units) * heldUnit; last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < need {
		a.chunks = append(a.chunks, make([]byte, 0, max(heldChunk, need)))
		last++
	}
	c := a.chunks[last]
	s := heldSpan{uint32(last), uint32(len(c)), uint32(len(b))}
	a.chunks[last] = c[:len(c)+int(units)*heldUnit]
	copy(a.at(s), b)
	return s
}

func (a *heldArena) drop(s heldSpan) {
	units := (s.length + heldUnit - 1) / heldUnit
	a.bytes -= int64(units) * heldUnit
	if a.free == nil {
		a.free = map[uint32][]heldSpan{}
	}
	a.free[units] = append(a.free[units], s)
}

// find returns the place of the first pair at or above key, and whether it is that of key.
func (h *held) find(key []byte) (block, at int, found bool) {
	block = sort.Search(len(h.blocks), func(i int) bool {
		b := h.blocks[i]
		return bytes.Compare(h.arena.at(b[len(b)-1].key), key) >= 0
	})
	if block == len(h.blocks) {
		return block, 0, false
	}
	at, found = slices.BinarySearchFunc(h.blocks[block], key, func(p heldPair, key []byte) int {
		return bytes.Compare(h.arena.at(p.key), key)
	})
	return block, at, found
}

func (h *held) put(key, value []byte) {
	block, at, found := h.find(key)
	if found {
		p := &h.blocks[block][at]
		h.arena.drop(p.value)
		p.value = h.arena.add(value)
		return
	}
	h.count++
	p := heldPair{h.arena.add(key), h.arena.add(value)}
	if len(h.blocks) == 0 {
		h.blocks = append(h.blocks, append(make([]heldPair, 0, heldBlock), p))
		return
	}
	if block == len(h.blocks) {
		block--
		at = len(h.blocks[block])
	}
	b := slices.Insert(h.blocks[block], at, p)
	h.blocks[block] = b
	if len(b) == heldBlock {
		h.blocks[block] = b[:heldBlock/2]
		upper := append(make([]heldPair, 0, heldBlock), b[heldBlock/2:]...)
		h.blocks = slices.Insert(h.blocks, block+1, upper)
	}
}

func (h *held) remove(key []byte) {
	block, at, found := h.find(key)
	if !found {
		return
	}
	h.count--
	h.arena.drop(h.blocks[block][at].key)
	h.arena.drop(h.blocks[block][at].value)
	if h.blocks[block] = slices.Delete(h.blocks[block], at, at+1); len(h.blocks[block]) == 0 {
		h.blocks = slices.Delete(h.blocks, block, block+1)
	}
}

func (h *held) Apply(_ context.Context, m statestore.Marker, changes iter.Seq2[statestore.Change, error]) error {
	for c, err := range changes {
		if err != nil {
			return err
		}
		h.mu.Lock()
		if c.Value == nil {
			h.remove(c.Key)
		} else {
			h.put(c.Key, c.Value)
		}
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marker = statestore.Marker{Batch: m.Batch, Meta: bytes.Clone(m.Meta)}
	return nil
}

func (h *held) Get(_ int64, key, dst []byte) ([]byte, bool, error) {
	dst, found := h.get(key, dst)
	return dst, found, h.look(key, found)
}

func (h *held) get(key, dst []byte) ([]byte, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	block, at, found := h.find(key)
	if !found {
		return dst, false
	}
	return append(dst, h.arena.at(h.blocks[block][at].value)...), true
}

func (h *held) Marker(int64) (statestore.Marker, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.marker, nil
}

func (h *held) Durable() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.marker.Batch
}

func (h *held) Oldest() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.oldest
}

func (h *held) Discard(oldest int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest = max(h.oldest, oldest)
	return nil
}

func (h *held) Stats() statestore.BackendStats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return statestore.BackendStats{Versions: h.count, Bytes: h.arena.bytes, Memory: h.arena.bytes}
}

func (*held) Begun() int64                { return -1 }
func (*held) Flush(context.Context) error { return nil }
func (h *held) Close() error              { return h.still.Close() }

// heldCursor finds its place anew at each step, as an apply may go on beside it.
type heldCursor struct {
	h          *held
	r          statestore.Range
	down, on   bool
	key, value []byte
}

func (h *held) Cursor(_ int64, r statestore.Range, descending bool) (statestore.Cursor, error) {
	return &heldCursor{h: h, r: statestore.Range{Lower: bytes.Clone(r.Lower), Upper: bytes.Clone(r.Upper)}, down: descending}, nil
}

func (c *heldCursor) Seek(key []byte) {
	switch {
	case !c.down && bytes.Compare(key, c.r.Lower) < 0:
		key = c.r.Lower
	case c.down && len(c.r.Upper) > 0 && (len(key) == 0 || bytes.Compare(key, c.r.Upper) > 0):
		key = c.r.Upper
	}
	c.h.mu.RLock()
	defer c.h.mu.RUnlock()
	block, at, _ := c.h.find(key)
	if c.down {
		if len(key) == 0 {
			block, at = len(c.h.blocks), 0
		}
		if at--; at < 0 {
			if block--; block >= 0 {
				at = len(c.h.blocks[block]) - 1
			}
		}
	}
	if c.on = block >= 0 && block < len(c.h.blocks); !c.on {
		return
	}
	p := c.h.blocks[block][at]
	c.key, c.value = append(c.key[:0], c.h.arena.at(p.key)...), append(c.value[:0], c.h.arena.at(p.value)...)
	c.on = bytes.Compare(c.key, c.r.Lower) >= 0 && (len(c.r.Upper) == 0 || bytes.Compare(c.key, c.r.Upper) < 0)
}

func (c *heldCursor) Next() {
	switch {
	case !c.on:
	case c.down:
		c.Seek(bytes.Clone(c.key))
	default:
		c.Seek(append(bytes.Clone(c.key), 0))
	}
}

func (c *heldCursor) Valid() bool            { return c.on }
func (c *heldCursor) Key() []byte            { return c.key }
func (c *heldCursor) Value() ([]byte, error) { return c.value, nil }
func (*heldCursor) Err() error               { return nil }
func (*heldCursor) Close() error             { return nil }
