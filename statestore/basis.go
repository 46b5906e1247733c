package statestore

import (
	"bytes"
	"fmt"
	"slices"
)

// basis is the state as of the end of one sealed batch: changes that wait to be applied over a backend. It does not change.
type basis struct {
	backend Backend
	asOf    int64
	pending []*pending // newest first
	ids     *ids
	link    link // the newest changelog in it
}

// get returns the stored value of a key, or found = false. It is a view of buf, which grows as needed, or of a change.
func (b *basis) get(hash uint64, key []byte, buf *[]byte) (stored []byte, found bool, err error) {
	for _, p := range b.pending {
		if stored, changed := p.set.get(hash, key); changed {
			return stored, stored != nil, nil
		}
	}
	stored, found, err = b.backend.Get(b.asOf, key, (*buf)[:0])
	if err != nil {
		return nil, false, fmt.Errorf("read the state: %w", err)
	}
	if cap(stored) > cap(*buf) {
		*buf = stored
	}
	return stored, found, nil
}

// changed reports whether one of the first n waiting batches changes a key.
func (b *basis) changed(n int, hash uint64, key []byte) bool {
	return slices.ContainsFunc(b.pending[:n], func(p *pending) bool {
		_, changed := p.set.get(hash, key)
		return changed
	})
}

// source is one layer of a merged walk. Sources stand on a key or at their end.
type source interface {
	seek(key []byte) // as Cursor.Seek
	next()
	key() []byte // nil at the end
	// entry is what the layer says of the key; live is false for a deletion.
	entry() (value []byte, expiry int64, live bool, err error)
	err() error
}

// merged walks the newest word of several layers on each key. Layers come newest first.
type merged struct {
	layers     []source
	descending bool
	at         int // the layer whose word counts, or -1
}

func (m *merged) seek(key []byte) {
	for _, s := range m.layers {
		s.seek(key)
	}
	m.pick()
}

func (m *merged) pick() {
	m.at = -1
	var best []byte
	for i, s := range m.layers {
		k := s.key()
		if k == nil {
			continue
		}
		if m.at >= 0 {
			c := bytes.Compare(k, best)
			if c == 0 || (c > 0) != m.descending {
				continue
			}
		}
		m.at, best = i, k
	}
}

func (m *merged) next() {
	k := m.layers[m.at].key()
	for i, s := range m.layers {
		if i != m.at && bytes.Equal(s.key(), k) {
			s.next()
		}
	}
	m.layers[m.at].next()
	m.pick()
}

func (m *merged) key() []byte {
	if m.at < 0 {
		return nil
	}
	return m.layers[m.at].key()
}

// err is the trouble of any layer: it ends the layer, and its words are missing.
func (m *merged) err() error {
	for _, s := range m.layers {
		if err := s.err(); err != nil {
			return fmt.Errorf("walk the state: %w", err)
		}
	}
	return nil
}

// setSource walks the changes of a waiting batch.
type setSource struct {
	set        *changeSet
	descending bool
	run, i     int
}

func (s *setSource) seek(key []byte) {
	if s.descending && len(key) == 0 {
		s.run, s.i = len(s.set.runs), 0
	} else if s.run = s.set.runOf(key); s.run < len(s.set.runs) {
		s.i = s.set.runs[s.run].search(key)
	} else {
		s.i = 0
	}
	if s.descending {
		s.next()
	}
}

func (s *setSource) next() {
	if !s.descending {
		if s.i++; s.i == len(s.set.runs[s.run].refs) {
			s.run, s.i = s.run+1, 0
		}
		return
	}
	if s.i--; s.i < 0 {
		if s.run--; s.run >= 0 {
			s.i = len(s.set.runs[s.run].refs) - 1
		}
	}
}

func (s *setSource) key() []byte {
	if s.run < 0 || s.run >= len(s.set.runs) {
		return nil
	}
	return s.set.runs[s.run].key(s.i)
}

func (s *setSource) entry() ([]byte, int64, bool, error) {
	r := s.set.runs[s.run]
	_, stored := r.at(r.refs[s.i])
	if stored == nil {
		return nil, 0, false, nil
	}
	value, expiry, err := parseStored(stored)
	return value, expiry, true, err
}

func (s *setSource) err() error { return nil }

// cursorSource walks the backend.
type cursorSource struct {
	cursor Cursor
	held   []byte // the key, or nil
}

func (s *cursorSource) seek(key []byte) {
	s.cursor.Seek(key)
	s.hold()
}

func (s *cursorSource) next() {
	s.cursor.Next()
	s.hold()
}

func (s *cursorSource) hold() {
	s.held = nil
	if s.cursor.Valid() {
		s.held = s.cursor.Key()
	}
}

func (s *cursorSource) key() []byte { return s.held }

func (s *cursorSource) entry() ([]byte, int64, bool, error) {
	stored, err := s.cursor.Value()
	if err != nil {
		return nil, 0, false, err
	}
	value, expiry, err := parseStored(stored)
	return value, expiry, true, err
}

func (s *cursorSource) err() error {
	if s.held != nil {
		return nil
	}
	return s.cursor.Err()
}

// walk opens a merged walk over the keys of r, without an overlay. The caller closes the cursor.
func (b *basis) walk(r Range, descending bool) (*merged, Cursor, error) {
	cursor, err := b.backend.Cursor(b.asOf, r, descending)
	if err != nil {
		return nil, nil, fmt.Errorf("walk the state: %w", err)
	}
	m := &merged{descending: descending, at: -1}
	for _, p := range b.pending {
		if len(p.set.runs) > 0 {
			m.layers = append(m.layers, &setSource{set: &p.set, descending: descending})
		}
	}
	m.layers = append(m.layers, &cursorSource{cursor: cursor})
	return m, cursor, nil
}
