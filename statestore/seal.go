package statestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Seal makes the changes of a published batch part of the state. They are applied in the background; while too many wait,
// Seal waits. An error of an earlier apply is returned here.
func (s *Store) Seal(ctx context.Context, t *Txn) error {
	switch {
	case t.store != s:
		return errors.New("seal: the batch was begun on a view or on another store")
	case !t.summed:
		return fmt.Errorf("seal batch %d: it was not summed up", t.info.Batch)
	}
	s.cfg.Events.Point("seal")
	if err := s.dropOthers(t.info.Batch, t.attempt); err != nil {
		return fmt.Errorf("seal batch %d: %w", t.info.Batch, err)
	}
	p := &pending{batch: t.info.Batch, set: t.set, ids: t.ids, after: t.basis.link, own: link{t.info.Batch, t.summary.Digest}}
	if err := s.enqueue(ctx, p, func() { s.sealed(t) }); err != nil {
		return fmt.Errorf("seal batch %d: %w", t.info.Batch, err)
	}
	return nil
}

// enqueue waits for room and adds a batch to the state; then runs under the lock. A batch that is there already is left.
func (s *Store) enqueue(ctx context.Context, p *pending, then func()) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.ready(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.batch <= s.last {
			return fmt.Errorf("batch %d is sealed already", s.last)
		}
		if p.set.entries == 0 || s.room(p.set.held()) {
			break
		}
		s.hurry = true
		s.changed.Broadcast()
		s.changed.Wait()
	}
	if p.set.entries == 0 {
		s.skipTo(p.batch)
	} else {
		s.last = p.batch
		s.ids, s.link = p.ids, p.own
		s.waiting = append(slices.Clip(s.waiting), p)
		s.backlog += p.set.held()
		s.later()
	}
	then()
	s.changed.Broadcast()
	return nil
}

// room reports whether the backlog can take so many bytes. An empty one takes everything.
func (s *Store) room(bytes int64) bool {
	if len(s.waiting) == 0 {
		return true
	}
	return len(s.waiting) < s.cfg.BacklogBatches && s.backlog+bytes <= s.cfg.BacklogBytes
}

// sealed takes over what a batch has learnt.
func (s *Store) sealed(t *Txn) {
	for i, ids := range t.stages {
		s.bounds[ids.transform] = t.bounds[i].next()
	}
	s.expiry = t.nextExpiry
	for _, r := range t.set.runs {
		if len(r.expiring) > 0 {
			s.expiry = min(s.expiry, r.expiring[0].at)
		}
	}
	for _, id := range t.emptied() {
		s.empty[id] = true
	}
	s.caches, t.caches = t.caches, nil
	s.stats.OverlayBytes = t.held
	s.stats.ChangelogBytes += t.set.bytes
}

// Load takes over the changelog of a decided batch. Batches come in order; one that the store has is left. A batch whose
// digest is "" has changed nothing and has no file. ErrMissing and ErrCorrupt name the file.
func (s *Store) Load(ctx context.Context, batch int64, attempt, digest string) error {
	if batch <= s.Last() {
		return nil
	}
	p := &pending{batch: batch}
	if digest != "" {
		var err error
		if p, err = s.readPending(ctx, batch, attempt, digest); err != nil {
			return err
		}
		if err := s.dropOthers(batch, attempt); err != nil {
			return fmt.Errorf("load batch %d: %w", batch, err)
		}
	}
	if err := s.enqueue(ctx, p, func() { s.loaded(p) }); err != nil {
		return fmt.Errorf("load batch %d: %w", batch, err)
	}
	return nil
}

// loaded takes over what a changelog says of timers and expiries.
func (s *Store) loaded(p *pending) {
	if p.set.entries == 0 {
		return
	}
	for _, tr := range p.ids.Transforms {
		if s.bounds[tr.ID] == nil {
			s.bounds[tr.ID] = allTimes(never)
		}
	}
	for _, r := range p.set.runs {
		for _, at := range r.refs {
			key, stored := r.at(at)
			if k, err := parseKey(key); err == nil && stored != nil && k.table == timerTable {
				if t, err := parseTimer(k); err == nil {
					b := &s.bounds[k.transform][t.Group][t.Domain]
					*b = min(*b, t.AtMS)
				}
			}
		}
		if len(r.expiring) > 0 {
			s.expiry = min(s.expiry, r.expiring[0].at)
		}
	}
	s.caches = nil
}
