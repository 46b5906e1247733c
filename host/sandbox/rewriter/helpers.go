package rewriter

import "github.com/wasmill/wasmill/host/sandbox/binary"

// helper is a function that is added to a module, behind its own.
type helper uint8

const (
	helpRemS32 helper = iota
	helpRemU32
	helpRemS64
	helpRemU64
	helpConvertU32
	helpConvertU64
	helpPopCount
	helpMul64x2
	helpMinF32x4
	helpMaxF32x4
	helpMinF64x2
	helpMaxF64x2
	helpFill // and those that follow charge fuel
	helpCopy
	helpGrow
	helpBytes // charges for memory.init
	helpItems // charges for instructions on tables
	numHelpers
)

// alone are the instructions that are put in functions of their own, and what they take and leave.
var alone = [helpFill]struct {
	op     binary.Op
	params []binary.ValueType
	result binary.ValueType
}{
	helpRemS32:     {binary.OpI32RemS, []binary.ValueType{binary.I32, binary.I32}, binary.I32},
	helpRemU32:     {binary.OpI32RemU, []binary.ValueType{binary.I32, binary.I32}, binary.I32},
	helpRemS64:     {binary.OpI64RemS, []binary.ValueType{binary.I64, binary.I64}, binary.I64},
	helpRemU64:     {binary.OpI64RemU, []binary.ValueType{binary.I64, binary.I64}, binary.I64},
	helpConvertU32: {opConvertU32, []binary.ValueType{binary.I64}, binary.F32},
	helpConvertU64: {opConvertU64, []binary.ValueType{binary.I64}, binary.F64},
	helpPopCount:   {opPopCount, []binary.ValueType{binary.V128}, binary.V128},
	helpMul64x2:    {opMul64x2, []binary.ValueType{binary.V128, binary.V128}, binary.V128},
	helpMinF32x4:   {opMinF32x4, []binary.ValueType{binary.V128, binary.V128}, binary.V128},
	helpMaxF32x4:   {opMaxF32x4, []binary.ValueType{binary.V128, binary.V128}, binary.V128},
	helpMinF64x2:   {opMinF64x2, []binary.ValueType{binary.V128, binary.V128}, binary.V128},
	helpMaxF64x2:   {opMaxF64x2, []binary.ValueType{binary.V128, binary.V128}, binary.V128},
}

// aloneOf is the helper of each of them plus one, 0 for other instructions.
var aloneOf = func() *[len(results)]helper {
	t := new([len(results)]helper)
	for h := range alone {
		t[alone[h].op] = helper(h + 1)
	}
	return t
}()

// helperOf is the helper that stands for an instruction, or is called before it.
func helperOf(op binary.Op) (h helper, before, ok bool) {
	if h := aloneOf[op]; h > 0 {
		return h - 1, false, true
	}
	switch op {
	case binary.OpMemoryFill:
		return helpFill, false, true
	case binary.OpMemoryCopy:
		return helpCopy, false, true
	case binary.OpMemoryGrow:
		return helpGrow, false, true
	case binary.OpMemoryInit:
		return helpBytes, true, true
	case binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill, binary.OpTableGrow:
		return helpItems, true, true
	}
	return 0, false, false
}

// charges says whether a helper uses fuel: then the fuel must be in the global when it is called.
func (h helper) charges() bool { return h >= helpFill }

// kind is a helper's type.
func (h helper) kind() binary.FuncType {
	if h < helpFill {
		return binary.FuncType{Params: alone[h].params, Results: []binary.ValueType{alone[h].result}}
	}
	i32 := binary.I32
	switch h {
	case helpFill, helpCopy:
		return binary.FuncType{Params: []binary.ValueType{i32, i32, i32}}
	default:
		return binary.FuncType{Params: []binary.ValueType{i32}, Results: []binary.ValueType{i32}}
	}
}

// body writes a helper's locals and code.
func (p *plan) body(h helper) []byte {
	var w writer
	if h < helpFill {
		w.u32(0)
		for i := range alone[h].params {
			w.opX(binary.OpLocalGet, uint32(i))
		}
		w.op(alone[h].op)
	}
	switch h {
	case helpFill:
		p.fill(&w)
	case helpCopy:
		p.copy(&w)
	case helpGrow:
		p.grow(&w)
	case helpBytes:
		w.u32(0)
		p.chargeFor(&w, 0, maxBytes, costBytesShift)
		w.opX(binary.OpLocalGet, 0)
	case helpItems:
		w.u32(0)
		p.chargeFor(&w, 0, maxItems, 0)
		w.opX(binary.OpLocalGet, 0)
	}
	w.op(binary.OpEnd)
	return w.b
}

// The plain instructions that helpers are made of.
const (
	opI32Eqz     binary.Op = 0x45
	opI32LtU     binary.Op = 0x49
	opI32GtU     binary.Op = 0x4b
	opI32LeU     binary.Op = 0x4d
	opI64LtS     binary.Op = 0x53
	opI64GeS     binary.Op = 0x59
	opI64GtU     binary.Op = 0x56
	opI32Add     binary.Op = 0x6a
	opI32Sub     binary.Op = 0x6b
	opI32Ne      binary.Op = 0x47
	opI64Add     binary.Op = 0x7c
	opI64Sub     binary.Op = 0x7d
	opI64Mul     binary.Op = 0x7e
	opI64Or      binary.Op = 0x84
	opI64Shl     binary.Op = 0x86
	opI64ShrU    binary.Op = 0x88
	opI64ExtendU binary.Op = 0xad
	blockEmpty             = 0x40
)

// chargeFor takes fuel for a length in a local, at most so many of it, divided by a power of two, and asks for more fuel
// when there is none left.
func (p *plan) chargeFor(w *writer, length uint32, most int32, shift int64) {
	w.opX(binary.OpGlobalGet, p.fuel)
	w.opX(binary.OpLocalGet, length)
	w.i32(most)
	w.opX(binary.OpLocalGet, length)
	w.i32(most)
	w.op(opI32LtU)
	w.op(binary.OpSelect)
	w.op(opI64ExtendU)
	if shift > 0 {
		w.i64(shift)
		w.op(opI64ShrU)
	}
	w.op(opI64Sub)
	w.opX(binary.OpGlobalSet, p.fuel)
	p.checkGlobal(w)
}

// checkGlobal asks for more fuel when the global is below zero.
func (p *plan) checkGlobal(w *writer) {
	w.opX(binary.OpGlobalGet, p.fuel)
	w.i64(0)
	w.op(opI64LtS)
	w.op(binary.OpIf)
	w.byte(blockEmpty)
	w.opX(binary.OpGlobalGet, p.fuel)
	w.i64(0)
	w.opX(binary.OpCall, p.yield)
	w.opX(binary.OpGlobalSet, p.fuel)
	w.op(binary.OpEnd)
}

// outside leaves 1 when a stretch of memory is not all there.
func outside(w *writer, start, length uint32) {
	w.opX(binary.OpLocalGet, start)
	w.op(opI64ExtendU)
	w.opX(binary.OpLocalGet, length)
	w.op(opI64ExtendU)
	w.op(opI64Add)
	w.op(binary.OpMemorySize)
	w.byte(0)
	w.op(opI64ExtendU)
	w.i64(16)
	w.op(opI64Shl)
	w.op(opI64GtU)
}

// chunk sets the local to the lesser of a length and bulkChunk.
func chunk(w *writer, length, local uint32) {
	w.opX(binary.OpLocalGet, length)
	w.i32(bulkChunk)
	w.opX(binary.OpLocalGet, length)
	w.i32(bulkChunk)
	w.op(opI32LtU)
	w.op(binary.OpSelect)
	w.opX(binary.OpLocalSet, local)
}

// add adds a local to another one; sub takes it away.
func add(w *writer, op binary.Op, to, from uint32) {
	w.opX(binary.OpLocalGet, to)
	w.opX(binary.OpLocalGet, from)
	w.op(op)
	w.opX(binary.OpLocalSet, to)
}

// fill is memory.fill in chunks, so that a long one is interrupted by yields. One that is out of bounds traps before it
// writes anything, as the instruction does.
func (p *plan) fill(w *writer) {
	const at, value, length, part = 0, 1, 2, 3
	w.byte(1, 1, byte(binary.I32))
	whole := func() {
		for i := range uint32(3) {
			w.opX(binary.OpLocalGet, i)
		}
		w.op(binary.OpMemoryFill)
		w.byte(0)
	}
	outside(w, at, length)
	w.op(binary.OpIf)
	w.byte(blockEmpty)
	whole()
	w.op(binary.OpEnd)
	w.op(binary.OpLoop)
	w.byte(blockEmpty)
	chunk(w, length, part)
	p.chargeFor(w, part, maxBytes, costBytesShift)
	w.opX(binary.OpLocalGet, at)
	w.opX(binary.OpLocalGet, value)
	w.opX(binary.OpLocalGet, part)
	w.op(binary.OpMemoryFill)
	w.byte(0)
	add(w, opI32Add, at, part)
	add(w, opI32Sub, length, part)
	w.opX(binary.OpLocalGet, length)
	w.opX(binary.OpBrIf, 0)
	w.op(binary.OpEnd)
}

// copy is memory.copy in chunks: upwards, or downwards where the source lies below what is written.
func (p *plan) copy(w *writer) {
	const to, from, length, part = 0, 1, 2, 3
	w.byte(1, 1, byte(binary.I32))
	move := func(n uint32) {
		w.opX(binary.OpLocalGet, to)
		w.opX(binary.OpLocalGet, from)
		w.opX(binary.OpLocalGet, n)
		w.op(binary.OpMemoryCopy)
		w.byte(0, 0)
	}
	outside(w, to, length)
	outside(w, from, length)
	w.op(0x72) // i32.or
	w.op(binary.OpIf)
	w.byte(blockEmpty)
	move(length)
	w.op(binary.OpEnd)
	w.opX(binary.OpLocalGet, to)
	w.opX(binary.OpLocalGet, from)
	w.op(opI32GtU)
	w.op(binary.OpIf)
	w.byte(blockEmpty)
	p.copyDown(w)
	w.op(binary.OpElse)
	w.op(binary.OpLoop)
	w.byte(blockEmpty)
	chunk(w, length, part)
	p.chargeFor(w, part, maxBytes, costBytesShift)
	move(part)
	add(w, opI32Add, to, part)
	add(w, opI32Add, from, part)
	add(w, opI32Sub, length, part)
	w.opX(binary.OpLocalGet, length)
	w.opX(binary.OpBrIf, 0)
	w.op(binary.OpEnd)
	w.op(binary.OpEnd)
}

func (p *plan) copyDown(w *writer) {
	const to, from, length, part = 0, 1, 2, 3
	w.op(binary.OpLoop)
	w.byte(blockEmpty)
	chunk(w, length, part)
	p.chargeFor(w, part, maxBytes, costBytesShift)
	add(w, opI32Sub, length, part)
	for _, start := range []uint32{to, from} {
		w.opX(binary.OpLocalGet, start)
		w.opX(binary.OpLocalGet, length)
		w.op(opI32Add)
	}
	w.opX(binary.OpLocalGet, part)
	w.op(binary.OpMemoryCopy)
	w.byte(0, 0)
	w.opX(binary.OpLocalGet, length)
	w.opX(binary.OpBrIf, 0)
	w.op(binary.OpEnd)
}

// grow is memory.grow, with a charge for the pages that it added.
func (p *plan) grow(w *writer) {
	const pages, was = 0, 1
	w.byte(1, 1, byte(binary.I32))
	w.opX(binary.OpLocalGet, pages)
	w.op(binary.OpMemoryGrow)
	w.byte(0)
	w.opX(binary.OpLocalTee, was)
	w.i32(-1)
	w.op(opI32Ne)
	w.op(binary.OpIf)
	w.byte(blockEmpty)
	w.opX(binary.OpGlobalGet, p.fuel)
	w.opX(binary.OpLocalGet, pages)
	w.op(opI64ExtendU)
	w.i64(costPage)
	w.op(opI64Mul)
	w.op(opI64Sub)
	w.opX(binary.OpGlobalSet, p.fuel)
	w.op(binary.OpEnd)
	p.checkGlobal(w)
	w.opX(binary.OpLocalGet, was)
}
