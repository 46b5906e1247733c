package wasmill

// timer notes that a timer is set or not.
func (s *store) timer(d Domain, us int64, sub []byte, set bool) {
	if module.rec.bad != 0 {
		return
	}
	if !s.keep {
		keepState()
		if !s.start() {
			panic("wasmill: not enough memory for timers")
		}
	}
	us = inTime(us)
	var buf [64]byte
	index, e := s.entry(timersOf(d), append(append(buf[:0], Ordered(us)...), sub...))
	value := uint64(nullWord)
	if set {
		value = 0
	}
	if e.flags&entryKnown != 0 && e.value == value {
		return
	}
	if !set {
		e.flags |= entryErased
	}
	e.value, e.at = value, us
	s.deletes, s.timed = s.deletes || !set, true
	s.touch(index, e)
}

// timersOf is the table that the cache has for the timers of a domain.
func timersOf(d Domain) Table { return maxTables + Table(d) }

// fired forgets what was noted of a timer that fires: it is set no more, also when this batch has set it again before.
func (s *store) fired() {
	us, _ := module.rec.EventTime()
	var buf [64]byte
	_, e := s.entry(timersOf(Domain(module.rec.Kind()-InputEventTimer)), append(append(buf[:0], Ordered(us)...), module.rec.Value()...))
	e.value = nullWord
	e.flags = e.flags&^entryDirty | entryKnown
}
