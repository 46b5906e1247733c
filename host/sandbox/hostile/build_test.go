package hostile

import (
	"strings"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// Value types as the format writes them.
const (
	i32     = "\x7f"
	i64     = "\x7e"
	f32     = "\x7d"
	f64     = "\x7c"
	v128    = "\x7b"
	funcref = "\x70"
)

// Instructions besides those of wasmtest.
const (
	nop        = "\x01"
	block      = "\x02\x40"
	ifThen     = "\x04\x40"
	elseArm    = "\x05"
	brIf0      = "\x0d\x00"
	ret        = "\x0f"
	eqz        = "\x45"
	sub        = "\x6b"
	memorySize = "\x3f\x00"
	copyMemory = "\xfc\x0a\x00\x00"
	fillMemory = "\xfc\x0b\x00"
)

func set(local uint32) string { return "\x21" + w.U32(local) }

func tee(local uint32) string { return "\x22" + w.U32(local) }

func i64const(n int32) string { return "\x42" + w.S32(n) }

// repeat is n copies of code.
func repeat(code string, n int) string { return strings.Repeat(code, n) }

// times runs body n times and counts down in a local, an i32.
func times(local uint32, n int32, body string) string {
	return w.Const(n) + set(local) + w.Loop + body + w.Get(local) + w.Const(1) + sub + tee(local) + brIf0 + w.End
}

// forever runs body without end.
func forever(body string) string { return w.Loop + body + w.Br0 + w.End }

// groups are runs of locals: numbers and types by turns.
func groups(runs ...string) string { return w.Vec(runs...) }

func run(n uint32, of string) string { return w.U32(n) + of }

// body is one function's code, without its end.
type body struct {
	locals string // groups; "" is none
	code   string
	raw    string // instead of both, all of the body behind its size
}

// module is a module in the making. Each list holds items as the format has them.
type module struct {
	types, imports, tables, memories, globals, exports, elements, data []string
	funcs                                                              []string
	bodies                                                             []*body
	start                                                              string
	dataCount                                                          bool
	before, after                                                      string // sections in front of and behind all others
	alloc, init, batch                                                 *body
	next                                                               uint32 // index of the next own function
}

// typ is the index of a signature.
func (m *module) typ(params, results string) uint32 {
	want := w.FuncType(params, results)
	for i, t := range m.types {
		if t == want {
			return uint32(i)
		}
	}
	m.types = append(m.types, want)
	return uint32(len(m.types) - 1)
}

// function adds a function and returns its index.
func (m *module) function(params, results, locals, code string) (uint32, *body) {
	m.funcs = append(m.funcs, w.U32(m.typ(params, results)))
	b := &body{locals: locals, code: code}
	m.bodies = append(m.bodies, b)
	m.next++
	return m.next - 1, b
}

// def is function, for those who need only the index.
func (m *module) def(params, results, locals, code string) uint32 {
	index, _ := m.function(params, results, locals, code)
	return index
}

func (m *module) export(name string, kind byte, index uint32) {
	m.exports = append(m.exports, w.Name(name)+string(rune(kind))+w.U32(index))
}

// global adds a mutable i32 global.
func (m *module) global(value int32) {
	m.globals = append(m.globals, i32+"\x01"+w.Const(value)+w.End)
}

// put adds an active data segment.
func (m *module) put(at int32, bytes string) {
	m.data = append(m.data, "\x00"+w.Const(at)+w.End+w.Name(bytes))
}

// imported is one function that a module asks for.
type imported struct{ module, name, params, results string }

// Functions of every transform.
const (
	emitFunc = 0
	logFunc  = 1
)

// transform is a module that is taken: 8 pages, any allocation at 65,536, init and batch that answer 0. Its imports are
// emit, log, and what more is asked for; its own functions follow in the order alloc, init, batch.
func transform(more ...imported) *module {
	m := &module{memories: []string{"\x00\x08"}}
	for _, im := range append([]imported{{"wasmill_1", "emit", i32 + i32 + i32, ""}, {"wasmill_1", "log", i32 + i32 + i32, ""}}, more...) {
		m.imports = append(m.imports, w.Name(im.module)+w.Name(im.name)+"\x00"+w.U32(m.typ(im.params, im.results)))
		m.next++
	}
	var index uint32
	index, m.alloc = m.function(i32, i32, "", w.Const(65536))
	m.export("wasmill_alloc", 0, index)
	index, m.init = m.function(i32+i32+i32, i32, "", w.Const(0))
	m.export("wasmill_init", 0, index)
	index, m.batch = m.function(i32+i32, i32, "", w.Const(0))
	m.export("wasmill_batch", 0, index)
	m.export("memory", 2, 0)
	return m
}

// batching is a transform whose batch has locals and code; the code leaves nothing, and the answer is 0.
func batching(locals, code string) *module {
	m := transform()
	m.batch.locals, m.batch.code = locals, code+w.Const(0)
	return m
}

// answering is a transform whose batch leaves its answer.
func answering(locals, code string) *module {
	m := transform()
	m.batch.locals, m.batch.code = locals, code
	return m
}

// vec is a section unless it is empty.
func vec(id byte, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return section(id, joined(items))
}

// joined is items behind their number, for many of them.
func joined(items []string) string {
	return w.U32(uint32(len(items))) + strings.Join(items, "")
}

func section(id byte, content string) string {
	return string([]byte{id}) + w.U32(uint32(len(content))) + content
}

func (b *body) bytes() string {
	if b.raw != "" {
		return w.Name(b.raw)
	}
	locals := b.locals
	if locals == "" {
		locals = "\x00"
	}
	return w.Name(locals + b.code + w.End)
}

func (m *module) bytes() []byte {
	var code []string
	for _, b := range m.bodies {
		code = append(code, b.bytes())
	}
	var out strings.Builder
	out.WriteString(w.Header + m.before + vec(w.Type, m.types) + vec(w.Import, m.imports) + vec(w.Function, m.funcs) + vec(w.Table, m.tables))
	out.WriteString(vec(w.Memory, m.memories) + vec(w.Global, m.globals) + vec(w.Export, m.exports))
	if m.start != "" {
		out.WriteString(section(w.Start, m.start))
	}
	out.WriteString(vec(w.Element, m.elements))
	if m.dataCount {
		out.WriteString(section(w.DataCount, w.U32(uint32(len(m.data)))))
	}
	out.WriteString(vec(w.Code, code))
	out.WriteString(vec(w.Data, m.data))
	out.WriteString(m.after)
	return []byte(out.String())
}
