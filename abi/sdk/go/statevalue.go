package wasmill

import (
	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// known is the entry with its value, which is read if it was not yet.
func (s *store) known(table Table, sub []byte) (index uint32, e *entry) {
	index, e = s.entry(table, sub)
	if e.flags&entryKnown == 0 {
		s.fetch(index)
	}
	return index, e
}

func (s *store) get(table Table, sub []byte) []byte {
	_, e := s.known(table, sub)
	return wordBytes(e.value)
}

func (s *store) json(table Table, sub []byte) Value {
	_, e := s.known(table, sub)
	if int64(e.value) <= 0 || e.value>>32 == 0 {
		return Value{}
	}
	return Value{scan.Whole(e.value&0xffffffff, e.value>>32)}
}

// wordBytes is what a word stands for, nil when it is not there.
func wordBytes(word uint64) []byte {
	if int64(word) < 0 {
		return nil
	}
	return mem.Bytes(word&0xffffffff, word>>32)
}

// touch notes that an entry has to be written.
func (s *store) touch(index uint32, e *entry) {
	if e.flags&entryDirty == 0 {
		if e.table < maxTables {
			s.dirty = append(s.dirty, index)
		} else {
			s.timers = append(s.timers, index)
		}
	}
	e.flags |= entryDirty | entryKnown
}

// put keeps a value to be written. Two places take turns, so that a value that was given out stays as it is until the
// record is done.
func (s *store) put(table Table, sub, value []byte, expiry int64) {
	if module.rec.bad != 0 {
		return
	}
	if len(value) > maxStateValue {
		panic("wasmill: a value of state has at most 512 KiB")
	}
	if expiry != 0 {
		if expiry = inTime(expiry); expiry <= module.out.batch.Time {
			s.remove(table, sub)
			return
		}
	}
	index, e := s.entry(table, sub)
	n := uint64(len(value))
	to, room := e.spare, e.spareRoom
	if e.turn == s.turn || uint64(room) < n || to == 0 {
		room = uint32(n+15) &^ 7
		to = s.alloc(uint64(room))
	}
	copy(mem.Bytes(to, n), value)
	if e.flags&entryKnown != 0 && int64(e.value) > 0 {
		e.spare, e.spareRoom = e.value&0xffffffff, max(e.room, uint32(e.value>>32))
	} else {
		e.spare, e.spareRoom = 0, 0
	}
	e.value, e.room, e.turn, e.at = to|n<<32, room, s.turn, expiry
	s.touch(index, e)
}

// inTime is a time in whole milliseconds.
func inTime(us int64) int64 {
	if us = Floor(us, 1000); us < minTime || us >= maxTime {
		panic("wasmill: a time is outside the years 1 to 9999")
	}
	return us
}

func (s *store) remove(table Table, sub []byte) {
	if module.rec.bad != 0 {
		return
	}
	index, e := s.entry(table, sub)
	e.value, e.at, e.spare, e.spareRoom = nullWord, 0, 0, 0
	s.touch(index, e)
}

// add is a number after n was added to it, which is written if write is set.
func (s *store) add(table Table, sub []byte, n int64, write bool) int64 {
	index, e := s.known(table, sub)
	was := number(e.value&0xffffffff, uint64(int64(e.value)>>32))
	if !write || module.rec.bad != 0 {
		return was + n
	}
	if int64(e.value) < 0 {
		e.value = s.alloc(8) | 8<<32
	}
	mem.PutU64(e.value&0xffffffff, uint64(was+n))
	e.at = 0
	s.touch(index, e)
	return was + n
}

// number reads a number; a negative length means that there is none, which is 0.
func number(at, n uint64) int64 {
	if int64(n) < 0 {
		return 0
	}
	if n != 8 {
		panic("wasmill: a value of state is no counter: it has not 8 bytes")
	}
	return int64(mem.U64(at))
}

// clear removes all entries of the key at hand whose sub-key begins with prefix. What the cache has of them is forgotten,
// so the clear may be written before whatever is dirty.
func (s *store) clear(table Table, prefix []byte) {
	if module.rec.bad != 0 {
		return
	}
	key := s.hand()
	if uint64(len(prefix))+s.keys[key].word>>32 > maxStateKey {
		panic("wasmill: a key and a prefix together have at most 4 KiB")
	}
	for i := s.keys[key].last; i != 0; i = s.entries[i-1].next {
		e := &s.entries[i-1]
		if e.table == uint16(table) && e.sub>>32 >= uint64(len(prefix)) && same(e.sub&0xffffffff|uint64(len(prefix))<<32, prefix) {
			e.value, e.at, e.spare, e.spareRoom = nullWord, 0, 0, 0
			e.flags = e.flags&^entryDirty | entryKnown
		}
	}
	s.keys[key].clear = true
	s.clears = append(s.clears, pending{prefix: s.copied(prefix), key: key, table: table})
}
