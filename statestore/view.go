package statestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// View is the state as of the end of one retained batch. It is for several goroutines, and must be closed.
type View struct {
	store *Store
	batch int64
	basis *basis
}

// At opens the state as of the end of a batch: ErrCompacted when it is no longer kept, ErrFuture when it is not sealed.
func (s *Store) At(ctx context.Context, batch int64) (*View, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := s.at(batch)
	if err != nil {
		return nil, fmt.Errorf("state as of batch %d: %w", batch, err)
	}
	if v.basis.ids != nil {
		return v, nil
	}
	if err := s.complete(ctx, v.basis, batch); err != nil {
		v.Close()
		return nil, fmt.Errorf("state as of batch %d: %w", batch, err)
	}
	return v, nil
}

// complete adds what a basis as of an applied batch has above the backend: batches are applied several at a time, and what
// lies between is read from changelogs.
func (s *Store) complete(ctx context.Context, b *basis, batch int64) error {
	before, err := readMarker(s.backend, batch, s.cfg.Query)
	if err != nil {
		return err
	}
	b.ids, b.link = before.IDs, before.link()
	s.mu.Lock()
	marked := s.marked
	s.mu.Unlock()
	if batch >= marked || before.Batch == batch {
		return nil
	}
	next, err := s.markerAbove(before.Batch, batch, marked)
	if err != nil {
		return err
	}
	attempts, err := s.attempts()
	if err != nil {
		return err
	}
	for l := next.After; l.Batch > before.Batch; {
		p, err := s.readLinked(ctx, l, attempts[l.Batch])
		if err != nil {
			return err
		}
		if l.Batch <= batch {
			b.pending = append(b.pending, p)
		}
		l = p.after
	}
	if len(b.pending) > 0 {
		b.ids, b.link = b.pending[0].ids, b.pending[0].own
	}
	return nil
}

// markerAbove is the first marker above that of batch before; there is one from batch at to batch most.
func (s *Store) markerAbove(before, at, most int64) (*meta, error) {
	var trouble error
	k := sort.Search(int(most-at), func(i int) bool {
		m, err := s.backend.Marker(at + int64(i))
		trouble = errors.Join(trouble, err)
		return m.Batch > before
	})
	if trouble != nil {
		return nil, trouble
	}
	return readMarker(s.backend, at+int64(k), s.cfg.Query)
}

// attempts lists the changelogs by batch.
func (s *Store) attempts() (map[int64][]string, error) {
	list, err := s.files.List(path.Join(s.dir, changelogDir))
	if err != nil {
		return nil, err
	}
	out := make(map[int64][]string)
	for _, info := range list {
		if n, ok := batchOf(info.Name); ok && !strings.HasPrefix(info.Name, ".") {
			_, attempt, _ := strings.Cut(info.Name, "-")
			out[n] = append(out[n], attempt)
		}
	}
	return out, nil
}

// readLinked reads the changelog that a link names, whatever its attempt was.
func (s *Store) readLinked(ctx context.Context, l link, attempts []string) (*pending, error) {
	if len(attempts) == 0 {
		return nil, &FileError{File: s.changelogPath(l.Batch, "*"), Batch: l.Batch, Offset: -1, Err: ErrMissing}
	}
	var errs []error
	for _, a := range attempts {
		p, err := s.readPending(ctx, l.Batch, a, l.Digest)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (s *Store) at(batch int64) (*View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := max(s.backend.Oldest(), s.horizon)
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.damaged != nil:
		return nil, s.damaged
	case batch > s.last:
		return nil, fmt.Errorf("%w (the newest is %d)", ErrFuture, s.last)
	case batch < oldest:
		return nil, fmt.Errorf("%w (the oldest is %d)", ErrCompacted, oldest)
	}
	b := &basis{backend: s.backend, asOf: min(batch, s.applied)}
	for i := len(s.waiting) - 1; i >= 0; i-- {
		if p := s.waiting[i]; p.batch <= batch {
			b.pending = append(b.pending, p)
		}
	}
	if len(b.pending) > 0 {
		b.ids, b.link = b.pending[0].ids, b.pending[0].own
	}
	s.pins[b.asOf]++
	v := &View{store: s, batch: batch, basis: b}
	s.open[v] = struct{}{}
	return v, nil
}

// Batch is the batch as of whose end the view is.
func (v *View) Batch() int64 { return v.batch }

// Close ends the view and what was begun on it.
func (v *View) Close() {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	if _, open := v.store.open[v]; open {
		delete(v.store.open, v)
		v.store.releaseLocked(v.basis)
	}
}

// Begin begins a batch again on the state as it was: the same ids, timers and expired entries. It can be summed up and
// written, not sealed.
func (v *View) Begin(ctx context.Context, info BatchInfo) (*Txn, error) {
	t, err := v.begin(info)
	if err != nil {
		return nil, fmt.Errorf("begin batch %d again: %w", info.Batch, err)
	}
	if err := t.removeByItself(ctx, unknownTime, func(retiredID) bool { return false }); err != nil {
		t.Close()
		return nil, fmt.Errorf("begin batch %d again: %w", info.Batch, err)
	}
	return t, nil
}

func (v *View) begin(info BatchInfo) (*Txn, error) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[v]; !open {
		return nil, ErrClosed
	}
	t, err := s.newTxn(v.basis, info, func(transform uint16) *times {
		if v.basis.ids.find(transform) == nil {
			return allTimes(never)
		}
		return allTimes(unknownTime)
	})
	if err != nil {
		return nil, err
	}
	s.pins[v.basis.asOf]++
	s.open[t] = struct{}{}
	t.release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, t)
		s.releaseLocked(v.basis)
	}
	return t, nil
}

// Table is one table of a stage as a view knows it. The name of the table of timers is "".
type Table struct {
	Stage, Name string
	Retired     bool // no longer declared; its entries are being deleted
	transform   uint16
	table       uint16
}

// Tables lists the tables in the order of their ids, that of timers first in each stage.
func (v *View) Tables() []Table {
	var out []Table
	for _, tr := range v.basis.ids.Transforms {
		out = append(out, Table{Stage: tr.Name, Retired: tr.Retired, transform: tr.ID})
		for _, tab := range tr.Tables {
			out = append(out, Table{tr.Name, tab.Name, tr.Retired || tab.Retired, tr.ID, tab.ID})
		}
	}
	return out
}

// Table finds a table that is not retired.
func (v *View) Table(stage, name string) (Table, bool) {
	all := v.Tables()
	at := slices.IndexFunc(all, func(t Table) bool { return t.Stage == stage && t.Name == name && !t.Retired })
	if at < 0 {
		return Table{}, false
	}
	return all[at], true
}

// Get returns the value of an entry and its expiry, 0 for none. What has expired is there until it is deleted.
func (v *View) Get(t Table, group uint8, key, sub []byte) (value []byte, expiryMS int64, found bool, err error) {
	k := appendKey(nil, t.transform, group, t.table, key, sub)
	var buf []byte
	stored, found, err := v.basis.get(hashKey(k), k, &buf)
	if err != nil || !found {
		return nil, 0, false, err
	}
	value, expiryMS, err = parseStored(stored)
	if err != nil {
		return nil, 0, false, fmt.Errorf("read the state: %w", err)
	}
	return bytes.Clone(value), expiryMS, true, nil
}

// Row is one entry, or one timer, of an export. Its bytes are valid during the visit.
type Row struct {
	Table    Table
	Group    uint8
	Key, Sub []byte
	Value    []byte
	ExpiryMS int64 // 0 for none
	Timer    bool
	Domain   uint8 // of a timer
	AtMS     int64 // of a timer
}

// Export calls visit for the entries of a table by key group, length of the key, key and sub, and those of the table of
// timers by key group, domain and time. It stops when visit says false.
func (v *View) Export(ctx context.Context, t Table, visit func(*Row) bool) error {
	for g := range Groups {
		more, err := v.walkGroup(ctx, t, uint8(g), nil, visit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Scan calls visit for the entries under one key, in the order of sub.
func (v *View) Scan(ctx context.Context, t Table, group uint8, key []byte, visit func(*Row) bool) error {
	_, err := v.walkGroup(ctx, t, group, key, visit)
	return err
}

// walkGroup walks a table in one key group, or one key of it.
func (v *View) walkGroup(ctx context.Context, t Table, group uint8, key []byte, visit func(*Row) bool) (more bool, err error) {
	prefix := appendHead(nil, t.transform, group, t.table)
	if key != nil {
		prefix = appendKey(nil, t.transform, group, t.table, key, nil)
	}
	m, cursor, err := v.basis.walk(Range{Lower: prefix, Upper: after(nil, prefix)}, false)
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := cursor.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("walk the state: %w", cerr)
		}
	}()
	row := Row{Table: t, Group: group}
	n := 0
	for m.seek(prefix, prefix); m.key() != nil; m.next() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if !m.top.live() {
			continue
		}
		if err := row.read(m); err != nil {
			return false, err
		}
		if !visit(&row) {
			return false, nil
		}
	}
	return true, m.err()
}

// read fills a row from where a walk stands.
func (r *Row) read(m *merged) error {
	value, expiry, err := m.top.entry()
	if err != nil {
		return err
	}
	k, err := parseKey(m.key())
	if err != nil {
		return fmt.Errorf("walk the state: %w", err)
	}
	r.Key, r.Sub, r.Value, r.ExpiryMS = k.key, k.sub, value, expiry
	if k.table != timerTable {
		return nil
	}
	t, err := parseTimer(k)
	if err != nil {
		return fmt.Errorf("walk the state: %w", err)
	}
	r.Timer, r.Domain, r.AtMS, r.Key, r.Sub = true, t.Domain, t.AtMS, t.Key, t.Sub
	return nil
}
