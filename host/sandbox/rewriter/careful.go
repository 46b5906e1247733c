package rewriter

import "github.com/wasmill/wasmill/host/sandbox/binary"

// wazero's compilers change some registers in place without telling their register allocator: under pressure it takes such
// a register for an operand that it reads back, and what was computed is lost. On amd64 that can happen to all
// instructions whose lowering first computes and then touches an operand for the first time: copysign (its sign),
// v128.bitselect, i64x2.mul, i8x16.popcnt, the minima and maxima of vectors, the conversion of unsigned 64-bit integers
// to floats; and where a float is put into a lane, on both processors. The compiler for arm64 may put a spill between the
// division and the multiplication that a remainder is made of. Each of these is written as instructions that are done in
// one step, or put in a function of its own, where nothing can be under pressure.

const (
	opI32And       binary.Op = 0x71
	opI32Or        binary.Op = 0x72
	opI64And       binary.Op = 0x83
	opToBits32     binary.Op = 0xbc
	opToBits64     binary.Op = 0xbd
	opFromBits32   binary.Op = 0xbe
	opFromBits64   binary.Op = 0xbf
	opCopySign32   binary.Op = 0x98
	opCopySign64   binary.Op = 0xa6
	opConvertU32   binary.Op = 0xb5 // f32.convert_i64_u
	opConvertU64   binary.Op = 0xba
	opVectorAnd              = binary.Vector + 78
	opVectorAndNot           = binary.Vector + 79
	opVectorOr               = binary.Vector + 80
	opBitSelect              = binary.Vector + 82
	opReplace32x4            = binary.Vector + 28
	opReplace64x2            = binary.Vector + 30
	opReplaceF32x4           = binary.Vector + 32
	opReplaceF64x2           = binary.Vector + 34
	opPopCount               = binary.Vector + 98
	opMul64x2                = binary.Vector + 213
	opMinF32x4               = binary.Vector + 232
	opMaxF32x4               = binary.Vector + 233
	opMinF64x2               = binary.Vector + 244
	opMaxF64x2               = binary.Vector + 245
)

// careful are the locals of instructions that are written as several; zero: not there.
type careful struct {
	bits32, bits64 uint32
	second, mask   uint32 // vectors
}

// needCareful adds the locals that an instruction takes when it is written as several.
func (f *function) needCareful(op binary.Op) {
	need := func(index *uint32, t binary.ValueType) {
		if *index == 0 {
			*index = f.local(t)
		}
	}
	switch op {
	case opCopySign32:
		need(&f.careful.bits32, binary.I32)
	case opCopySign64:
		need(&f.careful.bits64, binary.I64)
	case opBitSelect:
		need(&f.careful.second, binary.V128)
		need(&f.careful.mask, binary.V128)
	}
}

// carefully writes an instruction as several; false when it is none of those.
func (f *function) carefully(in *binary.Instruction) bool {
	switch in.Op {
	case opCopySign32:
		f.w.op(opToBits32)
		f.w.i32(-1 << 31)
		f.w.op(opI32And)
		f.w.opX(binary.OpLocalSet, f.careful.bits32)
		f.w.op(opToBits32)
		f.w.i32(1<<31 - 1)
		f.w.op(opI32And)
		f.w.opX(binary.OpLocalGet, f.careful.bits32)
		f.w.op(opI32Or)
		f.w.op(opFromBits32)
	case opCopySign64:
		f.w.op(opToBits64)
		f.w.i64(-1 << 63)
		f.w.op(opI64And)
		f.w.opX(binary.OpLocalSet, f.careful.bits64)
		f.w.op(opToBits64)
		f.w.i64(1<<63 - 1)
		f.w.op(opI64And)
		f.w.opX(binary.OpLocalGet, f.careful.bits64)
		f.w.op(opI64Or)
		f.w.op(opFromBits64)
	case opBitSelect:
		f.bitSelect()
	case opReplaceF32x4:
		f.w.op(opToBits32)
		f.w.op(opReplace32x4)
		f.w.byte(in.Lane)
	case opReplaceF64x2:
		f.w.op(opToBits64)
		f.w.op(opReplace64x2)
		f.w.byte(in.Lane)
	default:
		return false
	}
	return true
}

// bitSelect takes the bits of one vector where a mask is set, and those of another where it is not.
func (f *function) bitSelect() {
	f.w.opX(binary.OpLocalSet, f.careful.mask)
	f.w.opX(binary.OpLocalSet, f.careful.second)
	f.w.opX(binary.OpLocalGet, f.careful.mask)
	f.w.op(opVectorAnd)
	f.w.opX(binary.OpLocalGet, f.careful.second)
	f.w.opX(binary.OpLocalGet, f.careful.mask)
	f.w.op(opVectorAndNot)
	f.w.op(opVectorOr)
}
