package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"
)

// maxLag is how many batches may be applied that the backend could still lose: each has to be loaded by the next start.
const maxLag = 400

// applyAll applies sealed batches, in order, until the store is closed or an apply fails.
func (s *Store) applyAll() {
	for {
		group := s.nextToApply()
		if group == nil {
			return
		}
		start := s.cfg.Now()
		s.cfg.Events.Point("apply-begin")
		p, err := s.merge(group)
		if err == nil {
			err = s.apply(p)
		}
		s.cfg.Events.Point("apply-end")
		lag := s.appliedGroup(group, err)
		if err != nil {
			return
		}
		s.cfg.Events.Applied(p.batch, p.set.entries, p.set.bytes, s.cfg.Now().Sub(start))
		s.snap.step(s, p)
		if lag >= maxLag {
			if err := s.backend.Flush(context.Background()); err != nil {
				s.cfg.Events.Warning("write applied state to disk", err)
			}
		}
	}
}

// nextToApply waits until there is enough to apply, and returns it.
func (s *Store) nextToApply() []*pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && !s.enough() {
		s.changed.Wait()
	}
	if s.closed {
		if s.drained {
			return nil
		}
		s.drained = true
	}
	return s.firstGroup()
}

// enough reports whether what waits should be applied now.
func (s *Store) enough() bool {
	if s.begun >= 0 {
		return s.firstGroup() != nil
	}
	return len(s.waiting) > 0 && (s.hurry || len(s.waiting) >= s.cfg.ApplyBatches || s.backlog >= s.cfg.ApplyBytes)
}

// firstGroup is what is applied next as one. A batch that was applied in part is applied again with what came before it,
// and with nothing after it, so that the same is written.
func (s *Store) firstGroup() []*pending {
	if s.begun >= 0 {
		at := slices.IndexFunc(s.waiting, func(p *pending) bool { return p.batch >= s.begun })
		if at < 0 {
			return nil
		}
		return s.waiting[: at+1 : at+1]
	}
	if len(s.waiting) == 0 {
		return nil
	}
	n, size := 0, int64(0)
	for n < len(s.waiting) && n < s.cfg.ApplyBatches && (n == 0 || size < s.cfg.ApplyBytes) {
		size += s.waiting[n].set.held()
		n++
	}
	return s.waiting[:n:n]
}

// later sees to it that what waits is applied some time after the last batch.
func (s *Store) later() {
	if s.idle != nil {
		s.idle.Reset(s.cfg.ApplyAfter)
		return
	}
	s.idle = time.AfterFunc(s.cfg.ApplyAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurry = true
		s.changed.Broadcast()
	})
}

// appliedGroup notes how the apply of a group went, and how many batches the backend could still lose.
func (s *Store) appliedGroup(group []*pending, err error) (lag int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	last := group[len(group)-1].batch
	if err != nil {
		s.failed = fmt.Errorf("apply batch %d to the state: %w", last, err)
		return 0
	}
	s.waiting = s.waiting[len(group):]
	s.settle()
	for _, p := range group {
		s.backlog -= p.set.held()
		s.pending = append(s.pending, p.batch)
	}
	s.applied, s.marked, s.begun = last, last, -1
	if len(s.waiting) == 0 {
		s.applied, s.hurry = s.last, false
	}
	return len(s.pending)
}

// merge makes one batch of several: of each key the newest change, and the expiry of what the oldest of them replaces.
func (s *Store) merge(group []*pending) (*pending, error) {
	last := group[len(group)-1]
	out := &pending{
		batch: last.batch, ids: last.ids, after: last.after, own: last.own,
		merged: len(group), base: group[0].batch - 1,
	}
	m := merged{}
	for _, p := range slices.Backward(group) {
		out.tables = append(out.tables, p.ids)
		m.layers = append(m.layers, &setSource{set: &p.set})
	}
	if len(group) == 1 {
		out.set = last.set
		return out, nil
	}
	r := &run{}
	var buf []byte
	for m.seek(nil, nil); m.key() != nil; m.next() {
		newest, oldest := m.top.(*setSource), m.oldest()
		if newest.stored == nil && newest != oldest {
			old, found, err := s.backend.Get(out.base, newest.held, buf[:0])
			if err != nil {
				return nil, err
			}
			if buf = old; !found {
				continue // it has come and gone
			}
		}
		r.append(newest.held, newest.stored)
		r.replaced = append(r.replaced, oldest.replaced())
	}
	out.set.add(r)
	return out, nil
}

// oldest is the last layer that has the key on which a walk through changes stands.
func (m *merged) oldest() *setSource {
	k := m.key()
	for _, s := range slices.Backward(m.active) {
		if bytes.Equal(s.key(), k) {
			return s.(*setSource)
		}
	}
	return m.top.(*setSource)
}

// replaced is the expiry of what the change replaces, or unknownExpiry.
func (s *setSource) replaced() int64 {
	if r := s.set.runs[s.run]; r.replaced != nil {
		return r.replaced[s.i]
	}
	return unknownExpiry
}

// append adds a change with its stored value as it is, nil for a deletion. Such a run is only walked: it has no index.
func (r *run) append(key, stored []byte) {
	if stored == nil {
		r.delete(key)
		return
	}
	c := r.begin(key, len(stored))
	*c = append(binary.AppendUvarint(*c, uint64(len(stored)+1)), stored...)
	r.puts++
}

// apply writes a batch to the backend: its entries, then what they change in the index by expiry.
func (s *Store) apply(p *pending) error {
	m := meta{Version: metaVersion, Query: s.cfg.Query, Batch: p.batch, IDs: p.ids, Digest: p.own.Digest, After: p.after}
	b, err := m.encode()
	if err != nil {
		return err
	}
	return s.backend.Apply(context.Background(), Marker{Batch: p.batch, Meta: b}, s.changes(p))
}

// changes yields what a batch writes to the backend, in key order.
func (s *Store) changes(p *pending) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		index := indexer{store: s, tables: p.tables, base: p.base}
		index.any = slices.ContainsFunc(p.tables, (*ids).anyExpires)
		for _, r := range p.set.runs {
			for i, at := range r.refs {
				key, stored := r.at(at)
				if err := index.note(r, i, key, stored); err != nil {
					yield(Change{}, err)
					return
				}
				if !yield(Change{key, stored}, nil) {
					return
				}
			}
		}
		for _, c := range index.sorted() {
			if !yield(c, nil) {
				return
			}
		}
	}
}
