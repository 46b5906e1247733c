package rewriter

import (
	"slices"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// wazero's compiler for amd64 chooses between floats, and between vectors, by a jump over a move, and does not tell its
// register allocator that the register it moves to is read as well: under pressure the second operand is lost (its issue
// 2534). So a select of floats is written as one of integers with the same bits, and a select of vectors as a selection
// of bits. That takes the types of what select chooses from, which the format leaves out: they are followed over the stack.

// unknown is the type of what comes from code that is never reached.
const unknown binary.ValueType = 0

// What an instruction means for the selects and comparisons of its function.
const (
	makesFloat = 1 << iota // it leaves a float or a vector
	isSelect
	isSplit // it is written as several
	isAnd
)

// results are the types of instructions that always leave the same one.
var results = makeResults()

func makeResults() *[binary.Vector + 256]binary.ValueType {
	t := new([binary.Vector + 256]binary.ValueType)
	set := func(kind binary.ValueType, ranges ...[2]binary.Op) {
		for _, r := range ranges {
			for op := r[0]; op <= r[1]; op++ {
				t[op] = kind
			}
		}
	}
	set(binary.V128, [2]binary.Op{binary.Vector, binary.Vector + 255})
	set(binary.I32, [][2]binary.Op{
		{0x28, 0x28},
		{0x2c, 0x2f},
		{0x3f, 0x41},
		{0x45, 0x78},
		{0xa7, 0xab},
		{0xbc, 0xbc},
		{0xc0, 0xc1},
		{0xd1, 0xd1},
		{binary.Bulk, binary.Bulk + 3},
		{binary.OpTableGrow, binary.OpTableSize},
	}...)
	set(binary.I64, [][2]binary.Op{
		{0x29, 0x29},
		{0x30, 0x35},
		{0x42, 0x42},
		{0x79, 0x8a},
		{0xac, 0xb1},
		{0xbd, 0xbd},
		{0xc2, 0xc4},
		{binary.Bulk + 4, binary.Bulk + 7},
		{binary.Vector + 29, binary.Vector + 29},
	}...)
	set(binary.F32, [][2]binary.Op{{0x2a, 0x2a}, {0x43, 0x43}, {0x8b, 0x98}, {0xb2, 0xb6}, {0xbe, 0xbe}, {binary.Vector + 31, binary.Vector + 31}}...)
	set(binary.F64, [][2]binary.Op{{0x2b, 0x2b}, {0x44, 0x44}, {0x99, 0xa6}, {0xb7, 0xbb}, {0xbf, 0xbf}, {binary.Vector + 33, binary.Vector + 33}}...)
	// Lanes of integers, and what is true of a vector.
	for _, sub := range []binary.Op{21, 22, 24, 25, 27, 83, 99, 100, 131, 132, 163, 164, 195, 196} {
		t[binary.Vector+sub] = binary.I32
	}
	return t
}

// made is what instructions mean for selects.
var made = makeMade()

func makeMade() *[len(results)]uint8 {
	t := new([len(results)]uint8)
	for op, kind := range results {
		if isFloat(kind) {
			t[op] = makesFloat
		}
	}
	t[binary.OpSelect], t[binary.OpSelectTyped] = isSelect, isSelect
	for _, op := range []binary.Op{opCopySign32, opCopySign64, opBitSelect} {
		t[op] |= isSplit
	}
	t[opI32And], t[opI64And] = isAnd, isAnd
	return t
}

// isFloat says whether values of a type are kept where floats are.
func isFloat(t binary.ValueType) bool { return t == binary.F32 || t == binary.F64 || t == binary.V128 }

func anyFloat(ts []binary.ValueType) bool { return slices.ContainsFunc(ts, isFloat) }

// holdsFloats says whether a function has floats among its parameters and locals.
func holdsFloats(t *binary.FuncType, b *binary.Body) bool {
	isLocal := func(l binary.Locals) bool { return isFloat(l.Type) }
	return anyFloat(t.Params) || slices.ContainsFunc(b.Locals, isLocal)
}

// madeOutside is makesFloat when calls or globals may give any function of a module floats.
func madeOutside(m *binary.Module) uint8 {
	for i := range m.Types {
		if anyFloat(m.Types[i].Results) {
			return makesFloat
		}
	}
	isGlobal := func(g binary.Global) bool { return isFloat(g.Type) }
	isForeign := func(f binary.Foreign) bool { return isFloat(f.Global.Type) }
	if slices.ContainsFunc(m.Globals, isGlobal) || slices.ContainsFunc(m.Foreign, isForeign) {
		return makesFloat
	}
	return 0
}

// chosen is a select that must be written in another way: by the number of the instruction.
type chosen struct {
	at   int32
	kind binary.ValueType
}

// selects follows the types of one function's values.
type selects struct {
	m      *binary.Module
	locals []localRun
	stack  []binary.ValueType
	blocks []kindBlock
	list   []chosen
}

// localRun is a run of locals of one type, up to the index end.
type localRun struct {
	end  uint32
	kind binary.ValueType
}

type kindBlock struct {
	height          int
	params, results []binary.ValueType
}

// lone are the types that a block without a type of its own may have as its only result.
var lone = [...]binary.ValueType{binary.I32, binary.I64, binary.F32, binary.F64, binary.V128, binary.FuncRef, binary.ExternRef}

// find lists the selects of floats and vectors.
func (s *selects) find(m *binary.Module, t *binary.FuncType, b *binary.Body) {
	s.m, s.locals, s.stack, s.blocks, s.list = m, s.locals[:0], s.stack[:0], s.blocks[:0], s.list[:0]
	end := uint32(0)
	for _, p := range t.Params {
		end++
		s.locals = append(s.locals, localRun{end, p})
	}
	for _, l := range b.Locals {
		if l.Count > 0 {
			end += l.Count
			s.locals = append(s.locals, localRun{end, l.Type})
		}
	}
	s.blocks = append(s.blocks, kindBlock{results: t.Results})
	n := int32(0)
	for c := b.Read(); c.Next(); n++ {
		s.step(&c.In, n)
	}
}

func (s *selects) push(ts ...binary.ValueType) { s.stack = append(s.stack, ts...) }

// pop takes a value. Below a block's own values there are some only in code that is never reached.
func (s *selects) pop() binary.ValueType {
	if len(s.stack) <= s.blocks[len(s.blocks)-1].height {
		return unknown
	}
	t := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	return t
}

func (s *selects) drop(n int) {
	for range n {
		s.pop()
	}
}

// step follows one instruction.
func (s *selects) step(in *binary.Instruction, n int32) {
	pops, pushes := in.Op.Stack()
	switch {
	case pops < 0:
		s.control(in)
		return
	case in.Op == binary.OpSelect, in.Op == binary.OpSelectTyped:
		s.choose(in, n)
		return
	}
	s.drop(pops)
	if pushes == 0 {
		return
	}
	switch in.Op {
	case binary.OpLocalGet, binary.OpLocalTee:
		s.push(s.local(in.X))
	case binary.OpGlobalGet:
		s.push(s.m.GlobalAt(in.X).Type)
	default:
		s.push(results[in.Op]) // unknown stands for references as well
	}
}

// local is the type of a local.
func (s *selects) local(index uint32) binary.ValueType {
	lo, hi := 0, len(s.locals)
	for lo < hi {
		if mid := (lo + hi) / 2; s.locals[mid].end <= index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(s.locals) {
		return unknown
	}
	return s.locals[lo].kind
}

func (s *selects) choose(in *binary.Instruction, n int32) {
	s.pop()
	b, a := s.pop(), s.pop()
	kind := b
	if kind == unknown {
		kind = a
	}
	if len(in.Types) > 0 && in.Op == binary.OpSelectTyped {
		kind = in.Types[0]
	}
	if isFloat(kind) {
		s.list = append(s.list, chosen{n, kind})
	}
	s.push(kind)
}

// control follows what takes and leaves values by its type.
func (s *selects) control(in *binary.Instruction) {
	switch in.Op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		s.enter(in)
	case binary.OpElse:
		s.cut()
		s.push(s.blocks[len(s.blocks)-1].params...)
	case binary.OpEnd:
		s.cut()
		b := &s.blocks[len(s.blocks)-1]
		s.push(b.results...)
		s.blocks = s.blocks[:len(s.blocks)-1]
	case binary.OpBrIf:
		s.pop()
	case binary.OpBr, binary.OpBrTable, binary.OpReturn, binary.OpUnreachable:
		s.cut()
	case binary.OpCall:
		t, _ := s.m.FuncType(in.X)
		s.drop(len(t.Params))
		s.push(t.Results...)
	case binary.OpCallIndirect:
		s.pop()
		t := &s.m.Types[in.X]
		s.drop(len(t.Params))
		s.push(t.Results...)
	}
}

// cut drops a block's values.
func (s *selects) cut() { s.stack = s.stack[:min(len(s.stack), s.blocks[len(s.blocks)-1].height)] }

func (s *selects) enter(in *binary.Instruction) {
	if in.Op == binary.OpIf {
		s.pop()
	}
	s.blocks = append(s.blocks, kindBlock{})
	b := &s.blocks[len(s.blocks)-1]
	switch {
	case in.Block >= 0:
		b.params, b.results = s.m.Types[in.Block].Params, s.m.Types[in.Block].Results
	case in.Block != binary.BlockEmpty:
		if i := slices.Index(lone[:], binary.ValueType(in.Block+128)); i >= 0 {
			b.results = lone[i : i+1]
		}
	}
	height := len(s.stack)
	b.height = max(height-len(b.params), s.outerHeight())
	s.stack = s.stack[:b.height]
	s.push(b.params...)
}

// outerHeight is where the values of the block around the latest one begin.
func (s *selects) outerHeight() int { return s.blocks[len(s.blocks)-2].height }

// chooseSelects adds the locals that the selects take.
func (f *function) chooseSelects() {
	f.condition, f.second32, f.second64 = 0, 0, 0
	for _, c := range f.selects.list {
		if c.kind == binary.V128 {
			f.needCareful(opBitSelect)
			continue
		}
		if f.condition == 0 {
			f.condition = f.local(binary.I32)
		}
		switch {
		case c.kind == binary.F32 && f.second32 == 0:
			f.second32 = f.local(binary.I32)
		case c.kind == binary.F64 && f.second64 == 0:
			f.second64 = f.local(binary.I64)
		}
	}
}

// selection writes a select of floats or vectors. On the stack are both, and a number that chooses.
func (f *function) selection(kind binary.ValueType) {
	const opSplat = binary.Vector + 17
	if kind == binary.V128 {
		f.w.op(opI32Eqz)
		f.w.i32(1)
		f.w.op(opI32Sub)
		f.w.op(opSplat)
		f.bitSelect()
		return
	}
	to, from, second := opToBits32, opFromBits32, f.second32
	if kind == binary.F64 {
		to, from, second = opToBits64, opFromBits64, f.second64
	}
	f.w.opX(binary.OpLocalSet, f.condition)
	f.w.op(to)
	f.w.opX(binary.OpLocalSet, second)
	f.w.op(to)
	f.w.opX(binary.OpLocalGet, second)
	f.w.opX(binary.OpLocalGet, f.condition)
	f.w.op(binary.OpSelect)
	f.w.op(from)
}
