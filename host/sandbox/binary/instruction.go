package binary

import "encoding/binary"

// BlockEmpty is the block type without parameters and results.
const BlockEmpty = -64

// Instruction is one instruction with its immediates. Which of them mean something depends on Op.
type Instruction struct {
	Op Op
	// Start and End are where it lies, in bytes from the start of the module.
	Start, End int
	// Block is a block type: a type's index, or a negative number: BlockEmpty, or a value type less 128.
	Block int64
	// X and Y are indexes in the order of the format, or an alignment and an offset.
	X, Y uint32
	Lane uint8
	// Value is a constant's bits, and High the upper ones of a v128 or the second half of a shuffle.
	Value, High uint64
	// Targets are the labels of br_table, the default last. Valid until the next call of Next.
	Targets []uint32
	Types   []ValueType
}

// Code reads a function's instructions one after the other.
type Code struct {
	r  reader
	In Instruction
}

// Next reads the next instruction into In. It returns false at the end, and on an error, which Err tells.
func (c *Code) Next() bool {
	if c.r.err != nil || c.r.pos >= len(c.r.b) {
		return false
	}
	c.In.Start = c.r.base + c.r.pos
	c.r.instruction(&c.In)
	c.In.End = c.r.base + c.r.pos
	return c.r.err == nil
}

// Err is what ended the reading, nil at the end of the code.
func (c *Code) Err() *Error { return c.r.err }

// instruction reads one instruction. Numbers may be written longer than they need to be, as the format allows.
func (r *reader) instruction(in *Instruction) {
	op := Op(r.byte())
	if op == 0xfc || op == 0xfd {
		prefix := op
		sub := r.u32()
		op = Bulk + Op(sub&0xff)
		if prefix == 0xfd {
			op = Vector + Op(sub&0xff)
		}
		if r.err == nil && (sub > 0xff || ops[op].imm == immInvalid) {
			r.fail(Feature, "0x%02x %d is no instruction of WebAssembly 2.0", byte(prefix), sub)
		}
	}
	info := &ops[op]
	in.Op = op
	switch info.imm {
	case immNone:
	case immIndex:
		in.X = r.u32()
	case immMemory, immMemLane:
		r.memarg(in, info)
	case immI32:
		in.Value = uint64(uint32(r.signed(32)))
	case immI64:
		in.Value = uint64(r.signed(64))
	case immBlock:
		in.Block = r.blockType()
	case immInvalid:
		r.fail(Feature, "0x%02x is no instruction of WebAssembly 2.0", byte(op))
	default:
		r.rareImmediate(in, info)
	}
}

func (r *reader) memarg(in *Instruction, info *opInfo) {
	in.X, in.Y = r.u32(), r.u32()
	if r.err == nil && in.X > uint32(info.limit) {
		r.fail(Malformed, "an alignment of 2^%d, at most 2^%d is natural", in.X, info.limit)
	}
	if info.imm == immMemLane {
		in.Lane = r.lane(info.lanes)
	}
}

func (r *reader) lane(lanes uint8) uint8 {
	lane := r.byte()
	if r.err == nil && lane >= lanes {
		r.fail(Malformed, "lane %d of %d", lane, lanes)
	}
	return lane
}

func (r *reader) blockType() int64 {
	if r.err == nil && r.pos < len(r.b) && r.b[r.pos] == 0x40 { // nearly all are this
		r.pos++
		return BlockEmpty
	}
	start := r.pos
	t := r.signed(33)
	if r.err == nil && t < 0 && r.pos > start+1 {
		r.fail(Malformed, "a block's type of one byte is written as %d", r.pos-start)
	}
	if r.err == nil && t < 0 && t != BlockEmpty && !ValueType(t+128).known(t) {
		r.fail(Feature, "%d is no block type", t)
	}
	return t
}

// known says whether a negative block type is a value type.
func (t ValueType) known(block int64) bool {
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return block >= -64
	}
	return false
}

func (r *reader) rareImmediate(in *Instruction, info *opInfo) {
	switch info.imm {
	case immTwo:
		in.X, in.Y = r.u32(), r.u32()
	case immZero:
		r.zero()
	case immTwoZero:
		r.zero()
		r.zero()
	case immIndexNul:
		in.X = r.u32()
		r.zero()
	case immLane:
		in.Lane = r.lane(info.limit)
	case immBytes4:
		if b := r.bytes(4); b != nil {
			in.Value = uint64(binary.LittleEndian.Uint32(b))
		}
	case immBytes8:
		if b := r.bytes(8); b != nil {
			in.Value = binary.LittleEndian.Uint64(b)
		}
	case immBytes16, immShuffle:
		b := r.bytes(16)
		if b == nil {
			return
		}
		in.Value, in.High = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		for i := 0; info.imm == immShuffle && i < len(b); i++ {
			if b[i] >= 32 {
				r.fail(Malformed, "a shuffle takes lane %d of 32", b[i])
			}
		}
	case immTargets:
		r.targets(in)
	case immTypes:
		in.Types = in.Types[:0]
		if n := r.u32(); r.err == nil && n != 1 {
			r.fail(Malformed, "a select of %d types", n)
		}
		in.Types = append(in.Types, r.valueType())
	case immRefType:
		in.X = uint32(r.refType())
	}
}

func (r *reader) targets(in *Instruction) {
	in.Targets = in.Targets[:0]
	for n := r.count(MaxBody, "labels of a br_table") + 1; n > 0 && r.err == nil; n-- {
		in.Targets = append(in.Targets, r.u32())
	}
}

func (r *reader) zero() {
	if c := r.byte(); r.err == nil && c != 0 {
		r.fail(Malformed, "a memory other than the first")
	}
}
