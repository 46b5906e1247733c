package sandbox

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// Passer is what a State may be besides: one that counts what its scans pass over, so that the guest pays for it. It must
// count only what follows from the batch, its own deletions of this batch, and not how far a store has tidied up: a guest
// that runs out of fuel must do so in every replay.
type Passer interface {
	// Passed is how many entries all scans so far have passed over because the lane itself has removed them.
	Passed() uint64
}

// laneState is what an instance needs for calls of state_read and state_write.
type laneState struct {
	State
	reader abi.StateReader // State, or what has it pay for what scans pass over
	passer Passer          // nil when State is none
	rules  abi.StateRules
	write  func(*abi.StateOp) error
	left   int64 // fuel of the guest's slice, while a call of state lasts
}

// enterState connects the instance with its lane's state.
func (in *instance) enterState(l *Lane) error {
	if l.State == nil {
		return nil
	}
	if l.Index < 0 || l.Index >= l.Lanes || l.Lanes > abi.KeyGroups {
		return fmt.Errorf("lane %d of %d cannot have state", l.Index, l.Lanes)
	}
	s := &in.state
	s.State, s.reader = l.State, l.State
	if passer, ok := l.State.(Passer); ok {
		s.passer, s.reader = passer, paidReader{in}
	}
	s.rules = abi.StateRules{Keyed: true, Tables: len(in.program.module.info.Manifest.Tables), Lane: l.Index, Lanes: l.Lanes, Pay: in.charge}
	s.write = in.writeState
	return nil
}

// hostStateRead is wasmill_1.state_read(ops, count, buf, cap, need) -> i32.
func hostStateRead(in *instance, stack []uint64) {
	ptr, count := uint32(stack[0]), uint32(stack[1])
	buf := abi.StateBuffer{Ptr: uint32(stack[2]), Cap: uint32(stack[3]), Need: uint32(stack[4])}
	in.openState(importRead)
	result, err := abi.AnswerState(in.memory(), ptr, count, buf, &in.state.rules, in.state.reader)
	in.closeState(importRead, err)
	stack[0] = uint64(uint32(result))
}

// hostStateWrite is wasmill_1.state_write(ops, count).
func hostStateWrite(in *instance, stack []uint64) {
	in.openState(importWrite)
	err := abi.ReadStateWrites(in.memory(), uint32(stack[0]), uint32(stack[1]), &in.state.rules, in.state.write)
	in.closeState(importWrite, err)
}

// openState begins a call of state. Fuel is counted in the instance until closeState: the guest's count is dear to reach.
func (in *instance) openState(name string) {
	if !in.inBatch {
		in.stop(&abi.Violation{Trap: abi.TrapState, Detail: name + " is called outside of wasmill_batch"})
	}
	in.state.left = int64(in.tank.fuel.Get())
}

func (in *instance) closeState(name string, err error) {
	in.tank.fuel.Set(uint64(in.state.left))
	if err != nil {
		in.stop(fmt.Errorf("%s: %w", name, err))
	}
}

// charge is pay for a call of state: it returns why the guest must end, so that a store can end what it has begun.
func (in *instance) charge(n uint64) error {
	s := &in.state
	s.left -= int64(n)
	if s.left >= 0 {
		return nil
	}
	var err error
	s.left, err = in.refill(s.left)
	return err
}

// writeState carries out one operation of state_write, of which all but what a delete-prefix removes is paid.
func (in *instance) writeState(op *abi.StateOp) error {
	entries, err := in.state.Write(op)
	if err != nil || entries == 0 {
		return err
	}
	return in.charge(uint64(entries) * abi.StateEntryFuel)
}

// paidReader lets the guest pay for what scans pass over.
type paidReader struct{ in *instance }

func (r paidReader) Get(op *abi.StateOp) ([]byte, bool, error) { return r.in.state.Get(op) }

func (r paidReader) Scan(op *abi.StateOp, visit func(sub, value []byte) bool) error {
	s := &r.in.state
	before := s.passer.Passed()
	if err := s.Scan(op, visit); err != nil {
		return err
	}
	return r.in.charge((s.passer.Passed() - before) * abi.StateEntryFuel)
}
