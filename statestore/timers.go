package statestore

import "fmt"

// Due reports whether any timer is due under a watermark and a time, in milliseconds; a watermark of 0 is none yet.
func (s *Store) Due(watermarkMS, timeMS int64) (bool, error) {
	for d := range domains {
		at, ok := limit(d, watermarkMS, timeMS)
		if !ok {
			continue
		}
		first, err := s.firstTimer(d, at)
		if err != nil {
			return false, err
		}
		if first <= at {
			return true, nil
		}
	}
	return false, nil
}

// NextTimer is a time before which no timer of a domain is due; ok is false when there is none at all.
func (s *Store) NextTimer(domain int) (ms int64, ok bool) {
	at, err := s.firstTimer(domain, unknownTime)
	if err != nil { // the next batch says so; until then there is no telling when a timer is due
		s.cfg.Events.Warning("look for timers", err)
		return unknownTime, true
	}
	return at, at != never
}

// firstTimer is a lower bound of a domain's timers. It is exact where the bounds kept so far are at or below upTo.
func (s *Store) firstTimer(domain int, upTo int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return never, ErrClosed
	}
	first := int64(never)
	var look *merged
	var cursor Cursor
	defer func() {
		if cursor != nil {
			_ = cursor.Close() // nothing was written
		}
	}()
	for _, tr := range s.ids.Transforms {
		bounds := s.bounds[tr.ID]
		if tr.Retired || bounds == nil {
			continue
		}
		for g := range Groups {
			if bounds[g][domain] > upTo {
				first = min(first, bounds[g][domain])
				continue
			}
			if look == nil {
				b := s.basisLocked()
				defer s.releaseLocked(b)
				var err error
				if look, cursor, err = b.walk(Range{Lower: []byte{dataPrefix}, Upper: []byte{dataPrefix + 1}}, false); err != nil {
					return never, err
				}
			}
			at, err := firstIn(look, tr.ID, uint8(g), domain, bounds[g][domain])
			if err != nil {
				return never, err
			}
			bounds[g][domain] = at
			if first = min(first, at); first <= upTo {
				return first, nil
			}
		}
	}
	return first, nil
}

// firstIn finds the first timer of one group, in which none is below bound.
func firstIn(m *merged, transform uint16, group uint8, domain int, bound int64) (int64, error) {
	prefix := append(appendHead(nil, transform, group, timerTable), timerKeyLen, byte(domain))
	for m.seek(appendInstant(nil, transform, group, uint8(domain), bound), prefix); m.key() != nil; m.next() {
		if !m.top.live() {
			continue
		}
		k, err := parseKey(m.key())
		if err != nil {
			return never, fmt.Errorf("read timers: %w", err)
		}
		t, err := parseTimer(k)
		if err != nil {
			return never, fmt.Errorf("read timers: %w", err)
		}
		return t.AtMS, nil
	}
	return never, m.err()
}
