package binary

import (
	"bytes"
	"fmt"
)

// Section ids of the format.
const (
	idCustom = iota
	idType
	idImport
	idFunction
	idTable
	idMemory
	idGlobal
	idExport
	idStart
	idElement
	idCode
	idData
	idDataCount
)

// order is the rank of each section id in a module; data count stands before code.
var order = [...]int{
	idType: 1, idImport: 2, idFunction: 3, idTable: 4, idMemory: 5, idGlobal: 6, idExport: 7, idStart: 8, idElement: 9,
	idDataCount: 10, idCode: 11, idData: 12,
}

var sectionName = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
	"data count",
}

const headerSize = 8

// Parse reads a module that is to be run. The Module keeps b; the error is an *Error.
func Parse(b []byte) (*Module, error) { return Profile{}.Parse(b) }

// Parse reads a module. The Module keeps b; the error is an *Error.
func (p Profile) Parse(b []byte) (*Module, error) {
	if err := checkHeader(b); err != nil {
		return nil, err
	}
	if len(b) > MaxModule {
		return nil, &Error{Reason: TooLarge, Text: fmt.Sprintf("it has %d bytes, at most %d are taken", len(b), MaxModule)}
	}
	m := &Module{raw: b, profile: p}
	r := &reader{b: b, pos: headerSize}
	last := 0
	for !r.done() {
		s := section{start: r.pos}
		s.id = r.byte()
		body := r.section()
		s.end = r.pos
		if r.err != nil {
			break
		}
		if int(s.id) >= len(sectionName) {
			return nil, &Error{Reason: Feature, Offset: s.start, Text: fmt.Sprintf("section %d is none of WebAssembly 2.0", s.id)}
		}
		if s.id != idCustom {
			if order[s.id] <= last {
				return nil, &Error{Reason: Malformed, Offset: s.start, Text: "the " + sectionName[s.id] + " section is out of order or there twice"}
			}
			last = order[s.id]
		}
		m.readSection(s.id, body)
		if body.err == nil && body.left() > 0 {
			body.fail(Malformed, "%d bytes too many", body.left())
		}
		if body.err != nil {
			body.err.Text = sectionName[s.id] + " section: " + body.err.Text
			return nil, body.err
		}
		m.sections = append(m.sections, s)
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := m.checkIndexes(); err != nil {
		return nil, err
	}
	if err := m.checkBodies(); err != nil {
		return nil, err
	}
	return m, nil
}

// section reads a section's size and returns a reader over its bytes.
func (r *reader) section() *reader {
	size := r.u32()
	start := r.pos
	if r.err == nil && uint64(size) > uint64(r.left()) {
		r.fail(Malformed, "the file is cut off: a section of %d bytes begins here, %d are left", size, r.left())
	}
	return &reader{b: r.bytes(size), base: r.base + start}
}

func (m *Module) readSection(id byte, r *reader) {
	switch id {
	case idCustom:
		m.readCustom(r)
	case idType:
		m.readTypes(r)
	case idImport:
		m.readImports(r)
	case idFunction:
		for n := r.count(MaxFuncs-len(m.Imports), "functions"); n > 0 && r.err == nil; n-- {
			m.Funcs = append(m.Funcs, r.u32())
		}
	case idTable:
		m.readTables(r)
	case idMemory:
		m.readMemories(r)
	case idGlobal:
		m.readGlobals(r)
	case idExport:
		m.readExports(r)
	case idStart:
		m.Start, m.HasStart = r.u32(), true
	case idElement:
		m.readElements(r)
	case idDataCount:
		m.DataCount, m.HasDataCount = r.u32(), true
	case idCode:
		m.CodeStart = r.base
		m.readCode(r)
	case idData:
		m.readData(r)
	}
}

func (m *Module) readCustom(r *reader) {
	if len(m.Customs) == MaxCustom {
		r.fail(TooLarge, "more than %d of them", MaxCustom)
		return
	}
	name := r.name()
	m.Customs = append(m.Customs, Custom{Name: name, Data: r.bytes(uint32(r.left()))})
}

func (m *Module) readTypes(r *reader) {
	for n := r.count(MaxTypes, "types"); n > 0 && r.err == nil; n-- {
		if form := r.byte(); r.err == nil && form != 0x60 {
			r.fail(Feature, "0x%02x is no function type", form)
		}
		most := MaxParams
		if m.profile.Any {
			most = MaxLocals
		}
		m.Types = append(m.Types, FuncType{Params: r.valueTypes(most), Results: r.valueTypes(most)})
	}
}

func (r *reader) valueTypes(most int) []ValueType {
	var ts []ValueType
	for n := r.count(most, "parameters or results"); n > 0 && r.err == nil; n-- {
		ts = append(ts, r.valueType())
	}
	return ts
}

func (m *Module) readImports(r *reader) {
	for n := r.count(MaxImports, "imports"); n > 0 && r.err == nil; n-- {
		im := Foreign{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		switch im.Kind {
		case KindFunc:
			m.Imports = append(m.Imports, Import{Module: im.Module, Name: im.Name, Type: r.u32()})
			continue
		case KindTable:
			im.Table = r.table()
		case KindMemory:
			im.Memory = r.memory()
		case KindGlobal:
			im.Global = r.globalType()
		default:
			r.fail(BadImport, "it imports %.80q.%.80q of %s", im.Module, im.Name, im.Kind)
		}
		if r.err != nil {
			return
		}
		if !m.profile.Any {
			r.fail(BadImport, "it imports the %s %.80q.%.80q: only functions can be imported", im.Kind, im.Module, im.Name)
		}
		m.Foreign = append(m.Foreign, im)
		m.foreign[im.Kind]++
	}
}

func (r *reader) table() Table {
	t := r.refType()
	return Table{Limits: r.limits(), Type: t}
}

func (m *Module) readTables(r *reader) {
	for n := r.count(MaxTables, "tables"); n > 0 && r.err == nil; n-- {
		t := r.table()
		if t.Min > MaxTable && !m.profile.Any {
			r.fail(TooLarge, "a table of %d elements, at most %d are taken", t.Min, MaxTable)
		}
		m.Tables = append(m.Tables, t)
	}
}

func (r *reader) memory() Limits {
	l := r.limits()
	if l.Min > MaxPages || l.HasMax && l.Max > MaxPages {
		r.fail(Malformed, "a memory of more than %d pages", MaxPages)
	}
	return l
}

func (m *Module) readMemories(r *reader) {
	n := r.u32()
	if have := uint64(n) + uint64(m.foreign[KindMemory]); r.err == nil && have > 1 {
		r.fail(Feature, "%d memories, one is run here", have)
	}
	for ; n > 0 && r.err == nil; n-- {
		m.Memories = append(m.Memories, r.memory())
	}
}

func (r *reader) globalType() Global {
	g := Global{Type: r.valueType()}
	mutable := r.byte()
	if r.err == nil && mutable > 1 {
		r.fail(Malformed, "0x%02x says neither constant nor mutable", mutable)
	}
	g.Mutable = mutable == 1
	return g
}

func (m *Module) readGlobals(r *reader) {
	for n := r.count(MaxGlobals, "globals"); n > 0 && r.err == nil; n-- {
		m.Globals = append(m.Globals, r.globalType())
		m.Inits = append(m.Inits, m.constant(r))
	}
}

func (m *Module) readExports(r *reader) {
	seen := map[string]bool{}
	for n := r.count(MaxExports, "exports"); n > 0 && r.err == nil; n-- {
		e := Export{Name: r.name(), Kind: Kind(r.byte()), Index: r.u32()}
		if r.err == nil && e.Kind > KindGlobal {
			r.fail(Feature, "0x%02x is no kind of export", byte(e.Kind))
		}
		if seen[e.Name] {
			r.fail(Malformed, "the name %.80q is exported twice", e.Name)
		}
		seen[e.Name] = true
		if e.Kind == KindFunc {
			m.declare(r, e.Index)
		}
		m.Exports = append(m.Exports, e)
	}
}

// checkHeader tells a module of version 1 from all the other things people hand in.
func checkHeader(b []byte) error {
	other := func(format string, args ...any) error {
		return &Error{Reason: NotWasm, Text: fmt.Sprintf(format, args...)}
	}
	starts := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case len(b) == 0:
		return other("the file is empty")
	case starts("\x00asm"):
	case starts("\x1f\x8b"):
		return other("this is a gzip file: unpack it first")
	case starts("\x28\xb5\x2f\xfd"):
		return other("this is a zstd file: unpack it first")
	case starts("\x7fELF"), starts("\xcf\xfa\xed\xfe"), starts("MZ"):
		return other("this is a native program, not a WebAssembly module")
	case starts("!<arch>"):
		return other("this is a static library, not a linked module")
	case starts("PK\x03\x04"):
		return other("this is a zip file: unpack it first")
	case bytes.HasPrefix(bytes.TrimSpace(b), []byte("(module")), bytes.HasPrefix(bytes.TrimSpace(b), []byte("(component")):
		return other("this is WebAssembly text: assemble it first, for example with wat2wasm")
	case isText(b):
		return other("this is a text file, not a WebAssembly module")
	default:
		return other("this is not a WebAssembly module: it does not begin with \\0asm")
	}
	switch {
	case len(b) < headerSize:
		return &Error{Reason: Malformed, Offset: len(b), Text: "the file is cut off inside its first 8 bytes"}
	case b[6] == 1 && b[7] == 0:
		return &Error{Reason: Component, Offset: 4, Text: "this is a WebAssembly component, not a core module"}
	case !bytes.Equal(b[4:8], []byte{1, 0, 0, 0}):
		return &Error{Reason: Malformed, Offset: 4, Text: fmt.Sprintf("its format version is % x, only 01 00 00 00 is run here", b[4:8])}
	}
	return nil
}

// isText says whether the first bytes look like something a person would read.
func isText(b []byte) bool {
	for _, c := range b[:min(len(b), 512)] {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' {
			return false
		}
	}
	return true
}
