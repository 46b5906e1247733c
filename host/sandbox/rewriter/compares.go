package rewriter

import "github.com/wasmill/wasmill/host/sandbox/binary"

// wazero's compilers make one instruction of a branch on a comparison of x & y with a constant 0, and then judge what it
// says as if the 0 stood on the right: 0 < x & y is taken for x & y < 0. On arm64 that instruction also says something else
// than a comparison would of numbers without a sign. So where an ordered comparison may be such a one, its second operand
// is written as itself or 0, which is neither a constant nor an and.
//
// They see an and only in the straight piece of code that the branch ends, but through locals; a constant from anywhere.

const (
	opI32LtS binary.Op = 0x48
	opI32GeU binary.Op = 0x4f
	opI64GeU binary.Op = 0x5a
)

// operand is what is known of the value on top of the stack.
type operand struct {
	and, zero bool // it may be an and, or the constant 0
	leaf      bool // its instruction took nothing, so that the instruction before left the value below
}

// anything is a value that some instruction further back left.
var anything = operand{and: true, zero: true}

// compares follows the values of one function that ordered comparisons may take.
type compares struct {
	top, below operand
	ands       []uint32 // the piece that a local was last set to an and in
	piece      uint32
}

// begin starts a function with so many locals. Pieces are counted over all functions.
func (c *compares) begin(locals uint32) {
	c.top, c.below = anything, anything
	if int(locals) > len(c.ands) {
		c.ands, c.piece = make([]uint32, locals), 0
	}
	c.piece++
}

// mistaken says whether a comparison may be one that a compiler gets wrong.
func (c *compares) mistaken(op binary.Op) bool {
	if !(op >= opI32LtS && op <= opI32GeU || op >= opI64LtS && op <= opI64GeU) {
		return false
	}
	if c.top.and && (!c.top.leaf || c.below.zero) {
		return true
	}
	first := opI32LtS
	if op >= opI64LtS {
		first = opI64LtS
	}
	unsigned := (op-first)&1 == 1
	return unsigned && c.top.zero && (!c.top.leaf || c.below.and)
}

// neutral writes what changes nothing of the second operand but how it was made.
func (f *function) neutral(op binary.Op) {
	if op <= opI32GeU {
		f.w.i32(0)
		f.w.op(opI32Or)
		return
	}
	f.w.i64(0)
	f.w.op(opI64Or)
}

// step follows an instruction.
func (c *compares) step(in *binary.Instruction) {
	c.below = c.top
	switch in.Op {
	case binary.OpLocalGet:
		c.top = operand{leaf: true, zero: true, and: c.ands[in.X] == c.piece}
	case binary.OpLocalTee:
		c.keep(in.X)
		c.top.leaf = false
	case binary.OpLocalSet:
		c.keep(in.X)
		c.top = anything
	case binary.OpI32Const, binary.OpI64Const:
		c.top = operand{leaf: true, zero: in.Value == 0}
	case opI32And, opI64And:
		c.top = operand{and: true}
	case binary.OpLoop, binary.OpIf, binary.OpElse, binary.OpEnd, binary.OpBr, binary.OpBrIf, binary.OpBrTable, binary.OpReturn,
		binary.OpUnreachable, binary.OpCall, binary.OpCallIndirect:
		c.piece++
		c.top = operand{zero: true}
	default:
		pops, pushes := in.Op.Stack()
		c.top = operand{leaf: pops == 0}
		if pushes != 1 || in.Op == binary.OpDrop {
			c.top = anything
		}
	}
}

// keep remembers what a local is set to.
func (c *compares) keep(local uint32) {
	c.ands[local] = 0
	if c.top.and {
		c.ands[local] = c.piece
	}
}
