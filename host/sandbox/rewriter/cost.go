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
	set(8, 0x6d, 0x6e, binary.OpI32RemS, binary.OpI32RemU, 0x7f, 0x80, binary.OpI64RemS, binary.OpI64RemU)               // integer division
	set(4, 0x91, 0x95, 0x9f, 0xa3, binary.Vector+227, binary.Vector+231, binary.Vector+239, binary.Vector+243)           // square root, division
	set(10, binary.OpMemoryInit, binary.OpMemoryCopy, binary.OpMemoryFill, binary.OpDataDrop, binary.OpElemDrop)         // besides their length
	set(10, binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill)                                                  // besides their length
	set(2, binary.OpTableGet, binary.OpTableSet, binary.OpTableSize, binary.OpI8x16Shuffl, binary.Vector+14 /*swizzle*/) // emulated by several machine instructions
	// These leave the compiled code and come back.
	set(1000, binary.OpMemoryGrow)
	set(500, binary.OpTableGrow, binary.OpRefFunc)
	return t
}

// cost of an instruction.
func cost(op binary.Op) int { return int(costs[op]) }
