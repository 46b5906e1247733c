package binary

import (
	"fmt"
	"slices"
)

// Effects says what the code of a module can change besides its memory and its numeric globals.
type Effects struct {
	Tables   bool // table.set, grow, fill, copy, init
	Elements bool // elem.drop
	Data     bool // memory.init, data.drop
}

// Effects is what all the code together can change.
func (m *Module) Effects() Effects { return m.effects }

// checker goes over one function's code.
type checker struct {
	m      *Module
	code   *Code
	locals uint64 // parameters included
	// open are the open blocks, the function's own first.
	open   []openBlock
	serial uint32 // of the scope that was opened last
	height int    // of the stack
	lives  lives
	have   Counts // of the function
}

// openBlock is a block whose end was not read yet.
type openBlock struct {
	op              Op
	node            int // in lives
	serial          uint32
	base            int // height of the stack below its parameters
	params, results int
}

// checkBodies reads all code. An error names the function.
func (m *Module) checkBodies() error {
	c := &checker{m: m}
	for i := range m.Bodies {
		if err := c.body(i); err != nil {
			index := uint32(len(m.Imports) + i)
			name := ""
			if n := m.FuncNames()[index]; n != "" {
				name = fmt.Sprintf(" (%.80q)", n)
			}
			err.Text = fmt.Sprintf("function %d%s: %s", index, name, err.Text)
			return err
		}
	}
	return nil
}

func (c *checker) body(i int) *Error {
	b, t := &c.m.Bodies[i], &c.m.Types[c.m.Funcs[i]]
	c.code, c.have = b.Read(), Counts{Bytes: int64(len(b.Code))}
	c.locals = uint64(len(t.Params))
	b.Vectors = vectors(t.Params) || vectors(t.Results)
	for _, l := range b.Locals {
		c.have.Locals += int64(l.Count)
		b.Vectors = b.Vectors || l.Type == V128
	}
	c.size(b)
	if c.code.r.err != nil {
		return c.code.Err()
	}
	c.locals += uint64(c.have.Locals)
	b.Slots = int(c.locals) + len(t.Results)
	c.open, c.height = append(c.open[:0], openBlock{op: OpBlock, node: -1, results: len(t.Results)}), 0
	c.lives.begin(int(c.locals))
	for c.code.Next() {
		b.Instructions++
		c.instruction(&c.code.In)
		if c.code.r.err != nil {
			break
		}
		c.values(b, &c.code.In)
	}
	if len(c.open) > 0 {
		c.fail(Malformed, "it ends inside a block")
	}
	if c.code.r.err == nil {
		c.blocks(b)
	}
	c.m.Counts.add(&c.have)
	return c.code.Err()
}

// size holds the code and the locals of a function to their limits.
func (c *checker) size(b *Body) {
	if n := len(b.Code); n > MaxBody {
		c.failAt(b.Offset, TooLarge, "%d bytes of code, at most %d are taken", n, MaxBody)
	}
	if c.have.Locals > MaxLocals {
		c.failAt(b.Offset, TooLarge, "%d locals, at most %d are taken", c.have.Locals, MaxLocals)
	}
	if c.m.Counts.ModuleLocals+c.have.Locals > MaxModuleLocals {
		c.failAt(b.Offset, TooLarge, "with its %d the locals of the module are more than %d", c.have.Locals, MaxModuleLocals)
	}
}

// fail says what is wrong with the instruction that was read last.
func (c *checker) fail(reason Reason, format string, args ...any) {
	c.failAt(c.code.In.Start, reason, format, args...)
}

func (c *checker) failAt(offset int, reason Reason, format string, args ...any) {
	if c.code.r.err == nil {
		c.code.r.err = &Error{Reason: reason, Offset: offset, Text: fmt.Sprintf(format, args...)}
	}
}

func (c *checker) instruction(in *Instruction) {
	if len(c.open) == 0 {
		c.fail(Malformed, "there is code behind its end")
		return
	}
	switch in.Op {
	case OpLocalGet, OpLocalSet, OpLocalTee:
		if c.index(in.X, c.locals, "local"); c.code.r.err == nil {
			c.lives.use(in.X, in.Op != OpLocalGet, c.open)
		}
	case OpGlobalGet, OpGlobalSet:
		c.index(in.X, uint64(c.m.Count(KindGlobal)), "global")
	case OpRefFunc:
		if int64(in.X) >= int64(len(c.m.declared)) || !c.m.declared[in.X] {
			c.fail(Malformed, "it refers to function %d, which is not declared to be referred to", in.X)
		}
	default:
		if in.Op < OpDrop {
			c.control(in)
			return
		}
		c.rare(in)
	}
	c.move(int(ops[in.Op].pops), int(ops[in.Op].pushes))
}

// control checks the instructions at which the code goes one way or another. All but calls end a part of it.
func (c *checker) control(in *Instruction) {
	c.lives.part++
	switch in.Op {
	case OpUnreachable, OpReturn:
		c.height = c.open[len(c.open)-1].base
	case OpNop:
		c.lives.part--
	case OpBlock, OpLoop, OpIf:
		c.enter(in)
	case OpElse:
		c.otherwise()
	case OpEnd:
		c.leave()
	case OpBr:
		c.label(in.X)
		c.height = c.open[len(c.open)-1].base
	case OpBrIf:
		c.move(1, 0)
		c.label(in.X)
		c.hold()
	case OpBrTable:
		c.table(in)
		c.height = c.open[len(c.open)-1].base
	case OpCall, OpCallIndirect:
		c.lives.part--
		c.call(in)
	}
}

func (c *checker) call(in *Instruction) {
	t, pops := &FuncType{}, 0
	if in.Op == OpCall {
		c.index(in.X, uint64(c.m.Count(KindFunc)), "function")
		c.have.Calls++
	} else {
		c.index(in.X, uint64(len(c.m.Types)), "type")
		c.index(in.Y, uint64(c.m.Count(KindTable)), "table")
		c.have.Calls += indirectCall
		pops = 1
	}
	if c.have.Calls > MaxCalls {
		c.fail(TooLarge, "more than %d calls, an indirect one counts as %d", MaxCalls, indirectCall)
	}
	if c.code.r.err != nil {
		return
	}
	if in.Op == OpCall {
		i, _ := c.m.FuncTypeIndex(in.X)
		t = &c.m.Types[i]
	} else {
		t = &c.m.Types[in.X]
	}
	c.move(pops+len(t.Params), len(t.Results))
}

// move takes values from the stack and puts some on it. What is missing in a block comes of code that is never reached.
func (c *checker) move(pops, pushes int) {
	c.height = max(c.height-pops, c.open[len(c.open)-1].base) + pushes
}

// hold counts the values that stay on the stack where the code parts.
func (c *checker) hold() {
	if c.have.Held += int64(c.height); c.have.Held > MaxHeld {
		c.fail(TooLarge, "values on the stack of blocks and branches, summed over them, are more than %d", MaxHeld)
	}
}

func (c *checker) enter(in *Instruction) {
	o := openBlock{op: in.Op}
	if in.Op == OpIf {
		c.move(1, 0)
	}
	switch {
	case in.Block >= int64(len(c.m.Types)):
		c.fail(Malformed, "a block of type %d of %d", in.Block, len(c.m.Types))
	case in.Block >= 0:
		t := &c.m.Types[in.Block]
		o.params, o.results = len(t.Params), len(t.Results)
	case in.Block != BlockEmpty:
		o.results = 1
	}
	if len(c.open) > MaxNesting {
		c.fail(TooLarge, "more than %d nested blocks", MaxNesting)
	}
	c.have.Nesting = max(c.have.Nesting, int64(len(c.open)))
	c.hold()
	o.base = max(c.height-o.params, c.open[len(c.open)-1].base)
	c.height = o.base + o.params
	n := node{op: in.Op, start: in.Start}
	if in.Op == OpLoop {
		n.arity = o.params
	}
	o.node = c.lives.enter(n)
	c.serial++
	o.serial = c.serial
	c.open = append(c.open, o)
}

func (c *checker) otherwise() {
	o := &c.open[len(c.open)-1]
	if o.op != OpIf {
		c.fail(Malformed, "an else without an if")
	}
	c.serial++
	o.op, o.serial = OpElse, c.serial
	c.height = o.base + o.params
}

func (c *checker) leave() {
	o := &c.open[len(c.open)-1]
	c.open = c.open[:len(c.open)-1]
	if len(c.open) > 0 {
		c.height = o.base + o.results
		c.lives.leave()
	}
}

// label checks a branch's target.
func (c *checker) label(label uint32) {
	if c.index(label, uint64(len(c.open)), "label"); c.code.r.err == nil {
		if node := c.open[len(c.open)-1-int(label)].node; node >= 0 {
			c.lives.nodes[node].ways++
		}
	}
}

// blocks counts what locals cost, once all of the function is known.
//
// Where ways through the code meet, at the end of an if or of a block that is branched to, and at the head of a loop, a
// compiler keeps a value for each shared local that is written inside. Those of a loop are all moved on each way back to
// its head, and where one of them stays as it is, through as many further values for each of the ways. On other ways
// none can be its own source, for no value of the place they lead to is known before it.
func (c *checker) blocks(b *Body) {
	h := &c.have
	c.lives.each(func(n *node, loops, used, sets int) bool {
		if n.op == OpLoop {
			h.LoopLocals = max(h.LoopLocals, int64(loops)*int64(used))
			if h.LoopLocals > MaxLoopLocals {
				c.failAt(n.start, TooLarge, "%d nested loops over %d locals that are used in several parts of it: their product may be at most %d", loops, used, MaxLoopLocals)
			}
			if h.ModuleLoops += int64(used); c.m.Counts.ModuleLoops+h.ModuleLoops > MaxModuleLoops {
				c.failAt(n.start, TooLarge, "with this loop, the locals in all loops of the module are more than %d", MaxModuleLoops)
			}
		}
		if n.op == OpBlock && n.ways == 0 {
			return true
		}
		if h.Merged += int64(sets); h.Merged > MaxMerged {
			c.failAt(n.start, TooLarge, "more than %d values of locals meet at its loops and branches", MaxMerged)
		}
		if h.Passed += int64(sets) * int64(n.ways+1); h.Passed > MaxPassed {
			c.failAt(n.start, TooLarge, "more than %d values of locals are passed on at its branches", MaxPassed)
		}
		if n.op == OpLoop {
			if h.WaysBack += int64(sets) * int64(n.ways) * int64(n.ways); h.WaysBack > MaxWaysBack {
				c.failAt(n.start, TooLarge, "%d ways back to a loop that writes %d locals: their squares by the locals, summed over the loops, may be at most %d", n.ways, sets, MaxWaysBack)
			}
			b.Slots += (n.ways + 1) * (sets + n.arity)
		}
		return c.code.r.err == nil
	})
	if h.Spans = c.lives.spans(); h.Spans > MaxSpans {
		c.fail(TooLarge, "its locals are alive over %d parts of its code, summed over them, at most %d are taken", h.Spans, MaxSpans)
	}
	b.Slots += int(h.Merged)
}

// values counts what an instruction that was checked may leave in a frame.
func (c *checker) values(b *Body, in *Instruction) {
	b.Slots++
	b.Vectors = b.Vectors || in.Op >= Vector
	t := FuncType{}
	switch in.Op {
	case OpBlock, OpLoop, OpIf:
		if in.Block >= 0 {
			t = c.m.Types[in.Block]
		}
	case OpCall:
		t, _ = c.m.FuncType(in.X)
		t.Params = nil
	case OpCallIndirect:
		t.Results = c.m.Types[in.X].Results
	}
	if n := len(t.Params) + len(t.Results); n > 0 {
		b.Slots += n
		b.Vectors = b.Vectors || vectors(t.Params) || vectors(t.Results)
	}
}

func vectors(ts []ValueType) bool { return slices.Contains(ts, V128) }

func (c *checker) table(in *Instruction) {
	h, n := &c.have, int64(len(in.Targets))
	h.Targets = max(h.Targets, n-1)
	if n-1 > MaxTargets && !c.m.profile.Any {
		c.fail(TooLarge, "%d labels of a br_table, at most %d are taken", n-1, MaxTargets)
	}
	if h.AllTargets += n; h.AllTargets > MaxAllTargets {
		c.fail(TooLarge, "more than %d labels in all of its br_tables", MaxAllTargets)
	}
	if c.m.Counts.ModuleTargets+h.AllTargets > MaxModuleTargets {
		c.fail(TooLarge, "more than %d labels in all br_tables of the module", MaxModuleTargets)
	}
	for _, label := range in.Targets {
		c.label(label)
	}
}

// rare checks what is seldom met.
func (c *checker) rare(in *Instruction) {
	e := &c.m.effects
	if in.Op >= OpMemoryInit && in.Op < Vector {
		c.lives.part++ // compilers make loops of those
	}
	switch in.Op {
	case OpTableGet, OpTableSize:
		c.index(in.X, uint64(c.m.Count(KindTable)), "table")
	case OpTableSet, OpTableGrow, OpTableFill:
		e.Tables = true
		c.index(in.X, uint64(c.m.Count(KindTable)), "table")
	case OpTableCopy:
		e.Tables = true
		c.index(in.X, uint64(c.m.Count(KindTable)), "table")
		c.index(in.Y, uint64(c.m.Count(KindTable)), "table")
	case OpTableInit:
		e.Tables = true
		c.index(in.X, uint64(len(c.m.Elements)), "element segment")
		c.index(in.Y, uint64(c.m.Count(KindTable)), "table")
	case OpElemDrop:
		e.Elements = true
		c.index(in.X, uint64(len(c.m.Elements)), "element segment")
	case OpMemoryInit, OpDataDrop:
		e.Data = true
		if !c.m.HasDataCount {
			c.fail(Malformed, "it refers to a data segment, and there is no data count section")
		}
		c.index(in.X, uint64(len(c.m.Data)), "data segment")
	}
}

func (c *checker) index(index uint32, have uint64, what string) {
	if uint64(index) >= have {
		c.fail(Malformed, "it refers to %s %d of %d", what, index, have)
	}
}
