package rewriter

import (
	"math"
	"sort"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// A value that changes with each turn of a loop and is alive across a call anywhere in it is stored to the stack at every
// turn, by the compiler this was written for. The call of yield at a loop's head would so make each turn dearer. Therefore
// such locals are parked in globals around that call, and the loop's head is entered anew. Which locals they are is a
// guess that changes speed, not meaning.

// tightLoop is how many instructions a loop may have for the fuel to be kept in a local for its sake. In longer ones, as
// in functions of Go, which are one loop around all their code, registers are better used for something else.
const tightLoop = 64

// maxParked is how many locals are parked at most.
const maxParked = 16

// localAccess is one instruction that reads or writes a local.
type localAccess struct {
	local uint32
	set   bool
}

// loop is what is known of a loop before its code is written.
type loop struct {
	at       int32 // number of its first instruction
	from, to int32 // its accesses, in function.accesses
	params   bool
}

// localGroup is a run of locals of one type.
type localGroup struct {
	end  uint32
	kind binary.ValueType
}

// parking finds which locals to park.
type parking struct {
	loops    []loop
	accesses []localAccess
	groups   []localGroup
	budget   int   // of accesses to look at, so that the work stays linear
	tightest int32 // instructions of the shortest loop
	stamp    []uint32
	turn     uint32
	parked   []uint32
}

func (k *parking) begin(t *binary.FuncType, b *binary.Body) {
	k.loops, k.accesses, k.groups = k.loops[:0], k.accesses[:0], k.groups[:0]
	k.budget, k.tightest = 8*b.Instructions, math.MaxInt32
	end := uint32(0)
	for _, p := range t.Params {
		end++
		k.groups = append(k.groups, localGroup{end, p})
	}
	for _, l := range b.Locals {
		end += l.Count
		k.groups = append(k.groups, localGroup{end, l.Type})
	}
	if int(end) > len(k.stamp) {
		k.stamp, k.turn = make([]uint32, end), 0
	}
}

// access notes that a local is read or written.
func (k *parking) access(in *binary.Instruction) {
	k.accesses = append(k.accesses, localAccess{in.X, in.Op != binary.OpLocalGet})
}

func (k *parking) kind(local uint32) binary.ValueType {
	return k.groups[sort.Search(len(k.groups), func(i int) bool { return k.groups[i].end > local })].kind
}

// at returns the locals to park at the head of the loop whose first instruction has that number: those that are read in it
// before they are written, none when they are too many. False means that the loop cannot be entered anew.
func (k *parking) at(n int32) ([]uint32, bool) {
	for len(k.loops) > 0 && k.loops[0].at < n {
		k.loops = k.loops[1:]
	}
	if len(k.loops) == 0 || k.loops[0].at != n || k.loops[0].params {
		return nil, false
	}
	l := k.loops[0]
	accesses := k.accesses[l.from:l.to]
	if k.budget -= len(accesses); k.budget < 0 {
		return nil, true
	}
	k.turn += 3 // stamps of this loop: turn is read first, +1 written first, +2 read first and then written
	k.parked = k.parked[:0]
	for _, a := range accesses {
		s := &k.stamp[a.local]
		switch {
		case *s < k.turn && a.set:
			*s = k.turn + 1
		case *s < k.turn:
			*s = k.turn
		case *s == k.turn && a.set:
			*s = k.turn + 2
			if !k.kind(a.local).Numeric() {
				continue
			}
			if len(k.parked) == maxParked {
				return nil, true
			}
			k.parked = append(k.parked, a.local)
		}
	}
	return k.parked, true
}

// park moves locals to the globals for it, or back.
func (f *function) park(locals []uint32, back bool) {
	f.p.parked = max(f.p.parked, uint32(len(locals)))
	for i, local := range locals {
		slot, kind := f.p.depth+1+uint32(i), f.parking.kind(local)
		if !back {
			f.w.opX(binary.OpLocalGet, local)
			f.w.ops(toLong[kind]...)
			f.w.opX(binary.OpGlobalSet, slot)
			continue
		}
		f.w.opX(binary.OpGlobalGet, slot)
		f.w.ops(fromLong[kind]...)
		f.w.opX(binary.OpLocalSet, local)
	}
}

// toLong and fromLong turn the bits of a number into those of an i64 and back.
var (
	toLong = map[binary.ValueType][]binary.Op{
		binary.I32: {opI64ExtendU}, binary.F32: {0xbc, opI64ExtendU}, binary.F64: {0xbd},
	}
	fromLong = map[binary.ValueType][]binary.Op{
		binary.I32: {0xa7}, binary.F32: {0xa7, 0xbe}, binary.F64: {0xbf},
	}
)
