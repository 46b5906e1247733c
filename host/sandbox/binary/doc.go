// Package binary reads the WebAssembly binary format (core specification 2.0, chapter 5) before any engine sees a byte.
//
// It decodes all that stands outside of function bodies, holds every count to a limit, proves that active segments lie
// inside their memory or table, and writes the module again, section by section: without its custom sections, and for a
// module whose state can be captured also with its globals in the open. Of function bodies it only finds out what they can
// change. Work and memory are linear in the size of the module; nothing is allocated by an announced count. It knows no
// engine and no ABI, and must not run anything.
package binary

import "fmt"

// Limits of a module. They bound what an engine can be made to allocate before the module runs.
const (
	MaxModule   = 16 << 20 // bytes
	MaxTypes    = 10_000
	MaxImports  = 1_000
	MaxFuncs    = 100_000 // imported and own
	MaxTables   = 8
	MaxTable    = 65_536 // elements a table starts with
	MaxGlobals  = 10_000
	MaxExports  = 10_000
	MaxSegments = 100_000 // of elements, and of data; a Go module of 2 MB has 32,000
	MaxBody     = 1 << 20
	MaxLocals   = 50_000 // of one function
	MaxParams   = 100    // and results
	MaxName     = 10_000 // bytes of an import's or export's name
	MaxCustom   = 1_000
	// PageSize is the unit of memory limits.
	PageSize = 64 << 10
	// MaxPages is the most pages a 32-bit memory can have.
	MaxPages = 65_536
)

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
	return string(bytesOf(f.Params)) == string(bytesOf(o.Params)) && string(bytesOf(f.Results)) == string(bytesOf(o.Results))
}

func bytesOf(ts []ValueType) []byte {
	b := make([]byte, len(ts))
	for i, t := range ts {
		b[i] = byte(t)
	}
	return b
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

// Import is one imported function; a module that imports anything else is refused.
type Import struct {
	Module, Name string
	Type         uint32
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

// Global is one own global.
type Global struct {
	Type    ValueType
	Mutable bool
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
	Funcs    []uint32 // type of each own function
	Tables   []Limits
	Memories []Limits
	Globals  []Global
	Exports  []Export
	// Start is the start function's index, meaningful when HasStart is set.
	Start    uint32
	HasStart bool
	Customs  []Custom

	raw          []byte
	code, data   []byte // bodies of these sections
	sections     []section
	dataCount    uint32
	hasDataCount bool
	bodies       int
}

// FuncType returns the type of the function with that index, imports first.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	t := uint32(0)
	switch own := int64(index) - int64(len(m.Imports)); {
	case own < 0:
		t = m.Imports[index].Type
	case own < int64(len(m.Funcs)):
		t = m.Funcs[own]
	default:
		return FuncType{}, false
	}
	if int64(t) >= int64(len(m.Types)) {
		return FuncType{}, false
	}
	return m.Types[t], true
}
