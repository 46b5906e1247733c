package wasmgen

import "strconv"

// signature is a function type, or that of a block.
type signature struct {
	params, results []byte
}

type table struct {
	t        byte
	min, max uint32
	hasMax   bool
}

type global struct {
	t       byte
	mutable bool
}

// gen is a module in the making.
type gen struct {
	src  source
	o    Options
	long mixer
	ops  map[byte][]op

	types    []signature
	imports  []HostFunc
	funcs    []uint32 // type of each own function
	tables   []table
	elements []byte   // type of each element segment
	data     int      // segments
	usable   []uint32 // those that code refers to
	globals  []global
	pages    uint32
	start    int // index of the start function, -1: none
}

// Indexes that every module has.
const (
	typeEmpty   = 0 // () -> ()
	globalLoops = 0
	globalCalls = 1
)

// plan draws everything that code can refer to.
func (g *gen) plan() {
	g.long = mixer(uint64(g.src.byte()) + 1)
	g.ops = operations()
	g.types = append(g.types, signature{})
	for range 1 + g.src.below(6) {
		g.types = append(g.types, signature{g.drawTypes(5), g.drawTypes(4)})
	}
	for range g.src.below(5) {
		hosts := HostFuncs()
		g.imports = append(g.imports, hosts[g.src.below(len(hosts))])
	}
	for range 1 + g.src.below(6) {
		g.funcs = append(g.funcs, uint32(g.src.below(len(g.types))))
	}
	g.start = -1
	if g.src.one(4) {
		g.start = len(g.imports) + len(g.funcs)
		g.funcs = append(g.funcs, typeEmpty)
	}
	g.tables = []table{{t: funcref, min: 8, max: 20, hasMax: true}}
	for range g.src.below(3) {
		t := table{t: funcref, min: uint32(g.src.below(10)), hasMax: g.src.one(2)}
		t.max = t.min + uint32(g.src.below(8))
		if g.src.one(2) {
			t.t = externref
		}
		g.tables = append(g.tables, t)
	}
	g.globals = []global{{i32, true}, {i32, true}}
	for range g.src.below(8) {
		g.globals = append(g.globals, global{allTypes[g.src.below(len(allTypes))], !g.src.one(4)})
	}
	g.pages = []uint32{1, 2, 0, 1, 3, 1, 2, 1}[g.src.below(8)]
	g.data = g.src.below(5)
	for range 1 + g.src.below(5) {
		t := byte(funcref)
		if g.src.one(5) {
			t = externref
		}
		g.elements = append(g.elements, t)
	}
}

func (g *gen) drawTypes(below int) []byte {
	ts := make([]byte, g.src.below(below))
	for i := range ts {
		ts[i] = allTypes[g.src.below(len(allTypes))]
	}
	return ts
}

func (g *gen) writer() *writer {
	if g.o.Short {
		return &writer{}
	}
	return &writer{long: &g.long}
}

// sig is the type of a function, imports first.
func (g *gen) sig(index int) signature {
	if index < len(g.imports) {
		return signature{g.imports[index].Params, g.imports[index].Results}
	}
	return g.types[g.funcs[index-len(g.imports)]]
}

// section ids of the format.
const (
	sectionType = iota + 1
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// module writes all sections. What src still holds is shared out among the functions.
func (g *gen) module() []byte {
	out := g.writer()
	out.byte([]byte("\x00asm\x01\x00\x00\x00")...)
	section := func(id byte, body *writer) {
		g.custom(out)
		out.byte(id)
		out.vec(body.b)
	}
	elements, data := g.elementSection(), g.dataSection()
	imported := len(g.types)
	for _, f := range g.imports {
		g.types = append(g.types, signature{f.Params, f.Results})
	}
	section(sectionType, g.typeSection())
	g.types = g.types[:imported]
	section(sectionImport, g.importSection(imported))
	section(sectionFunction, g.functionSection())
	section(sectionTable, g.tableSection())
	section(sectionMemory, g.memorySection())
	section(sectionGlobal, g.globalSection())
	section(sectionExport, g.exportSection())
	if g.start >= 0 {
		start := g.writer()
		start.u32(uint32(g.start))
		section(sectionStart, start)
	}
	section(sectionElement, elements)
	count := g.writer()
	count.u32(uint32(g.data))
	section(sectionDataCount, count)
	section(sectionCode, g.codeSection())
	section(sectionData, data)
	g.custom(out)
	return out.b
}

// custom writes a custom section now and then.
func (g *gen) custom(out *writer) {
	if !g.src.one(12) {
		return
	}
	body := g.writer()
	names := []string{"x", "y", "name", "producers"}
	if g.o.Short {
		names = names[:2]
	}
	body.vec([]byte(names[g.src.below(len(names))]))
	if g.o.Short {
		body.byte(0) // an engine was seen to refuse a section of a name alone
	}
	for range g.src.below(6) {
		body.byte(g.src.byte())
	}
	out.byte(0)
	out.vec(body.b)
}

func (g *gen) typeSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.types)))
	for _, t := range g.types {
		w.byte(0x60)
		w.vec(t.params)
		w.vec(t.results)
	}
	return w
}

func (g *gen) importSection(firstType int) *writer {
	w := g.writer()
	w.u32(uint32(len(g.imports)))
	for i, f := range g.imports {
		w.vec([]byte(Host))
		w.vec([]byte(f.Name))
		w.byte(0)
		w.u32(uint32(firstType + i))
	}
	return w
}

func (g *gen) functionSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.funcs)))
	for _, t := range g.funcs {
		w.u32(t)
	}
	return w
}

func (g *gen) tableSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.tables)))
	for _, t := range g.tables {
		w.byte(t.t)
		if !t.hasMax {
			w.byte(0)
			w.u32(t.min)
			continue
		}
		w.byte(1)
		w.u32(t.min)
		w.u32(t.max)
	}
	return w
}

func (g *gen) memorySection() *writer {
	w := g.writer()
	w.u32(1)
	if g.src.one(3) {
		w.byte(0)
		w.u32(g.pages)
		return w
	}
	w.byte(1)
	w.u32(g.pages)
	w.u32(g.pages + uint32(g.src.below(6)))
	return w
}

func (g *gen) globalSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.globals)))
	for i, v := range g.globals {
		w.byte(v.t, 0)
		if v.mutable {
			w.b[len(w.b)-1] = 1
		}
		switch i {
		case globalLoops:
			w.byte(0x41)
			w.s32(MaxLoops)
		case globalCalls:
			w.byte(0x41)
			w.s32(MaxCalls)
		default:
			g.constant(w, v.t)
		}
		w.byte(0x0b)
	}
	return w
}

// constant writes an instruction that leaves a value and needs nothing.
func (g *gen) constant(w *writer, t byte) {
	n := g.src.number()
	if (t == f32 || t == f64) && g.src.one(5) {
		n = n&0x8000_0000_8000_000f | 0x7ff0_0000_7fa0_0001 // a NaN of either size
	}
	switch t {
	case i32:
		w.byte(0x41)
		w.s32(int32(n))
	case i64:
		w.byte(0x42)
		w.s64(int64(n))
	case f32:
		w.byte(0x43)
		w.fixed(n, 4)
	case f64:
		w.byte(0x44)
		w.fixed(n, 8)
	case v128:
		w.byte(0xfd, 0x0c)
		w.fixed(n, 8)
		w.fixed(g.src.number(), 8)
	case externref:
		w.byte(0xd0, externref)
	case funcref:
		if n&1 == 0 {
			w.byte(0xd0, funcref)
			return
		}
		w.byte(0xd2)
		w.u32(uint32(int(n>>1&0xff) % (len(g.imports) + len(g.funcs))))
	}
}

func (g *gen) exportSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.funcs) + len(g.globals) + len(g.tables) + 1))
	export := func(name string, kind byte, index int) {
		w.vec([]byte(name))
		w.byte(kind)
		w.u32(uint32(index))
	}
	for i := range g.funcs {
		export("f"+strconv.Itoa(i), 0, len(g.imports)+i)
	}
	for i := range g.tables {
		export("t"+strconv.Itoa(i), 1, i)
	}
	export(Memory, 2, 0)
	export(Loops, 3, globalLoops)
	export(Calls, 3, globalCalls)
	for i := 2; i < len(g.globals); i++ {
		export("g"+strconv.Itoa(i), 3, i)
	}
	return w
}

func (g *gen) codeSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.funcs)))
	for i, t := range g.funcs {
		left := len(g.src.b) - g.src.pos
		f := newFunction(g, g.types[t], left/(len(g.funcs)-i))
		w.vec(f.body())
	}
	return w
}
