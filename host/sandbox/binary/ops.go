package binary

import "fmt"

// Op is an instruction: its first byte, or for the prefixed ones Bulk or Vector plus the number behind the prefix.
type Op uint16

// Bulk and Vector are where the instructions behind the prefixes 0xfc and 0xfd begin.
const (
	Bulk   Op = 0x100
	Vector Op = 0x200
	numOps    = 0x300
)

// The instructions that are treated one by one.
const (
	OpUnreachable  Op = 0x00
	OpNop          Op = 0x01
	OpBlock        Op = 0x02
	OpLoop         Op = 0x03
	OpIf           Op = 0x04
	OpElse         Op = 0x05
	OpEnd          Op = 0x0b
	OpBr           Op = 0x0c
	OpBrIf         Op = 0x0d
	OpBrTable      Op = 0x0e
	OpReturn       Op = 0x0f
	OpCall         Op = 0x10
	OpCallIndirect Op = 0x11
	OpDrop         Op = 0x1a
	OpSelect       Op = 0x1b
	OpSelectTyped  Op = 0x1c
	OpLocalGet     Op = 0x20
	OpLocalSet     Op = 0x21
	OpLocalTee     Op = 0x22
	OpGlobalGet    Op = 0x23
	OpGlobalSet    Op = 0x24
	OpTableGet     Op = 0x25
	OpTableSet     Op = 0x26
	OpMemorySize   Op = 0x3f
	OpMemoryGrow   Op = 0x40
	OpI32Const     Op = 0x41
	OpI64Const     Op = 0x42
	OpF32Const     Op = 0x43
	OpF64Const     Op = 0x44
	OpI32RemS      Op = 0x6f
	OpI32RemU      Op = 0x70
	OpI64RemS      Op = 0x81
	OpI64RemU      Op = 0x82
	OpRefNull      Op = 0xd0
	OpRefFunc      Op = 0xd2

	OpMemoryInit = Bulk + 8
	OpDataDrop   = Bulk + 9
	OpMemoryCopy = Bulk + 10
	OpMemoryFill = Bulk + 11
	OpTableInit  = Bulk + 12
	OpElemDrop   = Bulk + 13
	OpTableCopy  = Bulk + 14
	OpTableGrow  = Bulk + 15
	OpTableSize  = Bulk + 16
	OpTableFill  = Bulk + 17

	OpV128Const   = Vector + 12
	OpI8x16Shuffl = Vector + 13
)

// String is the instruction's bytes.
func (op Op) String() string {
	switch {
	case op < Bulk:
		return fmt.Sprintf("0x%02x", uint16(op))
	case op < Vector:
		return fmt.Sprintf("0xfc %d", op-Bulk)
	}
	return fmt.Sprintf("0xfd %d", op-Vector)
}

// immediate says what follows an instruction.
type immediate uint8

const (
	immInvalid immediate = iota // no instruction of WebAssembly 2.0
	immNone
	immBlock    // block type
	immIndex    // one index
	immTwo      // two indexes
	immTargets  // the labels of br_table
	immTypes    // of select
	immMemory   // alignment and offset
	immLane     // the number of a lane
	immMemLane  // alignment, offset, lane
	immZero     // one zero byte
	immTwoZero  // two of them
	immIndexNul // an index and a zero byte
	immI32
	immI64
	immBytes4
	immBytes8
	immBytes16
	immShuffle
	immRefType
)

// opInfo is what is the same for every use of an instruction. Pops and pushes are -1 where they depend on a type.
type opInfo struct {
	imm          immediate
	pops, pushes int8
	limit        uint8 // of an alignment: its greatest power of two; of a lane: how many there are
	lanes        uint8 // of a lane besides an alignment
}

// ops is the table of all instructions of WebAssembly 2.0 (core specification, 5.4 and appendix A.7).
var ops = makeOps()

// Stack is how many values an instruction takes and leaves; -1 where that depends on a type.
func (op Op) Stack() (pops, pushes int) { return int(ops[op].pops), int(ops[op].pushes) }

func makeOps() *[numOps]opInfo {
	t := new([numOps]opInfo)
	set := func(first, last Op, imm immediate, pops, pushes int8, limit ...uint8) {
		for op := first; op <= last; op++ {
			t[op] = opInfo{imm: imm, pops: pops, pushes: pushes}
			if len(limit) > 0 {
				t[op].limit = limit[0]
			}
			if len(limit) > 1 {
				t[op].lanes = limit[1]
			}
		}
	}
	controlOps(set)
	numericOps(set)
	bulkOps(set)
	vectorMemoryOps(set)
	vectorOps(set)
	return t
}

type setOps func(first, last Op, imm immediate, pops, pushes int8, limit ...uint8)

func controlOps(set setOps) {
	set(OpUnreachable, OpUnreachable, immNone, -1, -1)
	set(OpNop, OpNop, immNone, 0, 0)
	set(OpBlock, OpIf, immBlock, -1, -1)
	set(OpElse, OpElse, immNone, -1, -1)
	set(OpEnd, OpEnd, immNone, -1, -1)
	set(OpBr, OpBrIf, immIndex, -1, -1)
	set(OpBrTable, OpBrTable, immTargets, -1, -1)
	set(OpReturn, OpReturn, immNone, -1, -1)
	set(OpCall, OpCall, immIndex, -1, -1)
	set(OpCallIndirect, OpCallIndirect, immTwo, -1, -1)
	set(OpDrop, OpDrop, immNone, 1, 0)
	set(OpSelect, OpSelect, immNone, 3, 1)
	set(OpSelectTyped, OpSelectTyped, immTypes, 3, 1)
	set(OpLocalGet, OpLocalGet, immIndex, 0, 1)
	set(OpLocalSet, OpLocalSet, immIndex, 1, 0)
	set(OpLocalTee, OpLocalTee, immIndex, 1, 1)
	set(OpGlobalGet, OpGlobalGet, immIndex, 0, 1)
	set(OpGlobalSet, OpGlobalSet, immIndex, 1, 0)
	set(OpTableGet, OpTableGet, immIndex, 1, 1)
	set(OpTableSet, OpTableSet, immIndex, 2, 0)
	set(OpMemorySize, OpMemorySize, immZero, 0, 1)
	set(OpMemoryGrow, OpMemoryGrow, immZero, 1, 1)
	set(OpRefNull, OpRefNull, immRefType, 0, 1)
	set(OpRefNull+1, OpRefNull+1, immNone, 1, 1) // ref.is_null
	set(OpRefFunc, OpRefFunc, immIndex, 0, 1)
	for i, align := range []uint8{2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2} { // loads
		set(0x28+Op(i), 0x28+Op(i), immMemory, 1, 1, align)
	}
	for i, align := range []uint8{2, 3, 2, 3, 0, 1, 0, 1, 2} { // stores
		set(0x36+Op(i), 0x36+Op(i), immMemory, 2, 0, align)
	}
}

func numericOps(set setOps) {
	set(OpI32Const, OpI32Const, immI32, 0, 1)
	set(OpI64Const, OpI64Const, immI64, 0, 1)
	set(OpF32Const, OpF32Const, immBytes4, 0, 1)
	set(OpF64Const, OpF64Const, immBytes8, 0, 1)
	set(0x45, 0xc4, immNone, 1, 1) // unary, and conversions
	for _, binary := range [][2]Op{{0x46, 0x4f}, {0x51, 0x66}, {0x6a, 0x78}, {0x7c, 0x8a}, {0x92, 0x98}, {0xa0, 0xa6}} {
		set(binary[0], binary[1], immNone, 2, 1)
	}
}

func bulkOps(set setOps) {
	set(Bulk, Bulk+7, immNone, 1, 1) // saturating conversions
	set(OpMemoryInit, OpMemoryInit, immIndexNul, 3, 0)
	set(OpDataDrop, OpDataDrop, immIndex, 0, 0)
	set(OpMemoryCopy, OpMemoryCopy, immTwoZero, 3, 0)
	set(OpMemoryFill, OpMemoryFill, immZero, 3, 0)
	set(OpTableInit, OpTableInit, immTwo, 3, 0)
	set(OpElemDrop, OpElemDrop, immIndex, 0, 0)
	set(OpTableCopy, OpTableCopy, immTwo, 3, 0)
	set(OpTableGrow, OpTableGrow, immIndex, 2, 1)
	set(OpTableSize, OpTableSize, immIndex, 0, 1)
	set(OpTableFill, OpTableFill, immIndex, 3, 0)
}

func vectorMemoryOps(set setOps) {
	for i, align := range []uint8{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3} {
		set(Vector+Op(i), Vector+Op(i), immMemory, 1, 1, align)
	}
	set(Vector+11, Vector+11, immMemory, 2, 0, 4)
	for i := range Op(4) {
		lanes := uint8(16 >> i)
		set(Vector+84+i, Vector+84+i, immMemLane, 2, 1, uint8(i), lanes)
		set(Vector+88+i, Vector+88+i, immMemLane, 2, 0, uint8(i), lanes)
	}
	set(Vector+92, Vector+92, immMemory, 1, 1, 2)
	set(Vector+93, Vector+93, immMemory, 1, 1, 3)
	for _, lane := range []struct {
		op    Op
		pops  int8
		lanes uint8
	}{{21, 1, 16}, {22, 1, 16}, {23, 2, 16}, {24, 1, 8}, {25, 1, 8}, {26, 2, 8}, {27, 1, 4}, {28, 2, 4}, {29, 1, 2}, {30, 2, 2}, {31, 1, 4}, {32, 2, 4}, {33, 1, 2}, {34, 2, 2}} {
		set(Vector+lane.op, Vector+lane.op, immLane, lane.pops, 1, lane.lanes)
	}
}

func vectorOps(set setOps) {
	set(OpV128Const, OpV128Const, immBytes16, 0, 1)
	set(OpI8x16Shuffl, OpI8x16Shuffl, immShuffle, 2, 1)
	for _, unary := range [][2]Op{
		{15, 20},
		{77, 77},
		{83, 83},
		{94, 100},
		{103, 106},
		{116, 117},
		{122, 122},
		{124, 129},
		{131, 132},
		{135, 138},
		{148, 148},
		{160, 161},
		{163, 164},
		{167, 170},
		{192, 193},
		{195, 196},
		{199, 202},
		{224, 225},
		{227, 227},
		{236, 237},
		{239, 239},
		{248, 255},
	} {
		set(Vector+unary[0], Vector+unary[1], immNone, 1, 1)
	}
	for _, binary := range [][2]Op{
		{14, 14},
		{35, 76},
		{78, 81},
		{101, 102},
		{107, 115},
		{118, 121},
		{123, 123},
		{130, 130},
		{133, 134},
		{139, 147},
		{149, 153},
		{155, 159},
		{171, 174},
		{177, 177},
		{181, 186},
		{188, 191},
		{203, 206},
		{209, 209},
		{213, 223},
		{228, 235},
		{240, 247},
	} {
		set(Vector+binary[0], Vector+binary[1], immNone, 2, 1)
	}
	set(Vector+82, Vector+82, immNone, 3, 1) // bitselect
}

// Immediates says whether an instruction has an alignment and an offset, and whether it has the number of a lane.
func (op Op) Immediates() (memory, lane bool) {
	imm := ops[op].imm
	return imm == immMemory || imm == immMemLane, imm == immLane || imm == immMemLane
}

// Known says whether an instruction is one of WebAssembly 2.0.
func Known(op Op) bool { return int(op) < len(ops) && ops[op].imm != immInvalid }
