package rewriter

import "github.com/wasmill/wasmill/host/sandbox/binary"

// Costs of the second kind, charged by what an instruction is given; see README.md for the whole table of version 1.
const (
	costBytesShift = 3    // a bulk memory instruction costs its length divided by 8
	costPage       = 8192 // a page that a memory.grow adds
	// bulkChunk is how many bytes a bulk memory instruction works on between two charges.
	bulkChunk = 1 << 20
	// maxItems and maxBytes are the most that table instructions and memory.init are charged for: with more they trap.
	maxItems = binary.MaxTable + 1
	maxBytes = binary.MaxModule + 1
	// regionMax is how long the path through a region may get by what stands behind a fork or a join.
	regionMax = 64
	// frameShare is how many values of 128 bits a frame may have to keep for each unit of depth. At the greatest depth that
	// makes 31 MB; an engine's compiled code runs out of stack at 50 MB, after a number of calls that is its own.
	frameShare = 1024
)

// costs is the fixed cost of each instruction.
var costs = makeCosts()

func makeCosts() *[0x300]uint16 {
	t := new([0x300]uint16)
	for i := range t {
		t[i] = 1
	}
	set := func(cost uint16, ops ...binary.Op) {
		for _, op := range ops {
			t[op] = cost
		}
	}
	set(0, binary.OpBlock, binary.OpElse, binary.OpEnd) // they make no code; a turn of a loop costs what takes it back
	set(4, binary.OpCall)
	set(8, binary.OpCallIndirect)
	set(8, 0x6d, 0x6e, binary.OpI32RemS, binary.OpI32RemU, 0x7f, 0x80, binary.OpI64RemS, binary.OpI64RemU) // integer division
	set(4, 0x91, 0x95)                                                                                     // square root and division of f32
	set(8, 0x9f, 0xa3, binary.Vector+227, binary.Vector+231, binary.Vector+239, binary.Vector+243)         // and of f64 and vectors
	set(16, binary.OpMemoryInit, binary.OpMemoryCopy, binary.OpMemoryFill)                                 // besides their length
	set(10, binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill)                                    // besides their length
	set(10, binary.OpDataDrop, binary.OpElemDrop)
	set(2, binary.OpTableGet, binary.OpTableSet, binary.OpTableSize)
	// Vector instructions that take several of a processor's: shuffle, swizzle, popcnt, demote, nearest, multiplication and
	// shift of i64x2, minimum and maximum, conversions.
	set(2, binary.OpI8x16Shuffl, binary.Vector+14, binary.Vector+98, binary.Vector+94, binary.Vector+106, binary.Vector+148)
	set(3, binary.Vector+213, binary.Vector+232, binary.Vector+233, binary.Vector+244, binary.Vector+245)
	set(4, binary.Vector+204, binary.Vector+248, binary.Vector+249, binary.Vector+251, binary.Vector+252, binary.Vector+253, binary.Vector+255)
	// These leave the compiled code and come back.
	set(1000, binary.OpMemoryGrow, binary.OpRefFunc) // of what an engine may make for each ref.func: see plan.refs
	set(500, binary.OpTableGrow)
	return t
}

// cost of an instruction.
func cost(op binary.Op) int { return int(costs[op]) }
