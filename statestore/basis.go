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
	live() bool  // the layer has the entry, and not its deletion
	// entry is what the layer has of a live entry.
	entry() (value []byte, expiry int64, err error)
	err() error
}

// merged walks the newest word of several layers on each key that begins with a prefix. Layers come newest first.
type merged struct {
	layers     []source
	descending bool
	prefix     []byte
	active     []source // those that stand on such a key
	top        source   // the one whose word counts, or nil at the end
}

// seek moves to the first key at or above key (descending: the last below it), if it begins with prefix.
func (m *merged) seek(key, prefix []byte) {
	m.prefix = append(m.prefix[:0], prefix...)
	m.active = m.active[:0]
	for _, s := range m.layers {
		s.seek(key)
		m.active = append(m.active, s)
	}
	m.pick()
}

func (m *merged) pick() {
	left := m.active[:0]
	var best []byte
	m.top = nil
	for _, s := range m.active {
		k := s.key()
		if !bytes.HasPrefix(k, m.prefix) || k == nil {
			continue // and it will not come back
		}
		left = append(left, s)
		if m.top != nil {
			if c := bytes.Compare(k, best); c == 0 || (c > 0) != m.descending {
				continue
			}
		}
		m.top, best = s, k
	}
	m.active = left
}

func (m *merged) next() {
	if len(m.active) > 1 {
		k := m.top.key()
		for _, s := range m.active {
			if s != m.top && bytes.Equal(s.key(), k) {
				s.next()
			}
		}
	}
	m.top.next()
	m.pick()
}

// key is nil at the end, or in trouble, which err tells.
func (m *merged) key() []byte {
	if m.top == nil {
		return nil
	}
	return m.top.key()
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
	held       []byte // the key, or nil
	stored     []byte // nil for a deletion
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
		s.back()
	}
	s.hold()
}

func (s *setSource) next() {
	if s.descending {
		s.back()
	} else if s.i++; s.i == len(s.set.runs[s.run].refs) {
		s.run, s.i = s.run+1, 0
	}
	s.hold()
}

func (s *setSource) back() {
	if s.i--; s.i < 0 {
		if s.run--; s.run >= 0 {
			s.i = len(s.set.runs[s.run].refs) - 1
		}
	}
}

func (s *setSource) hold() {
	s.held, s.stored = nil, nil
	if s.run >= 0 && s.run < len(s.set.runs) {
		r := s.set.runs[s.run]
		s.held, s.stored = r.at(r.refs[s.i])
	}
}

func (s *setSource) key() []byte { return s.held }
func (s *setSource) live() bool  { return s.stored != nil }

func (s *setSource) entry() ([]byte, int64, error) { return parseStored(s.stored) }

func (s *setSource) err() error { return nil }

// cursorSource walks the backend. It remembers that nothing lies between where it was sent and where it stands: a backend may
// have to walk over a great many deleted keys to find that out, and whoever looks into all key groups in turn would have it
// do so for each of them.
type cursorSource struct {
	cursor     Cursor
	descending bool
	held       []byte // the key, or nil
	from       []byte // where it was sent
	sent       bool   // and it has not gone on from there
}

func (s *cursorSource) seek(key []byte) {
	if s.sent && bytes.Compare(s.from, key) <= 0 && (s.held == nil || bytes.Compare(key, s.held) <= 0) {
		return
	}
	s.cursor.Seek(key)
	s.hold()
	s.from = append(s.from[:0], key...)
	s.sent = !s.descending && (s.held != nil || s.cursor.Err() == nil)
}

func (s *cursorSource) next() {
	s.cursor.Next()
	s.hold()
	s.sent = false
}

func (s *cursorSource) hold() {
	s.held = nil
	if s.cursor.Valid() {
		s.held = s.cursor.Key()
	}
}

func (s *cursorSource) key() []byte { return s.held }

func (s *cursorSource) live() bool { return true }

func (s *cursorSource) entry() ([]byte, int64, error) {
	stored, err := s.cursor.Value()
	if err != nil {
		return nil, 0, err
	}
	return parseStored(stored)
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
	m := &merged{descending: descending}
	for _, p := range b.pending {
		if len(p.set.runs) > 0 {
			m.layers = append(m.layers, &setSource{set: &p.set, descending: descending})
		}
	}
	m.layers = append(m.layers, &cursorSource{cursor: cursor, descending: descending})
	return m, cursor, nil
}
