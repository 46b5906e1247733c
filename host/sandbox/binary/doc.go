// Package binary reads the WebAssembly binary format (core specification 2.0, chapter 5) before any engine sees a byte.
//
// It decodes everything, function bodies included, holds every count to a limit, proves that active segments lie inside
// their memory or table, and that every index refers to something that is there: so that what a rewriter adds behind what
// a module has is out of the module's reach. It judges no types: an engine does. Work and memory are linear in the size of
// the module; nothing is allocated by an announced count. It knows no engine and no ABI, and must not run anything.
package binary

import (
	"fmt"
	"slices"
)

// Limits of a module. They bound what an engine can be made to allocate and to compute before the module runs, and leave
// real modules room, debug builds among them. CALIBRATION.md, beside the guests of this sandbox, holds what was measured.
const (
	MaxModule   = 16 << 20 // bytes
	MaxTypes    = 10_000
	MaxImports  = 1_000
	MaxFuncs    = 100_000 // imported and own
	MaxTables   = 8
	MaxTable    = 65_536 // elements of a table
	MaxGlobals  = 10_000
	MaxExports  = 10_000
	MaxSegments = 100_000 // of elements, and of data; Go's linker joins segments so that there are never more
	MaxElements = 200_000 // in all segments
	MaxParams   = 100     // and results
	MaxName     = 10_000  // bytes of an import's or export's name
	MaxCustom   = 1_000
)

// Limits of a function's code, and of what all functions of a module have together. A compiler's work is not linear in the
// code: it grows with what is alive where, which these count.
const (
	// MaxBody is how many bytes a function may have.
	MaxBody = 1 << 20
	// MaxCalls is how many calls, an indirect one as four: each takes kilobytes in a compiler, and two bytes of code.
	MaxCalls = 100_000
	// MaxLocals is how many locals besides the parameters. Debug builds give each value of the source one.
	MaxLocals = 60_000
	// MaxModuleLocals is for all functions: a local takes a few bytes of code for any number, and room for each.
	MaxModuleLocals = 2_000_000
	// MaxNesting is for blocks in blocks. The cost is quadratic: 10,000 ifs take seconds.
	MaxNesting = 10_000
	// MaxTargets is for the labels of one br_table, its default not counted.
	MaxTargets = 25_000
	// MaxAllTargets is for the labels of all br_tables of a function: each becomes a block.
	MaxAllTargets = 50_000
	// MaxModuleTargets is for the labels of all br_tables of a module.
	MaxModuleTargets = 1_200_000
	// MaxLoopLocals is the most that the depth of nested loops times the number of shared locals used in the innermost may
	// come to. A local is shared if its values go from one part of the code between branches and labels to another: others
	// cost nothing.
	MaxLoopLocals = 20_000
	// MaxModuleLoops is for the shared locals of all loops of a module, each counted once for each loop it is used in.
	MaxModuleLoops = 1_000_000
	// MaxSpans is for the parts of the code that the locals of a function are alive over, each from the first to the last
	// that uses it, summed over them: what a row of ifs costs.
	MaxSpans = 3_000_000
	// MaxMerged is how many values of shared locals may meet at the loops, ifs and named blocks of a function: one for each
	// local that is written inside. They are in its frame too.
	MaxMerged = 260_000
	// MaxPassed is how many values are passed on where they meet: the same, once for each branch and once for going on.
	MaxPassed = 1_500_000
	// MaxWaysBack is for the square of the branches to a loop times the shared locals that are written inside, summed over
	// the loops of a function: a compiler goes over all of them for each.
	MaxWaysBack = 1_000_000_000
	// MaxHeld is how many values may lie on the stack at the blocks and conditional branches of a function, summed over
	// these. Compilers keep hardly any there.
	MaxHeld = 100_000_000
)

// What the format says of memories.
const (
	// PageSize is the unit of memory limits.
	PageSize = 64 << 10
	// MaxPages is the most pages a 32-bit memory can have.
	MaxPages = 65_536
)

// Profile says what a module is held to.
type Profile struct {
	// Any takes imports of every kind, tables of any size and every signature, as the specification's own tests need.
	Any bool
}

// Reason says of what sort an Error is.
type Reason uint8

// The reasons.
const (
	NotWasm   Reason = iota + 1 // other bytes than a core WebAssembly module of version 1
	Component                   // a component, which holds core modules
	Malformed                   // cut off, or against the format
	TooLarge                    // a limit of this package
	Feature                     // outside of what is run here
	BadImport                   // an import of anything but a function
)

// Error says what is wrong and where, in bytes from the start of the module.
type Error struct {
	Reason Reason
	Offset int
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Text, e.Offset) }

// ValueType is the type of a parameter, a result or a global.
type ValueType byte

// The value types of the format.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type 0x%02x", byte(t))
}

// FuncType is a function's signature.
type FuncType struct {
	Params, Results []ValueType
}

// Equal says whether both have the same parameters and results.
func (f FuncType) Equal(o FuncType) bool {
	return slices.Equal(f.Params, o.Params) && slices.Equal(f.Results, o.Results)
}

func (f FuncType) String() string {
	return list(f.Params) + " -> " + list(f.Results)
}

func list(ts []ValueType) string {
	s := "("
	for i, t := range ts {
		if i > 0 {
			s += ", "
		}
		s += t.String()
	}
	return s + ")"
}

// Kind is what an import or export refers to.
type Kind byte

// The kinds of the format.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Import is one imported function.
type Import struct {
	Module, Name string
	Type         uint32
}

// Foreign is an import of another kind. Only Profile.Any takes them.
type Foreign struct {
	Module, Name string
	Kind         Kind
	Table        Table
	Memory       Limits
	Global       Global
}

// Export is one export; Index counts imports first.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Limits are a memory's pages or a table's elements. Max is meaningful when HasMax is set.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Table is one table.
type Table struct {
	Limits
	Type ValueType
}

// Global is one global.
type Global struct {
	Type    ValueType
	Mutable bool
}

// Const is a constant expression of one instruction. X is an index, or a reference type.
type Const struct {
	Op          Op
	X           uint32
	Value, High uint64
}

// Mode says what a segment is for.
type Mode uint8

// The modes of segments.
const (
	Active Mode = iota
	Passive
	Declarative
)

// Element is a segment of elements: functions by their index, or expressions.
type Element struct {
	Mode   Mode
	Table  uint32
	Offset Const
	Type   ValueType
	Funcs  []uint32
	Exprs  []Const
}

// Data is a segment of data. Bytes are a part of the module's.
type Data struct {
	Mode   Mode
	Offset Const
	Bytes  []byte
}

// Locals is a group of locals of one type.
type Locals struct {
	Count uint32
	Type  ValueType
}

// Body is a function's own locals and code, which ends with its end. Offset is where the code begins in the module.
type Body struct {
	Locals []Locals
	Code   []byte
	Offset int
	// Instructions is how many there are.
	Instructions int
	// Slots bounds how many values a frame of the function can have to keep: one for each instruction, local, parameter and
	// further value of a block or call, and one for each shared local at each loop, if and named block inside of which it is set.
	Slots int
	// Vectors says that some of them may be of 128 bits.
	Vectors bool
}

// Read returns a reader of the body's instructions.
func (b *Body) Read() *Code { return &Code{r: reader{b: b.Code, base: b.Offset}} }

// indirectCall is how many calls an indirect one counts as.
const indirectCall = 4

// Counts are what the limits of code bound: of the largest function, each by itself, and of all functions together.
type Counts struct {
	Bytes, Locals, Calls, Nesting, Targets, AllTargets, LoopLocals, Spans, Merged, Passed, WaysBack, Held int64

	ModuleLocals, ModuleTargets, ModuleLoops int64
}

// add takes in what one function has.
func (c *Counts) add(f *Counts) {
	c.Bytes, c.Locals, c.Calls = max(c.Bytes, f.Bytes), max(c.Locals, f.Locals), max(c.Calls, f.Calls)
	c.Nesting, c.Targets, c.AllTargets = max(c.Nesting, f.Nesting), max(c.Targets, f.Targets), max(c.AllTargets, f.AllTargets)
	c.LoopLocals, c.Spans, c.Merged = max(c.LoopLocals, f.LoopLocals), max(c.Spans, f.Spans), max(c.Merged, f.Merged)
	c.Passed, c.WaysBack, c.Held = max(c.Passed, f.Passed), max(c.WaysBack, f.WaysBack), max(c.Held, f.Held)
	c.ModuleLocals += f.Locals
	c.ModuleTargets += f.AllTargets
	c.ModuleLoops += f.ModuleLoops
}

// Custom is a custom section; Data is a part of the module's bytes.
type Custom struct {
	Name string
	Data []byte
}

// section is where a section lies: at its id, and one past its end.
type section struct {
	id         byte
	start, end int
}

// Module is what was read.
type Module struct {
	Types    []FuncType
	Imports  []Import
	Foreign  []Foreign
	Funcs    []uint32 // type of each own function
	Tables   []Table
	Memories []Limits
	Globals  []Global
	Inits    []Const // of the globals
	Exports  []Export
	// Start is the start function's index, meaningful when HasStart is set.
	Start    uint32
	HasStart bool
	Elements []Element
	// HasDataCount says that the data count section is there; then DataCount is len(Data).
	HasDataCount bool
	DataCount    uint32
	Data         []Data
	Bodies       []Body
	Customs      []Custom
	// Counts are what the limits of code bound.
	Counts Counts
	// CodeStart is where the content of the code section begins in the module: debuggers count from there.
	CodeStart int

	profile  Profile
	raw      []byte
	sections []section
	effects  Effects
	// foreign is how many imports there are of each kind that come before the own ones in its index space.
	foreign [KindGlobal + 1]int
	// declared functions may be referred to by ref.func.
	declared []bool
	elements int // in all segments
}

// Count is how many functions, tables, memories or globals there are, imported ones included.
func (m *Module) Count(k Kind) int {
	switch k {
	case KindFunc:
		return len(m.Imports) + len(m.Funcs)
	case KindTable:
		return m.foreign[k] + len(m.Tables)
	case KindMemory:
		return m.foreign[k] + len(m.Memories)
	case KindGlobal:
		return m.foreign[k] + len(m.Globals)
	}
	return 0
}

// GlobalAt is the global with that index, which must be there, imports first.
func (m *Module) GlobalAt(index uint32) Global {
	for i := range m.Foreign {
		if m.Foreign[i].Kind != KindGlobal {
			continue
		}
		if index == 0 {
			return m.Foreign[i].Global
		}
		index--
	}
	return m.Globals[index]
}

// FuncType returns the type of the function with that index, imports first.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	t, ok := m.FuncTypeIndex(index)
	if !ok || int64(t) >= int64(len(m.Types)) {
		return FuncType{}, false
	}
	return m.Types[t], true
}

// FuncTypeIndex returns the index of a function's type.
func (m *Module) FuncTypeIndex(index uint32) (uint32, bool) {
	own := int64(index) - int64(len(m.Imports))
	switch {
	case own < 0:
		return m.Imports[index].Type, true
	case own < int64(len(m.Funcs)):
		return m.Funcs[own], true
	}
	return 0, false
}
