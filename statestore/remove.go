package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// maxRemovals is how many expired entries, and how many of retired tables, a batch removes by itself.
const maxRemovals = 10_000

// retiredID names a retired table, or with table 0 a whole retired transform.
type retiredID struct{ transform, table uint16 }

// removeByItself finds what the batch deletes by itself: expired entries, in the order of expiry and key, and entries of
// retired tables, in the order of keys. Nothing expires below bound; isEmpty knows retired tables of which nothing is left.
func (t *Txn) removeByItself(ctx context.Context, bound int64, isEmpty func(retiredID) bool) error {
	t.nextExpiry = bound
	if bound <= t.info.TimeMS {
		list, next, err := t.basis.expired(bound, t.info.TimeMS, maxRemovals)
		if err != nil {
			return err
		}
		t.nextExpiry = next
		for _, x := range list {
			t.removals = append(t.removals, removal{x.key, x.at})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.removeRetired(isEmpty); err != nil {
		return err
	}
	slices.SortFunc(t.removals, func(a, b removal) int { return bytes.Compare(a.key, b.key) })
	t.removals = slices.CompactFunc(t.removals, func(a, b removal) bool { return bytes.Equal(a.key, b.key) })
	return nil
}

// expired returns the first most entries that expire at or before now, and a time before which none of the others does. None
// expires below bound.
func (b *basis) expired(bound, now int64, most int) (list []expiring, next int64, err error) {
	next = never
	list, next, err = b.expiredInBackend(bound, now, most)
	if err != nil {
		return nil, 0, err
	}
	for i, p := range b.pending {
		found := 0
		for _, r := range p.set.runs {
			for _, x := range r.expiring {
				if x.at > now {
					next = min(next, x.at)
					break
				}
				if !b.changed(i, hashKey(x.key), x.key) {
					list = append(list, x)
					found++
				}
			}
		}
	}
	slices.SortFunc(list, compareExpiring)
	if len(list) > most {
		next = min(next, list[most].at)
		list = list[:most]
	}
	return list, next, nil
}

// expiredInBackend reads the backend's index. Entries that a waiting batch changes are not for it to say.
func (b *basis) expiredInBackend(bound, now int64, most int) (list []expiring, next int64, err error) {
	cursor, err := b.backend.Cursor(b.asOf, Range{Lower: []byte{indexPrefix}, Upper: []byte{indexPrefix + 1}}, false)
	if err != nil {
		return nil, 0, fmt.Errorf("read the index by expiry: %w", err)
	}
	next = never
	for cursor.Seek(appendIndex(nil, bound, nil)); cursor.Valid(); cursor.Next() {
		at, key, perr := parseIndex(cursor.Key())
		if perr != nil {
			err = perr
			break
		}
		if at > now || len(list) == most {
			next = at
			break
		}
		if !b.changed(len(b.pending), hashKey(key), key) {
			list = append(list, expiring{at, bytes.Clone(key)})
		}
	}
	if err == nil {
		err = cursor.Err()
	}
	if cerr := cursor.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the index by expiry: %w", err)
	}
	return list, next, nil
}

// retired lists the retired transforms and tables in the order of their keys.
func (t *ids) retired() []retiredID {
	var out []retiredID
	for _, tr := range t.Transforms {
		if tr.Retired {
			out = append(out, retiredID{tr.ID, 0})
			continue
		}
		for _, tab := range tr.Tables {
			if tab.Retired {
				out = append(out, retiredID{tr.ID, tab.ID})
			}
		}
	}
	slices.SortFunc(out, func(a, b retiredID) int {
		return int(a.transform)<<16 + int(a.table) - int(b.transform)<<16 - int(b.table)
	})
	return out
}

// removeRetired finds entries of retired tables, and drops those tables of which nothing is left: a table is listed as long
// as a batch deletes of it.
func (t *Txn) removeRetired(isEmpty func(retiredID) bool) error {
	left := maxRemovals
	for _, id := range t.ids.retired() {
		if left == 0 {
			return nil
		}
		if isEmpty(id) {
			t.ids.drop(id)
			continue
		}
		keys, err := t.basis.keysOf(id, left)
		if err != nil {
			return err
		}
		for _, k := range keys {
			t.removals = append(t.removals, removal{k, unknownExpiry})
		}
		left -= len(keys)
		if len(keys) == 0 {
			t.ids.drop(id)
		}
	}
	return nil
}

// drop takes a retired table, or transform, out of the list: its entries are gone, and its id never comes back.
func (t *ids) drop(id retiredID) {
	if id.table == 0 {
		t.Transforms = slices.DeleteFunc(t.Transforms, func(tr transformID) bool { return tr.ID == id.transform })
		return
	}
	tr := t.find(id.transform)
	tr.Tables = slices.DeleteFunc(tr.Tables, func(tab tableID) bool { return tab.ID == id.table })
}

// keysOf returns the first most keys of a retired table or transform.
func (b *basis) keysOf(id retiredID, most int) ([][]byte, error) {
	prefixes := [][]byte{binary.BigEndian.AppendUint16([]byte{dataPrefix}, id.transform)}
	if id.table != 0 {
		prefixes = prefixes[:0]
		for g := range Groups {
			prefixes = append(prefixes, appendHead(nil, id.transform, uint8(g), id.table))
		}
	}
	first := prefixes[0]
	m, cursor, err := b.walk(Range{Lower: first, Upper: after(nil, prefixes[len(prefixes)-1])}, false)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, prefix := range prefixes {
		for m.seek(prefix, prefix); m.key() != nil && len(keys) < most; m.next() {
			if m.top.live() {
				keys = append(keys, bytes.Clone(m.key()))
			}
		}
		err = m.err()
		if err != nil || len(keys) == most {
			break
		}
	}
	if cerr := cursor.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("read a retired table: %w", err)
	}
	return keys, nil
}

// emptied lists what this batch has found nothing left of.
func (t *Txn) emptied() []retiredID {
	var out []retiredID
	before, _, err := t.basis.ids.resolve(t.info.Stages)
	if err != nil {
		return nil
	}
	now := t.ids.retired()
	for _, id := range before.retired() {
		if !slices.Contains(now, id) {
			out = append(out, id)
		}
	}
	return out
}

func (s *Store) isEmpty(id retiredID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.empty[id]
}

// indexer derives the changes of the index by expiry from those of entries.
type indexer struct {
	store   *Store
	tables  []*ids
	any     bool  // some table has entries with an expiry
	base    int64 // the batch whose state is changed
	buf     []byte
	last    retiredID // the table asked for last, and whether it has
	known   bool
	expires bool
	list    []Change
}

// inIndex says that there is an entry: an index has no values.
var inIndex = []byte{valuePlain}

// note looks at change i of a run.
func (x *indexer) note(r *run, i int, key, stored []byte) error {
	if !x.any {
		return nil
	}
	id := retiredID{binary.BigEndian.Uint16(key[1:]), binary.BigEndian.Uint16(key[4:])}
	if !x.known || id != x.last {
		x.last, x.known = id, true
		x.expires = slices.ContainsFunc(x.tables, func(t *ids) bool { return t.expires(id.transform, id.table) })
	}
	if !x.expires {
		return nil
	}
	before, err := x.before(r, i, key)
	if err != nil {
		return err
	}
	var now int64
	if stored != nil {
		if _, now, err = parseStored(stored); err != nil {
			return err
		}
	}
	if before == now {
		return nil
	}
	if before != 0 {
		x.list = append(x.list, Change{Key: appendIndex(nil, before, key)})
	}
	if now != 0 {
		x.list = append(x.list, Change{Key: appendIndex(nil, now, key), Value: inIndex})
	}
	return nil
}

// before is the expiry of the entry that a change replaces, 0 for none.
func (x *indexer) before(r *run, i int, key []byte) (int64, error) {
	if r.replaced != nil && r.replaced[i] != unknownExpiry {
		return r.replaced[i], nil
	}
	stored, found, err := x.store.backend.Get(x.base, key, x.buf[:0])
	if err != nil || !found {
		return 0, err
	}
	x.buf = stored
	_, expiry, err := parseStored(stored)
	return expiry, err
}

func (x *indexer) sorted() []Change {
	slices.SortFunc(x.list, func(a, b Change) int { return bytes.Compare(a.Key, b.Key) })
	return x.list
}
