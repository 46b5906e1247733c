// Package wasmtest assembles small WebAssembly modules for tests, also such as no toolchain would make. Nothing but tests
// may import it.
package wasmtest

import "encoding/binary"

// Value types, as bytes of the format.
const (
	I32 = 0x7f
	I64 = 0x7e
	F64 = 0x7c
)

// Section ids of the format.
const (
	Custom = iota
	Type
	Import
	Function
	Table
	Memory
	Global
	Export
	Start
	Element
	Code
	Data
	DataCount
)

// Header begins every module.
const Header = "\x00asm\x01\x00\x00\x00"

// U32 is a number as LEB128.
func U32(n uint32) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// S32 is a signed number as LEB128.
func S32(n int32) string {
	var out []byte
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return string(append(out, c))
		}
		out = append(out, c|0x80)
	}
}

// Name is a text behind its length; so is any run of bytes.
func Name(s string) string { return U32(uint32(len(s))) + s }

// Vec is items behind their number.
func Vec(items ...string) string {
	out := U32(uint32(len(items)))
	for _, item := range items {
		out += item
	}
	return out
}

// Section is a section with a body.
func Section(id byte, body string) string { return string(rune(id)) + Name(body) }

// FuncType is a signature.
func FuncType(params, results string) string { return "\x60" + Name(params) + Name(results) }

// Func is a function of type typ, which may be exported.
type Func struct {
	Export string
	Params string // bytes of value types
	Result string
	Locals string // bytes of value types
	Code   string // without its end
}

// ImportFunc is a function that is imported.
type ImportFunc struct {
	Module, Name   string
	Params, Result string
}

// Module is a module in the making. Function indexes count Imports first.
type Module struct {
	Imports  []ImportFunc
	Funcs    []Func
	Pages    uint32 // the memory, exported as "memory"
	MaxPages uint32 // 0: none
	Table    uint32 // elements of a table that holds functions from index 0 on, as many as Elements says
	Elements uint32
	Start    int // index of the start function, 0: none (an import cannot be one here)
	Globals  []string
	Data     string // at address 8
	Customs  [][2]string
	Exports  []string // further ones, as the format has them
}

// Bytes is the module in the binary format.
func (m *Module) Bytes() []byte {
	var types, imports, funcs, exports, code []string
	for _, f := range m.Imports {
		imports = append(imports, Name(f.Module)+Name(f.Name)+"\x00"+U32(uint32(len(types))))
		types = append(types, FuncType(f.Params, f.Result))
	}
	for i, f := range m.Funcs {
		funcs = append(funcs, U32(uint32(len(types))))
		types = append(types, FuncType(f.Params, f.Result))
		if f.Export != "" {
			exports = append(exports, Name(f.Export)+"\x00"+U32(uint32(len(m.Imports)+i)))
		}
		var locals []string
		for _, t := range []byte(f.Locals) {
			locals = append(locals, "\x01"+string(rune(t)))
		}
		code = append(code, Name(Vec(locals...)+f.Code+"\x0b"))
	}
	exports = append(append(exports, Name("memory")+"\x02\x00"), m.Exports...)
	memory := "\x00" + U32(m.Pages)
	if m.MaxPages > 0 {
		memory = "\x01" + U32(m.Pages) + U32(m.MaxPages)
	}
	out := Header + Section(Type, Vec(types...)) + Section(Import, Vec(imports...)) + Section(Function, Vec(funcs...))
	if m.Table > 0 {
		out += Section(Table, Vec("\x70\x00"+U32(m.Table)))
	}
	out += Section(Memory, Vec(memory))
	if len(m.Globals) > 0 {
		out += Section(Global, Vec(m.Globals...))
	}
	out += Section(Export, Vec(exports...))
	if m.Start > 0 {
		out += Section(Start, U32(uint32(m.Start)))
	}
	if m.Elements > 0 {
		var items []string
		for i := range m.Elements {
			items = append(items, U32(i))
		}
		out += Section(Element, Vec("\x00"+Const(0)+"\x0b"+Vec(items...)))
	}
	out += Section(Code, Vec(code...))
	if m.Data != "" {
		out += Section(Data, Vec("\x00"+Const(8)+"\x0b"+Name(m.Data)))
	}
	for _, c := range m.Customs {
		out += Section(Custom, Name(c[0])+c[1])
	}
	return []byte(out)
}

// Instructions that tests write often.
const (
	Unreachable = "\x00"
	Drop        = "\x1a"
	Loop        = "\x03\x40" // without a result
	End         = "\x0b"
	Br0         = "\x0c\x00"
	Grow        = "\x40\x00"
	Add         = "\x6a"
)

// Const is i32.const.
func Const(n int32) string { return "\x41" + S32(n) }

// Get is local.get.
func Get(local uint32) string { return "\x20" + U32(local) }

// Call is call.
func Call(index uint32) string { return "\x10" + U32(index) }

// Load and Store are of an i32 at an address on the stack, plus offset.
func Load(offset uint32) string { return "\x28\x02" + U32(offset) }

// Store is i32.store.
func Store(offset uint32) string { return "\x36\x02" + U32(offset) }

// Transform is a module that ABI 1 takes: it imports emit (function 0) and log (function 1), has 8 pages, answers each
// allocation with the address 65536, and runs init and batch, each of which leaves an i32.
func Transform(init, batch string) *Module {
	return &Module{
		Imports: []ImportFunc{
			{Module: "wasmill_1", Name: "emit", Params: "\x7f\x7f\x7f"},
			{Module: "wasmill_1", Name: "log", Params: "\x7f\x7f\x7f"},
		},
		Funcs: []Func{
			{Export: "wasmill_alloc", Params: "\x7f", Result: "\x7f", Code: Const(65536)},
			{Export: "wasmill_init", Params: "\x7f\x7f\x7f", Result: "\x7f", Code: init},
			{Export: "wasmill_batch", Params: "\x7f\x7f", Result: "\x7f", Code: batch},
		},
		Pages: 8,
	}
}

// Echo is the code of a batch that emits the records of its frame as they lie: count at 16, records at 20, stride at 24.
func Echo() string {
	return Get(0) + Load(20) + Get(0) + Load(16) + Get(0) + Load(24) + Call(0) + Const(0)
}
