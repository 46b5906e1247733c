package abi

import (
	"encoding/binary"
	"math"
)

// The results of state_read.
const (
	StateOK       = 0
	StateTooSmall = 2 // only *need was written
)

// StateReader answers the reads of one lane, the batch's own writes included.
type StateReader interface {
	// Get is the value of (table, key, sub), or false. The bytes stay as they are until AnswerState returns.
	Get(op *StateOp) (value []byte, found bool, err error)
	// Scan calls visit for the entries that op names, in order, until visit is false. The limit is not its concern, though
	// visit is false when it is reached, and it may be called twice for an operation. The bytes are used only during visit.
	Scan(op *StateOp, visit func(sub, value []byte) bool) error
}

type stateAnswer struct {
	ptr, length, count, flags uint32
}

type stateEntry struct{ subLen, valueLen int }

// stateFind is what was found for an operation before anything is written: for a get a value, for a scan the entries that
// there was room for.
type stateFind struct {
	first uint64 // bytes of a get's value, or of a scan's first entry, that have to fit
	value []byte // get: nil when absent, or when it will not fit
	// Scan: entries from, to of StateRules.entries, whose bytes begin at data of StateRules.data.
	from, to, data int
	size           int // bytes that they take
	next           int // bytes of the entry that had no room, 0 when none was left out
}

// StateBuffer is where a guest wants its answers.
type StateBuffer struct {
	Ptr, Cap uint32
	Need     uint32 // address of the u32 that says how much StateTooSmall would have taken
}

// AnswerState carries out a whole state_read: it reads the operations, asks reader, and writes the answers to the guest's
// buffer in the order of the operations. Each takes its size rounded up to 8. If what every get and every scan's first
// entry takes is more than the buffer, the result is StateTooSmall and that sum is all that is written. Otherwise the
// scans, in order, take what room is left. What ABI 1 forbids is a *Violation with trap state.
//
// The answers are put together outside the guest's memory first, as its keys may lie in the buffer.
func AnswerState(mem []byte, ptr, count uint32, buf StateBuffer, rules *StateRules, reader StateReader) (int32, error) {
	structs, err := rules.structs(mem, ptr, count)
	if err != nil || count == 0 {
		return StateOK, err
	}
	if err := buf.check(mem, uint64(ptr), uint64(count)*StateOpSize); err != nil {
		return 0, err
	}
	if err := rules.readAll(mem, structs); err != nil {
		return 0, err
	}
	defer rules.forget()
	need, err := rules.measure(reader, uint64(buf.Cap))
	if err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	if need > uint64(buf.Cap) {
		le.PutUint32(mem[buf.Need:], uint32(min(need, math.MaxUint32)))
		return StateTooSmall, nil
	}
	if err := rules.collect(reader, buf.Ptr, uint64(buf.Cap)-need); err != nil {
		return 0, err
	}
	copy(mem[min(uint64(buf.Ptr), uint64(len(mem))):], rules.image)
	for i, a := range rules.answers {
		b := (*[StateOpSize]byte)(structs[i*StateOpSize:])
		le.PutUint32(b[40:], a.ptr)
		le.PutUint32(b[44:], a.length)
		le.PutUint32(b[48:], a.count)
		le.PutUint32(b[52:], a.flags)
	}
	return StateOK, nil
}

// forget lets go of the reader's values.
func (s *StateRules) forget() { clear(s.finds) }

// check makes sure that the buffer and need lie in memory, apart from each other and from the operations.
func (b *StateBuffer) check(mem []byte, ops, opsLen uint64) error {
	buf, capacity, need := uint64(b.Ptr), uint64(b.Cap), uint64(b.Need)
	if need%4 != 0 || need+4 > uint64(len(mem)) {
		return stateTrap("need at address %d, memory has %d bytes", need, len(mem))
	}
	if overlap(ops, opsLen, need, 4) {
		return stateTrap("need at address %d lies in the operations", need)
	}
	if capacity == 0 {
		return nil
	}
	if buf%8 != 0 || buf+capacity > uint64(len(mem)) {
		return stateTrap("buffer of %d bytes at address %d, memory has %d", capacity, buf, len(mem))
	}
	if overlap(ops, opsLen, buf, capacity) || overlap(buf, capacity, need, 4) {
		return stateTrap("buffer of %d bytes at address %d lies over the operations or need", capacity, buf)
	}
	return nil
}

func overlap(a, aLen, b, bLen uint64) bool {
	return a < b+bLen && b < a+aLen
}

func (s *StateRules) readAll(mem, structs []byte) error {
	s.ops = s.ops[:0]
	for ; len(structs) > 0; structs = structs[StateOpSize:] {
		var op StateOp
		if err := s.read(mem, (*[StateOpSize]byte)(structs), &op); err != nil {
			return err
		}
		if op.Op > OpScan {
			return stateTrap("operation %d in state_read", op.Op)
		}
		s.ops = append(s.ops, op)
	}
	return nil
}

// measure carries out every get and every scan, notes what they found and returns the sum of what every get and every
// scan's first entry takes, each rounded up to 8. What it keeps, all scans together, is no more than capacity.
func (s *StateRules) measure(reader StateReader, capacity uint64) (need uint64, err error) {
	s.finds, s.entries, s.data = s.finds[:0], s.entries[:0], s.data[:0]
	extra := uint64(0) // what scans have beyond their first entries
	for i := range s.ops {
		s.finds = append(s.finds, stateFind{})
		op, f := &s.ops[i], &s.finds[i]
		if op.Op == OpGet {
			err = s.get(reader, op, f)
		} else {
			err = s.scan(reader, op, capacity-min(capacity, need+extra), f)
		}
		if err != nil {
			return 0, err
		}
		first := roundUp8(f.first)
		if need += first; need > capacity {
			f.value = nil
		}
		if size := roundUp8(uint64(f.size)); size > first {
			extra += size - first
		}
	}
	return need, nil
}

func (s *StateRules) get(reader StateReader, op *StateOp, f *stateFind) error {
	value, found, err := reader.Get(op)
	if err != nil || !found {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	f.value, f.first = value, uint64(len(value))
	return s.pay(len(value))
}

// scanning is the scan that is under way.
type scanning struct {
	find    *stateFind
	room    uint64
	limit   uint32
	trouble error
	visit   func(sub, value []byte) bool // of the rules, made once
}

// scan keeps the entries of a scan as far as room bytes go.
func (s *StateRules) scan(reader StateReader, op *StateOp, room uint64, f *stateFind) error {
	if s.scanning.visit == nil {
		s.scanning.visit = s.visit
	}
	f.from, f.data = len(s.entries), len(s.data)
	s.scanning = scanning{find: f, room: min(room, math.MaxInt32), limit: op.Limit, visit: s.scanning.visit}
	err := reader.Scan(op, s.scanning.visit)
	f.to = len(s.entries)
	if s.scanning.trouble != nil {
		return s.scanning.trouble
	}
	return err
}

// visit takes one entry of a scan.
func (s *StateRules) visit(sub, value []byte) bool {
	now, f := &s.scanning, s.scanning.find
	size := HeaderEntrySize + len(sub) + len(value)
	if now.trouble = s.pay(StateEntryFuel + len(sub) + len(value)); now.trouble != nil {
		return false
	}
	if f.size == 0 {
		f.first = uint64(size)
	}
	if roundUp8(uint64(f.size+size)) > now.room {
		f.next = size
		return false
	}
	f.size += size
	s.entries = append(s.entries, stateEntry{len(sub), len(value)})
	s.data = append(append(s.data, sub...), value...)
	return now.limit == 0 || uint32(len(s.entries)-f.from) < now.limit
}

func roundUp8(n uint64) uint64 { return (n + 7) &^ 7 }

// collect puts the answers together, for a buffer at address base with slack bytes more than measure asked for.
func (s *StateRules) collect(reader StateReader, base uint32, slack uint64) error {
	s.answers, s.image = s.answers[:0], s.image[:0]
	for i := range s.ops {
		op, f := &s.ops[i], &s.finds[i]
		if op.Op == OpGet {
			s.answers = append(s.answers, s.placeGet(base, f.value))
			continue
		}
		first := roundUp8(f.first)
		more, err := s.cut(reader, op, f, first+slack)
		if err != nil {
			return err
		}
		before := len(s.image)
		s.answers = append(s.answers, s.placeScan(base, op, f, more))
		slack -= uint64(len(s.image)-before) - first
	}
	return nil
}

// cut fits what a scan has found to the room that is left for it, and says whether entries are left out. A scan that was
// stopped where there is room now is carried out again: another one before it had taken that room.
func (s *StateRules) cut(reader StateReader, op *StateOp, f *stateFind, room uint64) (more bool, err error) {
	size := 0
	for i, e := range s.entries[f.from:f.to] {
		size += HeaderEntrySize + e.subLen + e.valueLen
		if roundUp8(uint64(size)) > room {
			f.to = f.from + i
			return true, nil
		}
	}
	if f.next == 0 || roundUp8(uint64(f.size+f.next)) > room {
		return f.next > 0, nil
	}
	*f = stateFind{first: f.first}
	err = s.scan(reader, op, room, f)
	return f.next > 0, err
}

// pad rounds the image up to a multiple of 8.
func (s *StateRules) pad() {
	for len(s.image)%8 != 0 {
		s.image = append(s.image, 0)
	}
}

func (s *StateRules) placeGet(base uint32, value []byte) stateAnswer {
	if value == nil {
		return stateAnswer{length: math.MaxUint32}
	}
	if len(value) == 0 {
		return stateAnswer{}
	}
	a := stateAnswer{ptr: base + uint32(len(s.image)), length: uint32(len(value))}
	s.image = append(s.image, value...)
	s.pad()
	return a
}

// placeScan appends the entries and their bytes, sub before value, to the image.
func (s *StateRules) placeScan(base uint32, op *StateOp, f *stateFind, more bool) stateAnswer {
	var a stateAnswer
	if op.Descending {
		a.flags |= stateDescending
	}
	if more {
		a.flags |= stateMore
	}
	entries := s.entries[f.from:f.to]
	if len(entries) == 0 {
		return a
	}
	a.ptr = base + uint32(len(s.image))
	a.count = uint32(len(entries))
	heads := a.ptr + a.count*HeaderEntrySize
	at := heads
	le := binary.LittleEndian
	for _, e := range entries {
		s.image = le.AppendUint32(s.image, at)
		s.image = le.AppendUint32(s.image, uint32(e.subLen))
		s.image = le.AppendUint32(s.image, at+uint32(e.subLen))
		s.image = le.AppendUint32(s.image, uint32(e.valueLen))
		at += uint32(e.subLen + e.valueLen)
	}
	a.length = at - a.ptr
	s.image = append(s.image, s.data[f.data:][:at-heads]...)
	s.pad()
	return a
}
