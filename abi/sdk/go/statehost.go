package wasmill

import "github.com/wasmill/wasmill/abi/sdk/go/internal/mem"

// An operation of ABI 1.
const (
	opSize         = 56
	opGet          = 1
	opScan         = 2
	opPut          = 3
	opDelete       = 4
	opDeletePrefix = 5
	opTimerSet     = 6
	opTimerDelete  = 7
	opKey          = 8
	opSub          = 16
	opValue        = 24
	opAt           = 32
	opAnswer       = 40
	opCount        = 48
	opFlags        = 52
	flagMore       = 1
	flagDown       = 2
)

// maxOps is how many operations go to the host in one call.
const maxOps = 2048

// firstAnswers is the room that a call's answers get at first, and most what they may take at once, in bytes. What takes
// more is read when it is asked for.
const (
	firstAnswers = 64 << 10
	mostAnswers  = 8 << 20
)

// op writes operation i.
func (s *store) op(i uint64, kind uint64, table Table, key uint32, sub, value uint64, at int64) uint64 {
	to := s.ops.Base + i*opSize
	mem.PutU64(to, kind|uint64(table)<<16)
	mem.PutU64(to+opKey, s.keys[key].word)
	mem.PutU64(to+opSub, sub)
	mem.PutU64(to+opValue, value)
	mem.PutU64(to+opAt, uint64(at))
	mem.PutU64(to+opAnswer, 0)
	mem.PutU64(to+opCount, 0)
	return to
}

// before is what comes before a frame's records: it reads what they will need.
func (s *store) before(frame uint64) {
	s.key = 0
	count := mem.U32(frame + frameCount)
	if count == 0 {
		module.rec.at = 0
		return
	}
	at, stride := mem.U32(frame+frameRecords), mem.U32(frame+frameStride)
	fields, step := module.fieldsOf(frame)
	module.rec.at = at
	timers := module.rec.Kind() != InputRecord
	want := module.transform.Prefetch
	if want == nil && len(s.singles) == 0 && !(timers && s.timed) {
		return
	}
	for range count {
		mem.PutU32(frame+frameProgress, mem.U32(at+recordIndex))
		module.rec.at, module.rec.fields = at, fields
		if timers && s.timed {
			s.fired()
		}
		if want != nil {
			want(&module.rec, &wish)
			module.rec.bad = 0
		} else if module.rec.Key() != nil {
			for _, t := range s.singles {
				s.want(t, nil)
			}
		}
		at, fields = at+stride, fields+step
	}
	mem.PutU32(frame+frameProgress, noIndex)
	s.read()
	s.key = 0
}

// after is what comes after a frame's records. Deletions of timers and clears do not wait: which timers are due is settled
// after the last frame of records, and an entry that was cleared must not be read again.
func (s *store) after(last bool) {
	switch {
	case last || s.used > largeCache:
		s.flush()
		if s.used > largeCache {
			s.empty()
		}
	case s.deletes || len(s.clears) > 0:
		n := s.writeTimers(s.writeClears(0))
		s.send(n)
	}
}

// want notes an entry to be read with the others.
func (s *store) want(table Table, sub []byte) {
	index, e := s.entry(table, sub)
	if e.flags&(entryKnown|entryWanted) == 0 {
		e.flags |= entryWanted
		s.wanted = append(s.wanted, index)
	}
}

// read reads what is wanted.
func (s *store) read() {
	for all := s.wanted; len(all) > 0; {
		n := min(len(all), maxOps)
		s.fetchAll(all[:n])
		all = all[n:]
	}
	for _, i := range s.wanted {
		s.entries[i].flags &^= entryWanted
	}
	s.wanted = s.wanted[:0]
}

// fetchAll reads entries in one call, or as many of them as fit into memory.
func (s *store) fetchAll(indexes []uint32) {
	for len(indexes) > 0 {
		for i, index := range indexes {
			e := &s.entries[index]
			s.op(uint64(i), opGet, Table(e.table), e.key, e.sub, 0, 0)
		}
		if s.answers(uint64(len(indexes)), mostAnswers) {
			break
		}
		indexes = indexes[:len(indexes)/2]
	}
	for i, index := range indexes {
		e, op := &s.entries[index], s.ops.Base+uint64(i)*opSize
		e.value, e.at, e.room = mem.U64(op+opAnswer), 0, 0
		e.flags |= entryKnown
	}
}

// fetch reads one entry.
func (s *store) fetch(index uint32) {
	e := &s.entries[index]
	if s.keys[e.key].clear {
		s.send(s.writeClears(0))
		if e.flags&entryKnown != 0 {
			return
		}
	}
	s.op(0, opGet, Table(e.table), e.key, e.sub, 0, 0)
	s.answers(1, 1<<31)
	e.value, e.at, e.room = mem.U64(s.ops.Base+opAnswer), 0, 0
	e.flags |= entryKnown
}

// answers has n operations answered into the cache's memory; false when that would take more than most.
func (s *store) answers(n, most uint64) bool {
	if s.end-s.next < firstAnswers {
		s.next = s.end
		s.next = s.alloc(firstAnswers)
		s.used -= firstAnswers
	}
	need := s.ops.Base + maxOps*opSize
	for mem.StateRead(s.ops.Base, n, s.next, s.end-s.next, need) != 0 {
		size := mem.U32(need)
		if size > most {
			return false
		}
		s.next = s.alloc(size)
		s.used -= size
	}
	last := s.next
	for i := range n {
		answer := mem.U64(s.ops.Base + i*opSize + opAnswer)
		if int64(answer) > 0 {
			last = max(last, answer&0xffffffff+answer>>32)
		}
	}
	last = (last + 7) &^ 7
	s.used += last - s.next
	s.next = last
	return true
}

// flush writes all that was not written.
func (s *store) flush() {
	n := s.writeTimers(s.writeClears(0))
	for _, index := range s.dirty {
		n = s.writeEntry(n, index)
	}
	s.dirty = s.dirty[:0]
	s.send(n)
}

// writeEntry adds the writing of an entry as operation n, if it is dirty, and is the next n.
func (s *store) writeEntry(n uint64, index uint32) uint64 {
	e := &s.entries[index]
	if e.flags&entryDirty == 0 {
		return n
	}
	e.flags &^= entryDirty
	n = s.full(n)
	if int64(e.value) < 0 {
		s.op(n, opDelete, Table(e.table), e.key, e.sub, 0, 0)
	} else {
		s.op(n, opPut, Table(e.table), e.key, e.sub, e.value, e.at)
	}
	return n + 1
}

// writeClears adds the clears, from operation n on.
func (s *store) writeClears(n uint64) uint64 {
	for _, c := range s.clears {
		n = s.full(n)
		s.op(n, opDeletePrefix, c.table, c.key, c.prefix, nullWord, 0)
		s.keys[c.key].clear = false
		n++
	}
	s.clears = s.clears[:0]
	return n
}

// writeTimers adds the timers, from operation n on.
func (s *store) writeTimers(n uint64) uint64 {
	for _, index := range s.timers {
		e := &s.entries[index]
		if e.flags&entryDirty == 0 {
			continue
		}
		if e.flags&entryErased != 0 {
			n = s.writeTimer(n, opTimerDelete, e)
		}
		if int64(e.value) >= 0 {
			n = s.writeTimer(n, opTimerSet, e)
		}
		e.flags &^= entryDirty | entryErased
	}
	s.timers, s.deletes = s.timers[:0], false
	return n
}

func (s *store) writeTimer(n, kind uint64, e *entry) uint64 {
	n = s.full(n)
	s.op(n, kind|uint64(e.table-maxTables)<<8, 0, e.key, e.sub+8-8<<32, 0, e.at)
	return n + 1
}

// full sends n operations if there is no room for another one, and is where that goes.
func (s *store) full(n uint64) uint64 {
	if n < maxOps {
		return n
	}
	s.send(n)
	return 0
}

func (s *store) send(n uint64) {
	if n > 0 {
		mem.StateWrite(s.ops.Base, n)
	}
}
