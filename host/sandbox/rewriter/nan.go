package rewriter

import (
	"slices"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// The bits of a NaN that arithmetic makes differ between processors and engines. Whether a number is NaN does not: so a
// result can be left as it is while nothing but arithmetic and comparisons take it, and is made canonical where its bits
// could be seen. That is decided by following each result over the stack, and through the locals that it is kept in.

// lane is the float type that an instruction computes with.
type lane uint8

const (
	noLane lane = iota
	laneF32
	laneF64
	laneF32x4
	laneF64x2
)

// arithmetic is the type of an instruction's result whose NaNs are not determined, noLane for all others.
func arithmetic(op binary.Op) lane {
	switch {
	case op >= 0x8d && op <= 0x97, op == 0xb6: // ceil floor trunc nearest sqrt add sub mul div min max, demote
		return laneF32
	case op >= 0x9b && op <= 0xa5, op == 0xbb: // the same, promote
		return laneF64
	case op < binary.Vector:
		return noLane
	}
	switch op - binary.Vector {
	case 94, 103, 104, 105, 106, 227, 228, 229, 230, 231, 232, 233:
		return laneF32x4
	case 95, 116, 117, 122, 148, 239, 240, 241, 242, 243, 244, 245:
		return laneF64x2
	}
	return noLane
}

// blind says whether an instruction's results do not depend on the bits of its operands' NaNs.
func blind(op binary.Op) bool {
	switch {
	case arithmetic(op) != noLane, op == binary.OpDrop:
		return true
	case op >= 0x5b && op <= 0x66: // comparisons
		return true
	case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // to integers
		return true
	case op >= binary.Bulk && op <= binary.Bulk+7: // to integers, saturating
		return true
	case op < binary.Vector:
		return false
	}
	sub := op - binary.Vector
	return sub >= 65 && sub <= 76 || sub == 248 || sub == 249 || sub == 252 || sub == 253
}

// operandLane is how a vector instruction that is blind divides its operands.
func operandLane(op binary.Op) lane {
	switch sub := op - binary.Vector; {
	case sub == 95, sub >= 65 && sub <= 70, sub == 248, sub == 249:
		return laneF32x4
	case sub == 94, sub >= 71 && sub <= 76, sub == 252, sub == 253:
		return laneF64x2
	}
	return arithmetic(op)
}

// The values on the simulated stack: determined bits, a number that is no NaN, a result of arithmetic by its position in
// nans.results, or what was read from a local.
const (
	clean  = -1
	number = -2
)

func fromLocal(get int) int32 { return int32(-3 - get) }

// result is one result of arithmetic.
type result struct {
	at   int32 // number of the instruction
	lane lane
	seen bool // its bits can be seen
}

// access is one reading or writing of a local.
type access struct {
	at     int32
	local  int
	weight float64
	value  int32 // that is written
	seen   bool  // the bits that are read can be seen
	// next is the next write of the same local, nextCopy the next of what was read from one: positions in nans.sets plus one.
	next, nextCopy int32
}

// local is what is known of a local of float type that is no parameter.
type local struct {
	lane lane
	seen bool // its bits can be seen
	// pure is set when only results of arithmetic, and numbers that are no NaN, are written to it: then it may be made
	// canonical where it is read. Bits that were loaded must not change.
	pure          bool
	atGet         bool
	sets, getSeen float64 // how often it is written, and read so that its bits can be seen, by a guess

	firstSet, firstCopy int32 // positions in nans.sets plus one
}

// nans follows the floats of one function.
type nans struct {
	m       *binary.Module
	first   int // index of the first local that is no parameter
	locals  []local
	results []result
	gets    []access
	sets    []access
	stack   []int32
	blocks  []nanBlock
	weight  float64 // of an instruction here: 8 for each loop it stands in
	n       int32   // number of the next instruction
	points  []point
	work    []int // locals to be looked at
}

type nanBlock struct {
	height          int
	params, results int
	loop            bool
}

// point is where something is made canonical: behind an instruction.
type point struct {
	at   int32
	lane lane
}

// begin starts a function.
func (s *nans) begin(m *binary.Module, t binary.FuncType, b *binary.Body) {
	s.m, s.first, s.weight, s.n = m, len(t.Params), 1, 0
	s.locals, s.results, s.gets, s.sets = s.locals[:0], s.results[:0], s.gets[:0], s.sets[:0]
	s.stack, s.points = s.stack[:0], s.points[:0]
	s.blocks = append(s.blocks[:0], nanBlock{results: len(t.Results)})
	for _, l := range b.Locals {
		kind := noLane
		switch l.Type {
		case binary.F32:
			kind = laneF32
		case binary.F64:
			kind = laneF64
		}
		for range l.Count {
			s.locals = append(s.locals, local{lane: kind, pure: true})
		}
	}
}

func (s *nans) push(v int32) { s.stack = append(s.stack, v) }

// pop takes a value; below a block's own values there is nothing to follow.
func (s *nans) pop() int32 {
	if len(s.stack) <= s.blocks[len(s.blocks)-1].height {
		return clean
	}
	v := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	return v
}

// see marks a value whose bits can be seen from here on.
func (s *nans) see(v int32) {
	switch {
	case v >= 0:
		s.results[v].seen = true
	case v < number:
		s.gets[-3-v].seen = true
	}
}

// seeTop marks the topmost values and leaves them.
func (s *nans) seeTop(n int) {
	for i := max(len(s.stack)-n, s.blocks[len(s.blocks)-1].height); i < len(s.stack); i++ {
		s.see(s.stack[i])
	}
}

// step follows one instruction.
func (s *nans) step(in *binary.Instruction) {
	n := s.n
	s.n++
	pops, pushes := in.Op.Stack()
	switch {
	case pops < 0:
		s.control(in)
		return
	case in.Op == binary.OpLocalGet:
		s.get(in.X, n)
		return
	case in.Op == binary.OpLocalSet, in.Op == binary.OpLocalTee:
		s.set(in, n)
		return
	}
	unseen := blind(in.Op)
	for range pops {
		if v := s.pop(); !unseen || s.otherLanes(v, in.Op) {
			s.see(v)
		}
	}
	if pushes == 0 {
		return
	}
	kind := arithmetic(in.Op)
	switch {
	case kind != noLane:
		s.results = append(s.results, result{at: n, lane: kind})
		s.push(int32(len(s.results) - 1))
	case isNumber(in):
		s.push(number)
	default:
		s.push(clean)
	}
}

// otherLanes says whether an instruction takes a vector apart in other lanes than it was computed in: the half of a NaN of
// 64 bits may be a number.
func (s *nans) otherLanes(v int32, op binary.Op) bool {
	return v >= 0 && op >= binary.Vector && s.results[v].lane != operandLane(op)
}

// isNumber says whether an instruction's result is a float that is never a NaN.
func isNumber(in *binary.Instruction) bool {
	const (
		exponent32, exponent64 = 0x7f800000, 0x7ff0000000000000
	)
	switch op := in.Op; {
	case op == binary.OpF32Const:
		return in.Value&exponent32 != exponent32
	case op == binary.OpF64Const:
		return in.Value&exponent64 != exponent64
	default:
		return op >= 0xb2 && op <= 0xb5 || op >= 0xb7 && op <= 0xba // from integers
	}
}

// float is a local that is followed, -1 for others.
func (s *nans) float(index uint32) int {
	i := int(index) - s.first
	if i < 0 || s.locals[i].lane == noLane {
		return -1
	}
	return i
}

func (s *nans) get(index uint32, n int32) {
	i := s.float(index)
	if i < 0 {
		s.push(clean)
		return
	}
	s.gets = append(s.gets, access{at: n, local: i, weight: s.weight})
	s.push(fromLocal(len(s.gets) - 1))
}

func (s *nans) set(in *binary.Instruction, n int32) {
	v := s.pop()
	i := s.float(in.X)
	if i < 0 {
		s.see(v)
		if in.Op == binary.OpLocalTee {
			s.push(clean)
		}
		return
	}
	s.sets = append(s.sets, access{at: n, local: i, weight: s.weight, value: v})
	s.locals[i].sets += s.weight
	s.locals[i].pure = s.locals[i].pure && v != clean
	if in.Op == binary.OpLocalTee {
		s.get(in.X, n)
	}
}

// finish decides where numbers are made canonical. Each local and each access is looked at once.
func (s *nans) finish() {
	s.link()
	s.purify()
	for i := range s.gets {
		if s.gets[i].seen {
			s.seeLocal(&s.gets[i])
		}
	}
	for len(s.work) > 0 {
		l := &s.locals[s.work[len(s.work)-1]]
		s.work = s.work[:len(s.work)-1]
		if l.atGet = l.pure && l.getSeen < l.sets; !l.atGet {
			s.spread(l)
		}
	}
	for i := range s.results {
		if s.results[i].seen {
			s.points = append(s.points, point{s.results[i].at, s.results[i].lane})
		}
	}
	for i := range s.gets {
		if l := &s.locals[s.gets[i].local]; s.gets[i].seen && l.atGet {
			s.points = append(s.points, point{s.gets[i].at, l.lane})
		}
	}
	slices.SortFunc(s.points, func(a, b point) int { return int(a.at - b.at) })
}

// link chains the writes of each local, and the writes of what was read from each.
func (s *nans) link() {
	for i := range s.sets {
		set := &s.sets[i]
		l := &s.locals[set.local]
		set.next, l.firstSet = l.firstSet, int32(i+1)
		if set.value < number {
			from := &s.locals[s.gets[-3-set.value].local]
			set.nextCopy, from.firstCopy = from.firstCopy, int32(i+1)
		}
	}
}

// seeLocal marks the local that is read, and puts it on the list of those to be decided on.
func (s *nans) seeLocal(g *access) {
	l := &s.locals[g.local]
	l.getSeen += g.weight
	if !l.seen {
		l.seen = true
		s.work = append(s.work, g.local)
	}
}

// purify takes back that a local is pure where it gets the value of one that is not.
func (s *nans) purify() {
	for i := range s.locals {
		if !s.locals[i].pure {
			s.work = append(s.work, i)
		}
	}
	for len(s.work) > 0 {
		l := &s.locals[s.work[len(s.work)-1]]
		s.work = s.work[:len(s.work)-1]
		for i := l.firstCopy; i > 0; i = s.sets[i-1].nextCopy {
			if to := s.sets[i-1].local; s.locals[to].pure {
				s.locals[to].pure = false
				s.work = append(s.work, to)
			}
		}
	}
}

// spread marks what is written to a local whose bits can be seen and that is not made canonical where it is read.
func (s *nans) spread(l *local) {
	for i := l.firstSet; i > 0; i = s.sets[i-1].next {
		value := s.sets[i-1].value
		if value >= number {
			s.see(value)
			continue
		}
		if g := &s.gets[-3-value]; !g.seen {
			g.seen = true
			s.seeLocal(g)
		}
	}
}

// control follows what takes and leaves values by its type.
func (s *nans) control(in *binary.Instruction) {
	switch in.Op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		s.enter(in)
	case binary.OpElse:
		b := s.blocks[len(s.blocks)-1]
		s.seeTop(b.results)
		s.cut()
		s.pushClean(b.params)
	case binary.OpEnd:
		b := s.blocks[len(s.blocks)-1]
		s.seeTop(b.results)
		s.cut()
		s.blocks = s.blocks[:len(s.blocks)-1]
		if b.loop {
			s.weight /= 8
		}
		if len(s.blocks) > 0 {
			s.pushClean(b.results)
		}
	case binary.OpBrIf:
		s.pop()
		s.branch(in.X)
	case binary.OpBr:
		s.branch(in.X)
		s.cut()
	case binary.OpBrTable:
		s.pop()
		s.branch(in.Targets[len(in.Targets)-1])
		s.cut()
	case binary.OpReturn:
		s.seeTop(s.blocks[0].results)
		s.cut()
	case binary.OpUnreachable:
		s.cut()
	case binary.OpCall:
		t, _ := s.m.FuncType(in.X)
		s.call(t)
	case binary.OpCallIndirect:
		s.pop()
		s.call(s.m.Types[in.X])
	}
}

// cut drops a block's values.
func (s *nans) cut() { s.stack = s.stack[:min(len(s.stack), s.blocks[len(s.blocks)-1].height)] }

func (s *nans) pushClean(n int) {
	for range n {
		s.push(clean)
	}
}

func (s *nans) enter(in *binary.Instruction) {
	if in.Op == binary.OpIf {
		s.pop()
	}
	b := nanBlock{loop: in.Op == binary.OpLoop}
	b.params, b.results = arity(s.m, in.Block)
	for range b.params {
		s.see(s.pop())
	}
	b.height = len(s.stack)
	s.blocks = append(s.blocks, b)
	s.pushClean(b.params)
	if b.loop {
		s.weight *= 8
	}
}

// arity is how many parameters and results a block has.
func arity(m *binary.Module, block int64) (params, results int) {
	switch {
	case block == binary.BlockEmpty:
		return 0, 0
	case block < 0:
		return 0, 1
	}
	return len(m.Types[block].Params), len(m.Types[block].Results)
}

// branch marks the values that a branch takes along.
func (s *nans) branch(label uint32) {
	b := &s.blocks[len(s.blocks)-1-int(label)]
	if b.loop {
		s.seeTop(b.params)
		return
	}
	s.seeTop(b.results)
}

func (s *nans) call(t binary.FuncType) {
	for range t.Params {
		s.see(s.pop())
	}
	s.pushClean(len(t.Results))
}
