package statestore

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Retain says that batches below oldest are no longer replayed: the state as of the end of oldest-1 stays readable, older
// ones go, and so do changelogs below oldest that nothing needs any more.
func (s *Store) Retain(ctx context.Context, oldest int64) error {
	horizon, keep := s.keepFrom(oldest)
	boundary, err := s.backend.Marker(horizon)
	if err != nil {
		return fmt.Errorf("discard old state: %w", err)
	}
	keep = min(keep, boundary.Batch+1) // what lies between is read from changelogs
	if horizon > s.backend.Oldest() {
		s.cfg.Events.Point("discard")
		if err := s.backend.Discard(horizon); err != nil {
			return fmt.Errorf("discard old state: %w", err)
		}
	}
	if err := s.sweep(ctx, keep); err != nil {
		return fmt.Errorf("remove old changelogs: %w", err)
	}
	return nil
}

// keepFrom is the oldest batch that must stay readable, and the oldest changelog that must stay. From now on nobody can
// begin to read what is older.
func (s *Store) keepFrom(oldest int64) (horizon, keep int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = max(s.oldest, oldest)
	horizon = min(s.oldest-1, s.marked)
	for asOf := range s.pins {
		horizon = min(horizon, asOf)
	}
	s.horizon = max(s.horizon, horizon)
	s.settle()
	keep = min(s.oldest, s.floor)
	if len(s.waiting) > 0 {
		keep = min(keep, s.waiting[0].batch)
	}
	if len(s.pending) > 0 {
		keep = min(keep, s.pending[0])
	}
	return horizon, keep
}

// sweep removes the changelogs below keep, and what is left of attempts at them.
func (s *Store) sweep(ctx context.Context, keep int64) error {
	dir := path.Join(s.dir, changelogDir)
	list, err := s.files.List(dir)
	if err != nil {
		return err
	}
	for _, info := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if batch, ok := batchOf(info.Name); ok && batch < keep && !info.Dir {
			if err := s.files.Remove(path.Join(dir, info.Name)); err != nil {
				return err
			}
		}
	}
	return nil // names that come back after a crash are removed by the next sweep
}

// batchOf reads the batch out of the name of a changelog, or of one that was set aside.
func batchOf(name string) (int64, bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(name, "."), "-")
	if !ok || rest == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != number {
		return 0, false
	}
	return n, true
}
