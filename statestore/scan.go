package statestore

import "bytes"

// scan is a walk over the lane's entries that is used again by every Scan of a batch: opening one in the backend is dear.
type scan struct {
	merged
	cursor Cursor // nil for one over a list
	over   overlaySource
	list   listSource
}

// scan returns the lane's walk in one direction for the entries of one key, whose keys begin with prefix.
func (l *Lane) scan(prefix []byte, descending bool) (*scan, error) {
	l.overlay().sort()
	way := 0
	if descending {
		way = 1
	}
	if l.cache == nil {
		return l.long(way)
	}
	known := l.cache.lists.get(prefix)
	if known != nil {
		l.hits++
	} else {
		l.misses++
		s, err := l.long(0)
		if err != nil {
			return nil, err
		}
		base := merged{layers: s.layers[1:]}
		if known, err = base.read(prefix); err != nil {
			return nil, err
		}
		l.cache.lists.put(prefix, known)
	}
	if known.long {
		return l.long(way)
	}
	s := l.short[way]
	if s == nil {
		s = &scan{merged: merged{descending: descending}, over: overlaySource{lane: l, descending: descending}, list: listSource{descending: descending}}
		s.layers = []source{&s.over, &s.list}
		l.short[way] = s
	}
	s.list.items = known.items
	return s, nil
}

// long returns the walk through the backend.
func (l *Lane) long(way int) (*scan, error) {
	if s := l.scans[way]; s != nil {
		return s, nil
	}
	descending := way == 1
	tid := l.txn.stages[l.stage].transform
	r := Range{Lower: appendHead(nil, tid, uint8(l.from), 0), Upper: appendHead(nil, tid, uint8(l.to), 0)}
	m, cursor, err := l.txn.basis.walk(r, descending)
	if err != nil {
		return nil, err
	}
	s := &scan{merged: *m, cursor: cursor, over: overlaySource{lane: l, descending: descending}}
	s.layers = append([]source{&s.over}, s.layers...)
	l.scans[way] = s
	return s, nil
}

// Scan calls visit for the entries of e.Key whose sub begins with e.Sub, in byte order of sub, the batch's own writes
// included, until visit is false. It starts after (descending: below) the sub given, or at the start. The bytes are valid
// during the call of visit, which must not write to the lane.
func (l *Lane) Scan(e Entry, after []byte, descending bool, visit func(sub, value []byte) bool) error {
	prefix, err := l.encode(&e)
	if err != nil {
		return err
	}
	subAt := len(prefix) - len(e.Sub)
	s, err := l.scan(prefix[:subAt], descending)
	if err != nil {
		return err
	}
	if !l.start(s, prefix, subAt, after, descending) {
		return nil
	}
	for ; s.key() != nil; s.next() {
		if !s.top.live() {
			if s.top == source(&s.over) {
				l.passed++
			}
			continue
		}
		value, expiry, err := s.top.entry()
		if err != nil {
			return err
		}
		if !expired(expiry, l.txn.info.TimeMS) && !visit(s.key()[subAt:], value) {
			return nil
		}
	}
	return s.err()
}

// start moves a walk to its first entry, or says that there is none.
func (l *Lane) start(s *scan, prefix []byte, subAt int, from []byte, descending bool) bool {
	sub := prefix[subAt:]
	if !descending {
		if from == nil || bytes.Compare(from, sub) < 0 {
			s.seek(prefix, prefix)
			return true
		}
		if !bytes.HasPrefix(from, sub) {
			return false
		}
		l.second = append(append(append(l.second[:0], prefix[:subAt]...), from...), 0)
		s.seek(l.second, prefix)
		return true
	}
	if from == nil || (bytes.Compare(from, sub) > 0 && !bytes.HasPrefix(from, sub)) {
		l.second = after(l.second, prefix)
		s.seek(l.second, prefix)
		return true
	}
	if bytes.Compare(from, sub) <= 0 {
		return false
	}
	l.second = append(append(l.second[:0], prefix[:subAt]...), from...)
	s.seek(l.second, prefix)
	return true
}

// Passed is how many entries all scans of the lane have walked over because this batch has removed them.
func (l *Lane) Passed() uint64 { return l.passed }

// deleteChunk is how many entries a delete-prefix takes before it removes them.
const deleteChunk = 1024

// DeletePrefix removes the entries of e.Key whose sub begins with e.Sub; with before those from e.Sub on and below
// before. It returns how many entries it has removed or, removed by this batch already, passed.
func (l *Lane) DeletePrefix(e Entry, before []byte) (entries int, err error) {
	first, err := l.encode(&e)
	if err != nil {
		return 0, err
	}
	// The bounds are copied: deleting uses the lane's scratch.
	from := bytes.Clone(first)
	whole := bytes.Clone(first[:len(first)-len(e.Sub)])
	prefix := whole
	if before == nil {
		prefix = bytes.Clone(first)
	}
	var end []byte
	if before != nil {
		end = append(bytes.Clone(prefix), before...)
	}
	var keys arena
	for {
		s, err := l.scan(whole, false)
		if err != nil {
			return entries, err
		}
		s.seek(from, prefix)
		list, visited, done, err := l.collect(s, end, &keys)
		entries += visited
		if err != nil {
			return entries, err
		}
		for _, k := range list {
			l.remove(l.touch(k))
		}
		if done {
			return entries, nil
		}
		from = append(append(from[:0], list[len(list)-1]...), 0)
		keys.reset(maxIdle)
	}
}

// collect copies the keys of the next visible entries, at most deleteChunk.
func (l *Lane) collect(s *scan, end []byte, to *arena) (list [][]byte, visited int, done bool, err error) {
	for ; len(list) < deleteChunk; s.next() {
		k := s.key()
		if k == nil {
			return list, visited, true, s.err()
		}
		if end != nil && bytes.Compare(k, end) >= 0 {
			return list, visited, true, nil
		}
		if !s.top.live() {
			if s.top == source(&s.over) {
				visited++
			}
			continue
		}
		_, expiry, err := s.top.entry()
		if err != nil {
			return list, visited, true, err
		}
		if !expired(expiry, l.txn.info.TimeMS) {
			visited++
			list = append(list, to.copy(k))
		}
	}
	return list, visited, false, nil
}

// overlaySource walks what a lane has written.
type overlaySource struct {
	lane       *Lane
	descending bool
	block, at  int
}

func (s *overlaySource) seek(key []byte) {
	o := &s.lane.over.order
	if s.descending && len(key) == 0 {
		s.block, s.at = len(o.blocks), 0
	} else {
		s.block, s.at = o.find(key)
	}
	if s.descending {
		s.next()
	}
}

func (s *overlaySource) next() {
	blocks := s.lane.over.order.blocks
	if !s.descending {
		if s.at++; s.at == len(blocks[s.block]) {
			s.block, s.at = s.block+1, 0
		}
		return
	}
	if s.at--; s.at < 0 {
		if s.block--; s.block >= 0 {
			s.at = len(blocks[s.block]) - 1
		}
	}
}

func (s *overlaySource) record() *record {
	blocks := s.lane.over.order.blocks
	if s.block < 0 || s.block >= len(blocks) {
		return nil
	}
	return blocks[s.block][s.at]
}

func (s *overlaySource) key() []byte {
	if r := s.record(); r != nil {
		return r.key
	}
	return nil
}

func (s *overlaySource) live() bool { return s.record().flags&recDeleted == 0 }

func (s *overlaySource) entry() ([]byte, int64, error) {
	r := s.record()
	return r.value, r.expiry, nil
}

func (s *overlaySource) err() error { return nil }
