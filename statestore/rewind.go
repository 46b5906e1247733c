package statestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
)

// Rewind makes sure that the store holds nothing that a batch after the given one changed. It is called once, before
// anything is loaded; -1 stands for the empty state.
//
// A backend that is damaged, ahead of the batch, or of another job is built anew from the newest good snapshot and the
// changelogs after it. Whatever changelogs follow without doubt are loaded, too; those that only a decision can confirm
// are left to Load. In place of a damaged backend part of the state may do: when the batches from remake on can be run
// again, it is built as far as the files go, and Load asks for the rest. When it cannot be built, nothing is touched, and
// the error names the files that are missing or damaged.
func (s *Store) Rewind(ctx context.Context, batch, remake int64) error {
	s.mu.Lock()
	why, last, from := s.damaged, s.last, s.link
	s.mu.Unlock()
	if why == nil && last > batch {
		why = fmt.Errorf("the state is that of batch %d, ahead of batch %d", last, batch)
	}
	if why == nil {
		newest := s.newestSnapshot(batch)
		logs, tip, err := s.chain(from, batch)
		if newest <= last {
			if err = s.follow(ctx, logs); errors.Is(err, ErrMissing) || errors.Is(err, ErrCorrupt) {
				return nil // Load will ask for it, and knows what was decided
			}
			return err
		}
		// Nothing may be loaded before it is certain that the backend stays.
		if err == nil && tip < newest {
			err = fmt.Errorf("the state is that of batch %d, and changelogs up to the snapshot of batch %d are gone", tip, newest)
		}
		if err == nil {
			err = s.readAll(ctx, logs)
		}
		if err == nil {
			return s.follow(ctx, logs)
		}
		why = err
	}
	if err := s.rebuild(ctx, batch, remake, why); err != nil {
		return fmt.Errorf("build the state anew: %w (it is needed because: %w)", err, why)
	}
	return nil
}

// newestSnapshot is the newest one up to a batch, or -1.
func (s *Store) newestSnapshot(batch int64) int64 {
	for _, n := range slices.Backward(s.snap.kept) {
		if n <= batch {
			return n
		}
	}
	return -1
}

// changelogFile is one attempt at a batch.
type changelogFile struct {
	batch   int64
	attempt string
	meta    *meta
}

// chain returns the changelogs above a link, up to a batch, that are confirmed by the one that follows. The last one has
// nobody to confirm it and is left out, though it is the tip. The error says which one is missing or unreadable; what
// comes before it is returned.
func (s *Store) chain(from link, batch int64) (confirmed []changelogFile, tip int64, err error) {
	at := []link{from} // what may be the newest so far
	var open []changelogFile
	for _, n := range s.changelogsBetween(from.Batch, batch) {
		attempts, bad := s.heads(n)
		var next []changelogFile
		for _, a := range attempts {
			if slices.Contains(at, a.meta.After) {
				next = append(next, a)
			}
		}
		if len(next) == 0 {
			return confirmed, at[0].Batch, s.gap(n, at[0].Batch, attempts, bad)
		}
		if slices.ContainsFunc(next, func(a changelogFile) bool { return a.meta.After != next[0].meta.After }) {
			return confirmed, n, nil // they follow two different attempts: decisions must tell
		}
		for _, o := range open {
			if next[0].meta.After == o.meta.link() {
				confirmed = append(confirmed, o)
				break
			}
		}
		at, open = at[:0], next
		for _, a := range next {
			at = append(at, a.meta.link())
		}
	}
	return confirmed, at[0].Batch, nil
}

// gap says why no attempt at batch n follows batch last.
func (s *Store) gap(n, last int64, attempts []changelogFile, bad error) error {
	for _, a := range attempts {
		if a.meta.After.Batch > last {
			name := s.changelogPath(a.meta.After.Batch, "*")
			return &FileError{File: name, Batch: a.meta.After.Batch, Offset: -1, Err: ErrMissing}
		}
	}
	if bad != nil {
		return bad
	}
	return &FileError{
		File: s.changelogPath(n, "*"), Batch: n, Offset: -1, Err: ErrCorrupt,
		Detail: fmt.Sprintf("it does not follow the changelog of batch %d that is here", last),
	}
}

// changelogsBetween lists the batches above one and up to another that have changelogs.
func (s *Store) changelogsBetween(above, upTo int64) []int64 {
	var out []int64
	for n := range s.others {
		if n > above && n <= upTo {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// heads reads the heads of all attempts at a batch. bad is what is wrong with those that cannot be read.
func (s *Store) heads(batch int64) (good []changelogFile, bad error) {
	for _, name := range s.others[batch] {
		_, attempt, _ := strings.Cut(name, "-")
		full := path.Join(s.dir, changelogDir, name)
		f, err := s.files.Open(full)
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		r, err := newBlockReader(f, changelogMagic, changelogVersion)
		var m *meta
		if err == nil {
			m, err = decodeMeta(r.head)
		}
		if err == nil && (m.Query != s.cfg.Query || m.Batch != batch) {
			err = corrupt("it is that of batch %d of query %s", m.Batch, m.Query)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			bad = errors.Join(bad, &FileError{File: full, Batch: batch, Offset: r.at(), Err: err})
			continue
		}
		good = append(good, changelogFile{batch, attempt, m})
	}
	return good, bad
}

// follow loads changelogs.
func (s *Store) follow(ctx context.Context, logs []changelogFile) error {
	for _, l := range logs {
		if err := s.Load(ctx, l.batch, l.attempt, l.meta.Digest); err != nil {
			return err
		}
	}
	return nil
}

// rebuild builds a new backend. What it is built from is read as a whole before the old one goes.
func (s *Store) rebuild(ctx context.Context, batch, remake int64, why error) error {
	var errs []error
	bases := []int64{-1}
	for _, n := range s.snap.kept {
		if n <= batch {
			bases = append(bases, n)
		}
	}
	for _, base := range slices.Backward(bases) {
		logs, err := s.tryBase(ctx, base, batch)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return s.build(ctx, base, batch, logs, why)
	}
	if s.hasBackend() {
		return errors.Join(errs...)
	}
	for _, base := range slices.Backward(bases) {
		if base+1 < remake {
			break
		}
		if logs, err := s.readable(ctx, base, batch); err == nil {
			return s.build(ctx, base, batch, logs, why)
		}
	}
	return errors.Join(errs...)
}

// hasBackend reports whether there is a backend that is whole, if only not the right one.
func (s *Store) hasBackend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged == nil
}

// build builds a new backend from a snapshot and changelogs.
func (s *Store) build(ctx context.Context, base, batch int64, logs []changelogFile, why error) error {
	s.cfg.Events.Point("rebuild-begin")
	if err := s.replaceBackend(ctx, base); err != nil {
		return err
	}
	if err := s.dropFuture(batch); err != nil {
		return err
	}
	if err := s.follow(ctx, logs); err != nil {
		return err
	}
	s.cfg.Events.Point("rebuild-end")
	s.cfg.Events.Rebuilt(base, why)
	return nil
}

// readable returns the changelogs after a snapshot as far as they are whole.
func (s *Store) readable(ctx context.Context, base, batch int64) ([]changelogFile, error) {
	from, err := s.linkOf(ctx, base)
	if err != nil {
		return nil, err
	}
	logs, _, _ := s.chain(from, batch) // what breaks it is run again
	for i := range logs {
		if s.readAll(ctx, logs[i:i+1]) != nil {
			return logs[:i], ctx.Err()
		}
	}
	return logs, nil
}

// linkOf reads a whole snapshot and returns what follows on it; -1 stands for the empty state.
func (s *Store) linkOf(ctx context.Context, base int64) (link, error) {
	if base < 0 {
		return noLink, nil
	}
	m, err := s.visitSnapshot(ctx, base, func(_, _ []byte) error { return nil })
	if err != nil {
		return link{}, err
	}
	return m.link(), nil
}

// tryBase reads everything that a rebuild from a snapshot would read; -1 stands for the empty state.
func (s *Store) tryBase(ctx context.Context, base, batch int64) ([]changelogFile, error) {
	from, err := s.linkOf(ctx, base)
	if err != nil {
		return nil, err
	}
	logs, tip, err := s.chain(from, batch)
	if err != nil {
		return nil, err
	}
	if base < 0 && tip < batch && len(logs) == 0 {
		return nil, &FileError{File: s.changelogPath(batch, "*"), Batch: batch, Offset: -1, Err: ErrMissing}
	}
	return logs, s.readAll(ctx, logs)
}

// readAll makes sure that changelogs can be read.
func (s *Store) readAll(ctx context.Context, logs []changelogFile) error {
	for _, l := range logs {
		if _, err := s.readPending(ctx, l.batch, l.attempt, l.meta.Digest); err != nil {
			return err
		}
	}
	return nil
}

// replaceBackend makes a new backend with what a snapshot has. Until the marker is written, which is the last of it, the
// new one counts as empty, so that a start after a crash comes here again.
func (s *Store) replaceBackend(ctx context.Context, base int64) error {
	if err := s.backend.Close(); err != nil {
		s.cfg.Events.Warning("close the damaged state", err)
	}
	cfg := s.backendConfig()
	cfg.Fresh = true
	backend, err := s.cfg.Backend(ctx, cfg)
	if err != nil {
		return s.without(err)
	}
	s.cfg.Events.Point("rebuild-load")
	if err = s.loadSnapshot(ctx, backend, base); err == nil {
		err = s.adopt(backend)
	}
	if err != nil {
		return s.without(errors.Join(err, backend.Close()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged = nil
	return nil
}

// without leaves the store without a backend.
func (s *Store) without(err error) error {
	s.mu.Lock()
	s.damaged = err
	s.mu.Unlock()
	return errors.Join(err, s.adopt(noBackend{err}))
}

func (s *Store) loadSnapshot(ctx context.Context, backend Backend, base int64) error {
	if base < 0 {
		return nil
	}
	_, m, f, err := s.openSnapshot(base)
	if err != nil {
		return err
	}
	m.Base = base
	mark, err := m.encode()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return backend.Apply(ctx, Marker{Batch: base, Meta: mark}, s.snapshotChanges(ctx, base))
}

// snapshotChanges yields a snapshot's entries in blocks of memory of their own, which a backend may keep.
func (s *Store) snapshotChanges(ctx context.Context, base int64) iter.Seq2[Change, error] {
	stop := errors.New("stop")
	return func(yield func(Change, error) bool) {
		_, err := s.visitSnapshot(ctx, base, func(key, stored []byte) error {
			if !yield(Change{bytes.Clone(key), bytes.Clone(stored)}, nil) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Change{}, err)
		}
	}
}

// dropFuture removes snapshots above a batch: they belong to a past that is not this state's.
func (s *Store) dropFuture(batch int64) error {
	for n := len(s.snap.kept); n > 0 && s.snap.kept[n-1] > batch; n-- {
		if err := s.files.Remove(s.snapshotPath(s.snap.kept[n-1])); err != nil {
			return err
		}
		s.snap.kept = s.snap.kept[:n-1]
	}
	s.setFloor()
	return nil
}

// noBackend stands for one that is damaged.
type noBackend struct{ err error }

func (n noBackend) Marker(int64) (Marker, error) { return Marker{Batch: -1}, nil }
func (n noBackend) Oldest() int64                { return -1 }
func (n noBackend) Durable() int64               { return -1 }
func (n noBackend) Begun() int64                 { return -1 }
func (n noBackend) Stats() BackendStats          { return BackendStats{} }
func (n noBackend) Close() error                 { return nil }
func (n noBackend) Flush(context.Context) error  { return n.err }
func (n noBackend) Discard(int64) error          { return n.err }

func (n noBackend) Get(int64, []byte, []byte) ([]byte, bool, error) { return nil, false, n.err }
func (n noBackend) Cursor(int64, Range, bool) (Cursor, error)       { return nil, n.err }

func (n noBackend) Apply(context.Context, Marker, iter.Seq2[Change, error]) error { return n.err }
