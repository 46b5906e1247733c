package statestore

import "fmt"

// Due reports whether any timer is due at a time and under the watermark of its stage, in milliseconds; a watermark of 0 is
// none yet.
func (s *Store) Due(timeMS int64, watermark func(stage string) int64) (bool, error) {
	for d := range domains {
		_, due, err := s.firstTimer(d, func(stage string) int64 {
			at, ok := limit(d, watermark(stage), timeMS)
			if !ok {
				return unknownTime
			}
			return at
		})
		if err != nil || due {
			return due, err
		}
	}
	return false, nil
}

// NextTimer is a time before which no timer of a domain is due; ok is false when there is none at all.
func (s *Store) NextTimer(domain int) (ms int64, ok bool) {
	at, _, err := s.firstTimer(domain, func(string) int64 { return unknownTime })
	if err != nil { // the next batch says so; until then there is no telling when a timer is due
		s.cfg.Events.Warning("look for timers", err)
		return unknownTime, true
	}
	return at, at != never
}

// firstTimer is a lower bound of a domain's timers, and whether one of a stage is due up to the stage's limit. The bound is
// exact where those kept so far are at or below the limit; unknownTime is a limit under which nothing is due.
func (s *Store) firstTimer(domain int, limit func(stage string) int64) (first int64, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return never, false, ErrClosed
	}
	first = never
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
		upTo := limit(tr.Name)
		for g := range Groups {
			if bounds[g][domain] > upTo {
				first = min(first, bounds[g][domain])
				continue
			}
			if look == nil {
				b := s.basisLocked()
				defer s.releaseLocked(b)
				if look, cursor, err = b.walk(Range{Lower: []byte{dataPrefix}, Upper: []byte{dataPrefix + 1}}, false); err != nil {
					return never, false, err
				}
			}
			at, err := firstIn(look, tr.ID, uint8(g), domain, bounds[g][domain])
			if err != nil {
				return never, false, err
			}
			bounds[g][domain] = at
			if first = min(first, at); at <= upTo {
				return first, true, nil
			}
		}
	}
	return first, false, nil
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
