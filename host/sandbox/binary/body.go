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
	open    []openBlock
	blocks  uint64 // that were opened
	uses    uses
	targets int // of the function's br_tables
	all     int // of the module's
}

// openBlock is a block whose end was not read yet.
type openBlock struct {
	op   Op
	sets uint64 // of shared locals inside
	join bool   // a branch names it, so paths meet at its end
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
	b := &c.m.Bodies[i]
	c.code = b.Read()
	c.locals = uint64(len(c.m.Types[c.m.Funcs[i]].Params))
	for _, l := range b.Locals {
		c.locals += uint64(l.Count)
	}
	c.open, c.blocks, c.targets = append(c.open[:0], openBlock{op: OpBlock}), 0, 0
	t := &c.m.Types[c.m.Funcs[i]]
	c.uses.begin(c.locals, len(t.Params))
	b.Slots, b.Vectors = int(c.locals)+len(t.Results), vectors(t.Params) || vectors(t.Results)
	for _, l := range b.Locals {
		b.Vectors = b.Vectors || l.Type == V128
	}
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
		b.Slots += int(c.merge(b))
	}
	return c.code.Err()
}

// fail says what is wrong with the instruction that was read last.
func (c *checker) fail(reason Reason, format string, args ...any) {
	if c.code.r.err == nil {
		c.code.r.err = &Error{Reason: reason, Offset: c.code.In.Start, Text: fmt.Sprintf(format, args...)}
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
			c.uses.see(in.X, in.Op != OpLocalGet)
		}
	case OpBlock, OpLoop, OpIf:
		c.enter(in)
	case OpElse:
		if c.open[len(c.open)-1].op != OpIf {
			c.fail(Malformed, "an else without an if")
		}
		c.open[len(c.open)-1].op = OpElse
		c.uses.part++
	case OpEnd:
		c.open = c.open[:len(c.open)-1]
		c.uses.part++
	case OpBr, OpBrIf:
		c.index(in.X, uint64(len(c.open)), "label")
		c.uses.part++
	case OpReturn, OpUnreachable:
		c.uses.part++
	case OpBrTable:
		c.table(in)
	case OpCall:
		c.index(in.X, uint64(c.m.Count(KindFunc)), "function")
	case OpCallIndirect:
		c.index(in.X, uint64(len(c.m.Types)), "type")
		c.index(in.Y, uint64(c.m.Count(KindTable)), "table")
	case OpGlobalGet, OpGlobalSet:
		c.index(in.X, uint64(c.m.Count(KindGlobal)), "global")
	case OpRefFunc:
		if int64(in.X) >= int64(len(c.m.declared)) || !c.m.declared[in.X] {
			c.fail(Malformed, "it refers to function %d, which is not declared to be referred to", in.X)
		}
	default:
		c.rare(in)
	}
}

func (c *checker) enter(in *Instruction) {
	if in.Block >= 0 && in.Block >= int64(len(c.m.Types)) {
		c.fail(Malformed, "a block of type %d of %d", in.Block, len(c.m.Types))
	}
	if len(c.open) > MaxNesting {
		c.fail(TooLarge, "more than %d nested blocks", MaxNesting)
	}
	c.open = append(c.open, openBlock{op: in.Op})
	c.blocks++
	c.uses.part++
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
	if n := len(in.Targets) - 1; n > MaxTargets && !c.m.profile.Any {
		c.fail(TooLarge, "%d labels of a br_table, at most %d are taken", n, MaxTargets)
	}
	if c.targets += len(in.Targets); c.targets > MaxAllTargets {
		c.fail(TooLarge, "more than %d labels in all of its br_tables", MaxAllTargets)
	}
	if c.all += len(in.Targets); c.all > MaxModuleTargets {
		c.fail(TooLarge, "more than %d labels in all br_tables of the module", MaxModuleTargets)
	}
	for _, label := range in.Targets {
		c.index(label, uint64(len(c.open)), "label")
	}
	c.uses.part++
}

// rare checks what is seldom met.
func (c *checker) rare(in *Instruction) {
	e := &c.m.effects
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
