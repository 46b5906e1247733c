// Package rewriter turns a module that was read strictly into one that can be run: bounded, and with the same results on
// every engine and processor. It re-encodes every instruction in its shortest form, so that an engine only ever parses
// what this package wrote.
//
// It knows the binary format alone: no engine, no ABI. What it writes is valid whenever what it read was; the engine
// judges that. Work and memory are linear in the size of the module.
package rewriter

import (
	"cmp"
	"fmt"
	"slices"
)

// CostVersion is the version of the table of costs. It is part of what the engine calls semantics: a change of the table
// changes which batches run out of fuel.
const CostVersion = 1

// Names by which a rewritten module and its host meet. A module that uses a name with the prefix itself is refused.
const (
	Prefix = "__wasmill_"
	// Module and Yield name the one function that is added to the imports, (fuel i64, depth i64) -> i64. It is called when
	// one of the two is below zero, and returns the fuel to go on with or ends the guest.
	Module = "__wasmill"
	Yield  = "yield"
	// Fuel and Depth are exported globals, mutable i64: what is left of the slice of fuel, and of the depth of calls.
	Fuel  = Prefix + "fuel"
	Depth = Prefix + "depth"
	// Start is the exported start function, taken out of the start section.
	Start = Prefix + "start"
)

// Global is the name under which a mutable global is exported.
func Global(index int) string { return fmt.Sprintf("%sg%d", Prefix, index) }

// Options are what a rewritten module is held to.
type Options struct {
	// MaxPages and MaxTable clamp the declared maxima of memories and tables; where a module declares none, they become it.
	MaxPages, MaxTable uint32
	// KeepData leaves active data segments in the module. A capturable module does without: its image holds them.
	KeepData bool
	// Plain leaves code as it is, but for its encoding: no fuel, no depth, no canonical NaNs. For comparisons.
	Plain bool
	// Offsets asks for Module.Offsets.
	Offsets bool
}

// Offset pairs a place in the rewritten code with where it came from, both counted as engines and debuggers do: from the
// first byte of the code section's content.
type Offset struct {
	New, Old uint32
}

// Output is a rewritten module.
type Output struct {
	Wasm []byte
	// Offsets of each instruction, rising, when they were asked for.
	Offsets []Offset
	// Functions is how many functions the module has without what was added; Index maps the index of a function in Wasm
	// back with it.
	Imports, Functions uint32
}

// Index is the index in the module that was read of a function of the rewritten one; false for one that was added.
func (o *Output) Index(index uint32) (uint32, bool) {
	switch {
	case index < o.Imports:
		return index, true
	case index == o.Imports, index > o.Functions:
		return 0, false
	}
	return index - 1, true
}

// Place is where the instruction at an offset of the rewritten code came from; what was added counts to the instruction
// before it. Without Offsets it is the offset itself.
func (o *Output) Place(offset uint32) uint32 {
	at, found := slices.BinarySearchFunc(o.Offsets, offset, func(p Offset, n uint32) int { return cmp.Compare(p.New, n) })
	switch {
	case found:
		return o.Offsets[at].Old
	case at > 0:
		return o.Offsets[at-1].Old
	}
	return offset
}
