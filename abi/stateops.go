package abi

import (
	"encoding/binary"
	"fmt"
)

// MaxStateOps is how many operations one state_read or state_write may hand over.
const MaxStateOps = 65536

// OpCode says what a state operation does.
type OpCode uint8

// The operations of ABI 1: the first two belong to state_read, the others to state_write.
const (
	OpGet OpCode = 1 + iota
	OpScan
	OpPut
	OpDelete
	OpDeletePrefix
	OpTimerSet
	OpTimerDelete
)

// The domains of timers.
const (
	DomainEvent      = 0
	DomainProcessing = 1
)

// Flags of a state operation.
const (
	stateMore       = 1 // answer: the buffer had no room for all entries
	stateDescending = 2
)

// StateOp is one operation of a guest. Fields that an operation does not use are zero. Bytes are views of its memory.
type StateOp struct {
	Op         OpCode
	Domain     uint8  // timers
	Table      uint16 // all but timers
	Limit      uint32 // scan: most entries, 0 for no limit
	Descending bool   // scan
	Key        []byte
	Sub        []byte // scan, delete-prefix: the prefix of sub; timers: the value they carry
	// Value is what a put stores; for a scan the sub to start after and for a delete-prefix the sub to stop before, nil for none.
	Value []byte
	At    int64 // microseconds, whole milliseconds: a timer's time, a put's expiry or 0
}

// StateRules is what one lane of one stage may do with state. It keeps what the answering of calls needs, so it serves one
// lane at a time and is not copied once it has been used. The zero value is a stateless stage: any call is a trap.
type StateRules struct {
	Keyed  bool // the stage has keys, so it has state
	Tables int  // declared tables
	Lane   int
	Lanes  int
	// Pay, when set, is asked for the fuel of each piece of work: of an operation before it is done, of a value or an entry
	// when it is there and before it is copied. Its error ends the call and is returned as it is. What a call costs besides
	// is the caller's affair.
	Pay func(fuel uint64) error

	op       StateOp
	scanning scanning
	ops      []StateOp
	finds    []stateFind
	answers  []stateAnswer
	image    []byte
	data     []byte
	entries  []stateEntry
}

// StateEntryFuel is what an entry costs that a scan looks at, or a delete-prefix removes, besides its bytes: the same as
// the struct of an operation.
const StateEntryFuel = StateOpSize

func (s *StateRules) pay(fuel int) error {
	if s.Pay == nil {
		return nil
	}
	return s.Pay(uint64(fuel))
}

func stateTrap(format string, args ...any) *Violation {
	return &Violation{Trap: TrapState, Detail: fmt.Sprintf(format, args...)}
}

// ReadStateWrites reads the operations that a guest handed to state_write and calls visit for each, in order. The
// operation and its bytes are valid only during that call. What ABI 1 forbids is a *Violation with trap state; an error
// of visit ends the reading and is returned as it is. Operations before a violation have been visited by then.
func ReadStateWrites(mem []byte, ptr, count uint32, rules *StateRules, visit func(*StateOp) error) error {
	structs, err := rules.structs(mem, ptr, count)
	if err != nil {
		return err
	}
	for ; len(structs) > 0; structs = structs[StateOpSize:] {
		if err := rules.read(mem, (*[StateOpSize]byte)(structs), &rules.op); err != nil {
			return err
		}
		if rules.op.Op <= OpScan {
			return stateTrap("operation %d in state_write", rules.op.Op)
		}
		if err := visit(&rules.op); err != nil {
			return err
		}
	}
	return nil
}

// structs are the bytes of count operations at ptr.
func (s *StateRules) structs(mem []byte, ptr, count uint32) ([]byte, error) {
	if !s.Keyed {
		return nil, stateTrap("the stage is not keyed and has no state")
	}
	if count == 0 {
		return nil, nil
	}
	if count > MaxStateOps || ptr%8 != 0 {
		return nil, stateTrap("%d operations at address %d", count, ptr)
	}
	structs := view(mem, ptr, count*StateOpSize)
	if structs == nil {
		return nil, stateTrap("%d operations at address %d, memory has %d bytes", count, ptr, len(mem))
	}
	return structs, nil
}

// read takes one operation apart.
func (s *StateRules) read(mem []byte, b *[StateOpSize]byte, op *StateOp) error {
	le := binary.LittleEndian
	head, key, sub := le.Uint64(b[0:]), le.Uint64(b[8:]), le.Uint64(b[16:])
	value, at, flags := le.Uint64(b[24:]), int64(le.Uint64(b[32:])), le.Uint32(b[52:])
	*op = StateOp{Op: OpCode(head)}
	if op.Op < OpGet || op.Op > OpTimerDelete || flags&^(stateMore|stateDescending) != 0 {
		return stateTrap("operation %d with flags %#x", op.Op, flags)
	}
	domain, table := uint8(head>>8), uint16(head>>16)
	if op.Op >= OpTimerSet {
		if domain > DomainProcessing || table != 0 {
			return stateTrap("timer of domain %d in table %d", domain, table)
		}
		op.Domain = domain
	} else {
		if int(table) >= s.Tables {
			return stateTrap("table %d of %d", table, s.Tables)
		}
		op.Table = table
	}
	if err := op.readKey(mem, key, sub); err != nil {
		return err
	}
	if err := op.readValue(mem, value); err != nil {
		return err
	}
	if err := s.pay(StateOpSize + len(op.Key) + len(op.Sub) + len(op.Value)); err != nil {
		return err
	}
	if lane := LaneOfGroup(KeyGroup(op.Key), s.Lanes); lane != s.Lane {
		return stateTrap("the key belongs to lane %d, not %d", lane, s.Lane)
	}
	return op.readRest(at, uint32(head>>32), flags)
}

func (op *StateOp) readKey(mem []byte, key, sub uint64) error {
	keyLen, subLen := key>>32, sub>>32
	if keyLen+subLen > MaxStateKey {
		return stateTrap("key of %d and sub of %d bytes, at most %d together", keyLen, subLen, MaxStateKey)
	}
	var err error
	if op.Key, err = stateBytes(mem, key); err != nil {
		return err
	}
	op.Sub, err = stateBytes(mem, sub)
	return err
}

// stateBytes is nullable with the trap of state.
func stateBytes(mem []byte, word uint64) ([]byte, error) {
	b, err := nullable(mem, word)
	if err != nil {
		return nil, stateTrap("%d bytes at address %d, memory has %d", int32(word>>32), uint32(word), len(mem))
	}
	return b, nil
}

// readValue reads what a put stores, a scan starts after and a delete-prefix stops before.
func (op *StateOp) readValue(mem []byte, value uint64) (err error) {
	if op.Op != OpScan && op.Op != OpPut && op.Op != OpDeletePrefix {
		return nil
	}
	if op.Value, err = stateBytes(mem, value); err != nil {
		return err
	}
	if op.Op == OpPut && op.Value == nil {
		return stateTrap("put without a value")
	}
	if len(op.Value) > MaxStateValue {
		return stateTrap("value of %d bytes, at most %d", len(op.Value), MaxStateValue)
	}
	return nil
}

// readRest reads what only some operations have.
func (op *StateOp) readRest(at int64, limit, flags uint32) error {
	if op.Op == OpScan {
		op.Limit, op.Descending = limit, flags&stateDescending != 0
	}
	if op.Op == OpPut || op.Op >= OpTimerSet {
		if at < MinTime || at >= MaxTime+1000 {
			return stateTrap("time %d is outside the years 1 to 9999", at)
		}
		op.At = floorMillis(at)
	}
	return nil
}
