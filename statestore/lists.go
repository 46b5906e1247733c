package statestore

import (
	"bytes"
	"slices"
)

// Bounds of a list that is kept.
const (
	maxListed      = 64
	maxListedBytes = 16 << 10
	listSize       = 160 // of a list in memory, without its entries
	listItemSize   = 72
)

// lists knows, for keys that were scanned, all their entries in the state before the batch: a walk through the backend
// costs as much as a hundred gets. It has two generations, as the cache of values. A nil one keeps nothing.
type lists struct {
	young, old map[string]*list
	bytes      int64 // of the young ones
	budget     int64
}

// list is all entries of one table and key, expired ones too, in the order of keys; or, if it is long, nothing but that.
type list struct {
	long  bool
	items []listItem
	bytes int64
}

type listItem struct {
	key, value []byte
	expiry     int64
}

func (c *lists) get(prefix []byte) *list {
	l := c.young[string(prefix)]
	if l != nil {
		return l
	}
	if l = c.old[string(prefix)]; l != nil {
		c.put(prefix, l)
	}
	return l
}

func (c *lists) put(prefix []byte, l *list) {
	if c.bytes > c.budget/2 {
		c.old, c.young, c.bytes = c.young, nil, 0
	}
	if c.young == nil {
		c.young = make(map[string]*list)
	}
	if before := c.young[string(prefix)]; before != nil {
		c.bytes -= before.bytes
	} else {
		c.bytes += int64(len(prefix)) + listSize
	}
	c.young[string(prefix)] = l
	c.bytes += l.bytes
}

// add appends a copy of an entry, unless the list is long or becomes so.
func (l *list) add(key, value []byte, expiry int64) {
	if l.long {
		return
	}
	size := int64(len(key) + len(value) + listItemSize)
	if len(l.items) == maxListed || l.bytes+size > maxListedBytes {
		*l = list{long: true}
		return
	}
	both := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
	l.items = append(l.items, listItem{both[:len(key):len(key)], both[len(key):], expiry})
	l.bytes += size
}

// update takes over what a batch writes under one key. Records come in order.
func (c *lists) update(prefix []byte, writes []sortable) {
	if c == nil {
		return
	}
	before := c.get(prefix)
	if before == nil || before.long {
		return
	}
	next := &list{items: make([]listItem, 0, len(before.items)+len(writes))}
	items := before.items
	for i := range writes {
		r := writes[i].record
		at, same := slices.BinarySearchFunc(items, r.key, func(i listItem, key []byte) int { return bytes.Compare(i.key, key) })
		for _, kept := range items[:at] {
			next.keep(kept)
		}
		items = items[at:]
		if same {
			items = items[1:]
		}
		if r.flags&recDeleted == 0 {
			next.add(r.key, r.value, r.expiry)
		}
	}
	for _, i := range items {
		next.keep(i)
	}
	c.put(prefix, next)
}

// keep is add for an entry of another list.
func (l *list) keep(i listItem) {
	size := int64(len(i.key) + len(i.value) + listItemSize)
	switch {
	case l.long:
	case len(l.items) == maxListed || l.bytes+size > maxListedBytes:
		*l = list{long: true}
	default:
		l.items = append(l.items, i)
		l.bytes += size
	}
}

// read lists the entries of a key in the state before the batch.
func (b *merged) read(prefix []byte) (*list, error) {
	l := &list{}
	for b.seek(prefix, prefix); !l.long && b.key() != nil; b.next() {
		if !b.top.live() {
			continue
		}
		value, expiry, err := b.top.entry()
		if err != nil {
			return nil, err
		}
		l.add(b.key(), value, expiry)
	}
	return l, b.err()
}

// listSource walks a list.
type listSource struct {
	items      []listItem
	descending bool
	at         int
}

func (s *listSource) seek(key []byte) {
	s.at = len(s.items)
	if !s.descending || len(key) > 0 {
		s.at, _ = slices.BinarySearchFunc(s.items, key, func(i listItem, key []byte) int { return bytes.Compare(i.key, key) })
	}
	if s.descending {
		s.at--
	}
}

func (s *listSource) next() {
	if s.descending {
		s.at--
	} else {
		s.at++
	}
}

func (s *listSource) key() []byte {
	if s.at < 0 || s.at >= len(s.items) {
		return nil
	}
	return s.items[s.at].key
}

func (s *listSource) live() bool { return true }

func (s *listSource) entry() ([]byte, int64, error) {
	i := &s.items[s.at]
	return i.value, i.expiry, nil
}

func (s *listSource) err() error { return nil }
