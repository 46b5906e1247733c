package statemap

import (
	"bytes"
	"slices"
	"sort"
)

// maxBlock is how many entries a block of a list holds before it is split.
const maxBlock = 256

// list is entries in the order of sub, in blocks of which none is empty, so that no change moves many of them.
type list struct {
	blocks [][]Entry
}

// place is a position in a list: an entry of a block, or 0 of the block behind the last one.
type place struct{ block, at int }

// seek returns the place of the first entry whose sub is not below sub, and whether it is sub itself.
func (l *list) seek(sub []byte) (place, bool) {
	below := func(e Entry, sub []byte) int { return bytes.Compare(e.Sub, sub) }
	b := sort.Search(len(l.blocks), func(i int) bool {
		block := l.blocks[i]
		return bytes.Compare(block[len(block)-1].Sub, sub) >= 0
	})
	if b == len(l.blocks) {
		return place{b, 0}, false
	}
	at, found := slices.BinarySearchFunc(l.blocks[b], sub, below)
	return place{b, at}, found
}

// behind returns the place of the first entry that neither begins with prefix nor comes before those that do.
func (l *list) behind(prefix []byte) place {
	over := func(e *Entry) bool { return bytes.Compare(e.Sub, prefix) > 0 && !bytes.HasPrefix(e.Sub, prefix) }
	b := sort.Search(len(l.blocks), func(i int) bool { return over(&l.blocks[i][len(l.blocks[i])-1]) })
	if b == len(l.blocks) {
		return place{b, 0}
	}
	return place{b, sort.Search(len(l.blocks[b]), func(i int) bool { return over(&l.blocks[b][i]) })}
}

func (l *list) entry(p place) *Entry { return &l.blocks[p.block][p.at] }

func (p place) before(q place) bool {
	return p.block < q.block || p.block == q.block && p.at < q.at
}

// next is the place behind p, previous the one before it; both stay inside the list for whoever compares before he goes.
func (l *list) next(p place) place {
	if p.at++; p.at == len(l.blocks[p.block]) {
		return place{p.block + 1, 0}
	}
	return p
}

func (l *list) previous(p place) place {
	if p.at > 0 {
		return place{p.block, p.at - 1}
	}
	return place{p.block - 1, len(l.blocks[p.block-1]) - 1}
}

// insert puts an entry at the place that seek returned for it.
func (l *list) insert(p place, e Entry) {
	switch {
	case len(l.blocks) == 0:
		l.blocks = [][]Entry{{e}}
		return
	case p.block == len(l.blocks):
		p = place{p.block - 1, len(l.blocks[p.block-1])}
	}
	block := slices.Insert(l.blocks[p.block], p.at, e)
	l.blocks[p.block] = block
	if len(block) > maxBlock {
		half := len(block) / 2
		l.blocks[p.block] = block[:half:half]
		l.blocks = slices.Insert(l.blocks, p.block+1, slices.Clone(block[half:]))
	}
}

// remove takes the entries from one place to before another one out and returns how many they were.
func (l *list) remove(from, to place) (n int) {
	for b := from.block; b <= to.block && b < len(l.blocks); b++ {
		first, last := 0, len(l.blocks[b])
		if b == from.block {
			first = from.at
		}
		if b == to.block {
			last = to.at
		}
		if first < last {
			n += last - first
			l.blocks[b] = slices.Delete(l.blocks[b], first, last)
		}
	}
	end := min(to.block+1, len(l.blocks))
	kept := slices.DeleteFunc(l.blocks[from.block:end], func(b []Entry) bool { return len(b) == 0 })
	l.blocks = slices.Delete(l.blocks, from.block+len(kept), end)
	return n
}
