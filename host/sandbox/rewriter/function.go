package rewriter

import (
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// function rewrites one function after the other.
type function struct {
	p        *plan
	regions  regions
	parking  parking
	nans     nans
	selects  selects
	compares compares
	cuts     []cut
	w        writer // the body that is being written
	offsets  []Offset

	calls  bool        // it calls functions, so it takes part in the count of depth
	floats bool        // it has results that may have to be made canonical
	made   uint8       // what its instructions mean for selects
	split  []binary.Op // instructions that are written as several
	// touch is how often, by a guess, the global with the fuel must be up to date for a call.
	touch  int
	depth  int64 // what a call of it costs in depth
	global bool  // the fuel is kept in its global all the time, not in a local
	block  bool  // the body stands in a block of its own, so that all ways out lead past the epilogue
	// locals that are added
	fuel, scratch uint32
	temp          [laneF64x2 + 1]uint32
	condition     uint32 // of a select, and the bits of its second operand
	second32      uint32
	second64      uint32
	careful       careful
	added         []binary.ValueType
	first         uint32 // index of the first that is added
}

// code writes the content of the code section.
func (p *plan) code(out *Output) ([]byte, error) {
	if len(p.m.Bodies) == 0 {
		return nil, nil
	}
	f := &function{p: p}
	var code writer
	for i := range p.m.Bodies {
		t := &p.m.Types[p.m.Funcs[i]]
		if p.o.Plain {
			f.plain(&p.m.Bodies[i])
		} else {
			f.rewrite(t, &p.m.Bodies[i])
		}
		code.u32(uint32(len(f.w.b)))
		for _, o := range f.offsets {
			out.Offsets = append(out.Offsets, Offset{New: o.New + uint32(len(code.b)), Old: o.Old})
		}
		code.b = append(code.b, f.w.b...)
		if len(code.b) > maxCode {
			return nil, fmt.Errorf("%w: over %d bytes", ErrTooLarge, maxCode)
		}
	}
	for _, h := range p.helpers {
		body := p.body(h)
		code.u32(uint32(len(body)))
		code.b = append(code.b, body...)
	}
	var count writer
	count.u32(uint32(len(p.m.Bodies) + len(p.helpers)))
	for i := range out.Offsets {
		out.Offsets[i].New += uint32(len(count.b))
	}
	return append(count.b, code.b...), nil
}

// plain only writes the code anew.
func (f *function) plain(b *binary.Body) {
	f.w.b, f.offsets = f.w.b[:0], f.offsets[:0]
	f.declare(b)
	for c := b.Read(); c.Next(); {
		f.note(&c.In)
		f.w.instruction(&c.In, f.p.function)
	}
}

// declare writes the locals: those of the function, and those that are added.
func (f *function) declare(b *binary.Body) {
	f.w.u32(uint32(len(b.Locals) + len(f.added)))
	for _, l := range b.Locals {
		f.w.u32(l.Count)
		f.w.byte(byte(l.Type))
	}
	for _, t := range f.added {
		f.w.byte(1, byte(t))
	}
}

// note remembers where an instruction came from.
func (f *function) note(in *binary.Instruction) {
	if f.p.o.Offsets {
		f.offsets = append(f.offsets, Offset{New: uint32(len(f.w.b)), Old: uint32(in.Start - f.p.m.CodeStart)})
	}
}

func (f *function) rewrite(t *binary.FuncType, b *binary.Body) {
	f.w.b, f.offsets, f.added = f.w.b[:0], f.offsets[:0], f.added[:0]
	f.parking.begin(t, b)
	f.look(b)
	f.regions.find(f.cuts)
	f.nans.points = f.nans.points[:0]
	if f.floats {
		f.nans.begin(f.p.m, *t, b)
		for c := b.Read(); c.Next(); {
			f.nans.step(&c.In)
		}
		f.nans.finish()
	}
	f.selects.list = f.selects.list[:0]
	if f.made&isSelect != 0 && (f.made&makesFloat != 0 || holdsFloats(t, b)) {
		f.selects.find(f.p.m, t, b)
	}
	f.choose(t, b)
	f.declare(b)
	f.prologue()
	if f.block {
		f.w.op(binary.OpBlock)
		f.w.signed(f.blockType(t))
	}
	f.body(b)
	if f.block {
		f.epilogue()
		f.w.op(binary.OpEnd)
	}
}

// weight is how often an instruction in so many loops runs, by a guess.
func weight(loops int) int { return 1 << (3 * min(loops, 8)) }

// look finds the cuts of a function, and what else decides how it is rewritten.
func (f *function) look(b *binary.Body) {
	f.cuts, f.calls, f.floats, f.touch, f.made = f.cuts[:0], false, false, 0, f.p.made
	f.split = f.split[:0]
	start, sum, n := int32(0), int32(0), int32(0)
	var open []int // the open blocks: of a loop its position in parking.loops, else -1
	loops := 0
	k := &f.parking
	for c := b.Read(); c.Next(); n++ {
		in := &c.In
		sum += int32(cost(in.Op))
		if in.Op > binary.OpReturn {
			f.lookAt(in, loops)
			continue
		}
		switch in.Op {
		case binary.OpNop:
			continue
		case binary.OpBlock, binary.OpIf, binary.OpLoop:
			open = append(open, -1)
			if in.Op == binary.OpLoop {
				loops++
				params, _ := arity(f.p.m, in.Block)
				open[len(open)-1] = len(k.loops)
				k.loops = append(k.loops, loop{at: n + 1, from: int32(len(k.accesses)), params: params > 0})
			}
		case binary.OpEnd:
			if len(open) > 0 {
				if at := open[len(open)-1]; at >= 0 {
					loops--
					k.loops[at].to = int32(len(k.accesses))
					k.tightest = min(k.tightest, n+1-k.loops[at].at)
				}
				open = open[:len(open)-1]
			}
		}
		c := cut{op: in.Op, label: in.X, start: start, cost: sum}
		if in.Op == binary.OpBrTable {
			c.targets = append(c.targets, in.Targets...)
		}
		f.cuts = append(f.cuts, c)
		start, sum = n+1, 0
	}
	slots := b.Slots
	if !b.Vectors {
		slots /= 2
	}
	f.depth = int64(1 + slots/frameShare)
}

func (f *function) lookAt(in *binary.Instruction, loops int) {
	op := in.Op
	f.made |= made[op]
	if made[op]&isSplit != 0 && !slices.Contains(f.split, op) {
		f.split = append(f.split, op)
	}
	if op >= binary.OpLocalGet && op <= binary.OpLocalTee {
		f.parking.access(in)
		return
	}
	if op == binary.OpCall || op == binary.OpCallIndirect {
		f.calls = true
		f.touch += weight(loops)
		return
	}
	if op < binary.OpMemoryGrow {
		return
	}
	if h, _, ok := helperOf(op); ok && h.charges() {
		f.touch += weight(loops)
	}
	f.floats = f.floats || arithmetic(op) != noLane
}

// choose decides how the function is rewritten, and which locals that takes.
func (f *function) choose(t *binary.FuncType, b *binary.Body) {
	f.first = uint32(len(t.Params))
	for _, l := range b.Locals {
		f.first += l.Count
	}
	charges := 0
	for _, h := range f.regions.heads {
		if h.cost > 0 {
			charges += weight(int(h.loops))
		}
	}
	f.global = charges <= 1+f.touch || f.parking.tightest > tightLoop
	counts := f.calls || f.depth > 1
	f.block = !f.global || counts
	if !counts {
		f.depth = 0
	}
	f.fuel = f.local(binary.I64)
	if counts {
		f.scratch = f.local(binary.I64)
	}
	f.careful = careful{}
	for _, op := range f.split {
		f.needCareful(op)
	}
	f.chooseSelects()
	f.temp = [laneF64x2 + 1]uint32{}
	for _, pt := range f.nans.points {
		if f.temp[pt.lane] > 0 {
			continue
		}
		switch pt.lane {
		case laneF32:
			f.temp[pt.lane] = f.local(binary.F32)
		case laneF64:
			f.temp[pt.lane] = f.local(binary.F64)
		default:
			f.temp[laneF32x4] = f.local(binary.V128)
			f.temp[laneF64x2] = f.temp[laneF32x4]
		}
	}
}

// local adds a local.
func (f *function) local(t binary.ValueType) uint32 {
	f.added = append(f.added, t)
	return f.first + uint32(len(f.added)-1)
}

// blockType is the type of the block around the body.
func (f *function) blockType(t *binary.FuncType) int64 {
	switch len(t.Results) {
	case 0:
		return binary.BlockEmpty
	case 1:
		return int64(t.Results[0]) - 128
	}
	return int64(f.p.kindOf(binary.FuncType{Results: t.Results}))
}

// body writes the instructions, with what is charged for them and what makes numbers canonical.
func (f *function) body(b *binary.Body) {
	heads, points, selects := f.regions.heads, f.nans.points, f.selects.list
	ands := f.made&isAnd != 0
	f.compares.begin(f.first)
	nesting, n := uint32(0), int32(0)
	for c := b.Read(); c.Next(); n++ {
		in := &c.In
		for len(heads) > 0 && heads[0].at == n {
			f.charge(&heads[0])
			heads = heads[1:]
		}
		f.note(in)
		switch in.Op {
		case binary.OpBlock, binary.OpLoop, binary.OpIf:
			nesting++
			f.w.instruction(in, nil)
		case binary.OpEnd:
			nesting--
			f.w.op(binary.OpEnd)
		case binary.OpReturn:
			if f.block {
				f.w.opX(binary.OpBr, nesting)
			} else {
				f.w.op(binary.OpReturn)
			}
		case binary.OpCall, binary.OpCallIndirect:
			f.flush()
			f.w.instruction(in, f.p.function)
			f.reload()
		case binary.OpSelect, binary.OpSelectTyped:
			if len(selects) > 0 && selects[0].at == n {
				f.selection(selects[0].kind)
				selects = selects[1:]
			} else {
				f.w.instruction(in, nil)
			}
		default:
			if ands && f.compares.mistaken(in.Op) {
				f.neutral(in.Op)
			}
			f.other(in)
		}
		if ands {
			f.compares.step(in)
		}
		if len(points) > 0 && points[0].at == n {
			f.canonical(points[0].lane)
			points = points[1:]
		}
	}
}

// other writes an instruction that no call is written around, or that a helper stands for.
func (f *function) other(in *binary.Instruction) {
	if op := in.Op; (op == binary.OpMemoryInit || op == binary.OpDataDrop) && f.p.m.Data[in.X].Mode == binary.Active {
		in.X = f.p.spentData()
	}
	if in.Op == binary.OpRefFunc {
		f.w.i32(f.p.slot(in.X))
		f.w.opX(binary.OpTableGet, uint32(f.p.m.Count(binary.KindTable)))
		return
	}
	h, before, ok := helperOf(in.Op)
	if !ok {
		if f.carefully(in) {
			return
		}
		f.w.instruction(in, f.p.function)
		return
	}
	if h.charges() {
		f.flush()
	}
	f.w.opX(binary.OpCall, f.p.help(h))
	if h.charges() {
		f.reload()
	}
	if before {
		f.w.instruction(in, f.p.function)
	}
}

// flush brings the global with the fuel up to date, for what is called.
func (f *function) flush() {
	if !f.global {
		f.w.opX(binary.OpLocalGet, f.fuel)
		f.w.opX(binary.OpGlobalSet, f.p.fuel)
	}
}

func (f *function) reload() {
	if !f.global {
		f.w.opX(binary.OpGlobalGet, f.p.fuel)
		f.w.opX(binary.OpLocalSet, f.fuel)
	}
}

// prologue charges for the function's first region and for its depth, and stops it when either is used up. It is a loop
// because an else that goes back is laid out of the way.
func (f *function) prologue() {
	first := f.regions.heads[0]
	f.regions.heads = f.regions.heads[1:]
	if first.cost == 0 && f.depth == 0 && len(f.regions.heads) == 0 {
		return // an empty function
	}
	f.w.op(binary.OpLoop)
	f.w.byte(blockEmpty)
	if f.depth > 0 {
		f.w.opX(binary.OpGlobalGet, f.p.depth)
		f.w.i64(f.depth)
		f.w.op(opI64Sub)
		f.w.opX(binary.OpLocalTee, f.scratch)
		f.w.opX(binary.OpGlobalSet, f.p.depth)
	}
	f.w.opX(binary.OpGlobalGet, f.p.fuel)
	f.w.i64(int64(first.cost))
	f.w.op(opI64Sub)
	f.w.opX(binary.OpLocalTee, f.fuel)
	if f.global {
		f.w.opX(binary.OpGlobalSet, f.p.fuel)
		f.w.opX(binary.OpLocalGet, f.fuel)
	}
	if f.depth > 0 {
		f.w.opX(binary.OpLocalGet, f.scratch)
		f.w.op(opI64Or)
	}
	f.otherwise()
	if f.depth > 0 {
		f.w.opX(binary.OpLocalGet, f.scratch)
		f.w.i64(f.depth)
		f.w.op(opI64Add)
		f.w.opX(binary.OpGlobalSet, f.p.depth)
	}
	f.yield(f.depth > 0, first.cost)
	f.w.opX(binary.OpGlobalSet, f.p.fuel)
	f.w.opX(binary.OpBr, 1)
	f.w.op(binary.OpEnd)
	f.w.op(binary.OpEnd)
}

// otherwise begins what is done when the number on the stack is below zero.
func (f *function) otherwise() {
	f.w.i64(0)
	f.w.op(opI64GeS)
	f.w.op(binary.OpIf)
	f.w.byte(blockEmpty)
	f.w.op(binary.OpElse)
}

// yield leaves the fuel that the host gives, and what was charged and will be charged again.
func (f *function) yield(depth bool, again int32) {
	f.w.opX(binary.OpLocalGet, f.fuel)
	if depth {
		f.w.opX(binary.OpLocalGet, f.scratch)
	} else {
		f.w.i64(0)
	}
	f.w.opX(binary.OpCall, f.p.yield)
	if again > 0 {
		f.w.i64(int64(again))
		f.w.op(opI64Add)
	}
}

// take leaves the fuel less a charge on the stack.
func (f *function) take(cost int32) {
	if f.global {
		f.w.opX(binary.OpGlobalGet, f.p.fuel)
	} else {
		f.w.opX(binary.OpLocalGet, f.fuel)
	}
	f.w.i64(int64(cost))
	f.w.op(opI64Sub)
}

// charge writes what a region costs.
func (f *function) charge(h *head) {
	if h.cost == 0 {
		return
	}
	f.take(h.cost)
	if h.loop {
		f.turn(h)
		return
	}
	f.setFuel()
}

// turn ends the charge for a turn of a loop with a check.
func (f *function) turn(h *head) {
	f.w.opX(binary.OpLocalTee, f.fuel)
	if f.global {
		f.w.opX(binary.OpGlobalSet, f.p.fuel)
		f.w.opX(binary.OpLocalGet, f.fuel)
	}
	f.otherwise()
	locals, again := f.parking.at(h.at)
	if !again {
		f.yield(false, 0)
		f.setFuel()
		f.w.op(binary.OpEnd)
		return
	}
	f.park(locals, false)
	f.yield(false, h.cost)
	f.setFuel()
	f.park(locals, true)
	f.w.opX(binary.OpBr, 1)
	f.w.op(binary.OpEnd)
}

// setFuel sets the fuel to the number on the stack, wherever it is kept.
func (f *function) setFuel() {
	if f.global {
		f.w.opX(binary.OpGlobalSet, f.p.fuel)
		return
	}
	f.w.opX(binary.OpLocalSet, f.fuel)
}

// epilogue is where all ways out of the function lead.
func (f *function) epilogue() {
	f.flush()
	if f.depth > 0 {
		f.w.opX(binary.OpGlobalGet, f.p.depth)
		f.w.i64(f.depth)
		f.w.op(opI64Add)
		f.w.opX(binary.OpGlobalSet, f.p.depth)
	}
}

// Positive canonical NaNs.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// canonical replaces a NaN on the stack. The constant is the operand that the compiler for amd64 moves last: see selects.go
// and careful.go for what happens to one that has been somewhere before.
func (f *function) canonical(l lane) {
	t := f.temp[l]
	f.w.opX(binary.OpLocalSet, t)
	switch l {
	case laneF32:
		f.canonicalScalar(t, &binary.Instruction{Op: binary.OpF32Const, Value: nan32}, 0x5c)
	case laneF64:
		f.canonicalScalar(t, &binary.Instruction{Op: binary.OpF64Const, Value: nan64}, 0x62)
	case laneF32x4:
		f.canonicalVector(t, nan32|nan32<<32, binary.Vector+65)
	default:
		f.canonicalVector(t, nan64, binary.Vector+71)
	}
}

func (f *function) canonicalScalar(t uint32, nan *binary.Instruction, differs binary.Op) {
	f.w.instruction(nan, nil)
	f.w.opX(binary.OpLocalGet, t)
	f.w.opX(binary.OpLocalGet, t)
	f.w.opX(binary.OpLocalGet, t)
	f.w.op(differs)
	f.w.op(binary.OpSelect)
}

func (f *function) canonicalVector(t uint32, nan uint64, equal binary.Op) {
	f.w.opX(binary.OpLocalGet, t)
	f.w.instruction(&binary.Instruction{Op: binary.OpV128Const, Value: nan, High: nan}, nil)
	f.w.opX(binary.OpLocalGet, t)
	f.w.opX(binary.OpLocalGet, t)
	f.w.op(equal)
	f.w.op(opBitSelect)
}
