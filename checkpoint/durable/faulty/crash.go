package faulty

import (
	"bytes"
	"math/rand/v2"
)

// block is the unit in which a kernel writes content back.
const block = 4096

// Crash returns the file system as it is found after a power cut now. What was synced is there. Everything else was
// written back with probability keep, each block and each change of a directory on its own: names without their content,
// content without its length, torn, zeroed and garbled tails, removals and renames in any order. With keep 0 all of it
// is lost, with 1 all is there, as after the death of all processes. Nobody holds a lock. The file system it is called
// on is left as it was.
func (f *FS) Crash(r *rand.Rand, keep float64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &crash{from: f, to: &FS{space: f.space, clock: f.clock, ops: f.ops, nodes: f.nodes}, rand: r, keep: keep, seen: make(map[int]*node)}
	c.to.root = c.copy(f.root)
	return c.to
}

// Clone returns a copy of the file system with all that is cached, as a backup program would take it. Nobody holds a
// lock in it, and it has no faults.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &crash{from: f, to: &FS{space: f.space, clock: f.clock, ops: f.ops, nodes: f.nodes}, keep: 1, seen: make(map[int]*node)}
	c.to.root = c.copy(f.root)
	return c.to
}

type crash struct {
	from, to *FS
	rand     *rand.Rand // nil when everything is kept
	keep     float64
	seen     map[int]*node // a file with two names is one file
}

func (c *crash) kept() bool {
	switch {
	case c.keep <= 0:
		return false
	case c.keep >= 1:
		return true
	}
	return c.rand.Float64() < c.keep
}

func (c *crash) copy(n *node) *node {
	if there := c.seen[n.id]; there != nil {
		there.links++
		return there
	}
	out := &node{id: n.id, dir: n.dir, mtime: n.mtime, links: 1}
	c.seen[n.id] = out
	if !n.dir {
		out.data = c.content(n)
		out.durable = out.data
		return out
	}
	left := make(map[string]*node, len(n.entries))
	for name, child := range n.synced {
		left[name] = child
	}
	for _, change := range n.pending {
		if c.kept() {
			change.apply(left)
		}
	}
	out.entries, out.synced = make(map[string]*node, len(left)), make(map[string]*node, len(left))
	for _, name := range names(left) {
		child := c.copy(left[name])
		out.entries[name], out.synced[name] = child, child
	}
	return out
}

// content is what is left of a file. The length is written apart from the data, and a block that was never written
// holds zeros or what the disk held before.
func (c *crash) content(n *node) []byte {
	if !n.dirty || c.keep >= 1 {
		return bytes.Clone(n.data)
	}
	if c.keep <= 0 {
		return bytes.Clone(n.durable)
	}
	out := make([]byte, c.length(len(n.durable), len(n.data)))
	copy(out, n.durable)
	for at := 0; at < len(out); at += block {
		end := min(at+block, len(out))
		switch {
		case c.kept():
			copy(out[at:end], n.data[min(at, len(n.data)):min(end, len(n.data))])
		case at >= len(n.durable) && c.rand.IntN(2) == 0:
			c.garble(out[at:end])
		}
	}
	return out
}

// length is that before, that after, or one between: at a byte, a sector or a block.
func (c *crash) length(before, after int) int {
	if c.kept() {
		return after
	}
	if after <= before || c.rand.IntN(3) == 0 {
		return before
	}
	unit := []int{1, 512, block}[c.rand.IntN(3)]
	return max(before, (before+c.rand.IntN(after-before))/unit*unit)
}

func (c *crash) garble(b []byte) {
	for i := range b {
		b[i] = byte(c.rand.Uint32())
	}
}
