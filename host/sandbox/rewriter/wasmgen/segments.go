package wasmgen

// elementSection writes what was planned, a first segment that fills table 0, and a last one that declares all functions.
func (g *gen) elementSection() *writer {
	w := g.writer()
	w.u32(uint32(len(g.elements) + 2))
	w.byte(0, 0x41)
	w.s32(0)
	w.byte(0x0b)
	w.u32(6)
	for range 6 {
		w.u32(uint32(g.src.below(len(g.imports) + len(g.funcs))))
	}
	for _, t := range g.elements {
		g.elementSegment(w, t)
	}
	w.byte(3, 0)
	w.u32(uint32(len(g.imports) + len(g.funcs)))
	for i := range len(g.imports) + len(g.funcs) {
		w.u32(uint32(i))
	}
	g.elements = append([]byte{funcref}, append(g.elements, funcref)...)
	return w
}

// elementSegment writes one segment of a table's type, of any of the eight forms.
func (g *gen) elementSegment(w *writer, t byte) {
	form := g.src.below(8)
	if t == externref {
		form = []int{5, 6, 7}[form%3]
	}
	to := g.tableOf(t)
	if form&3 == 0 {
		to = 0
	}
	if to < 0 {
		form = 5
	}
	w.u32(uint32(form))
	count := g.src.below(5)
	if form&1 == 0 {
		room := int(g.tables[to].min)
		count = min(count, room)
		if form&2 != 0 {
			w.u32(uint32(to))
		}
		w.byte(0x41)
		w.s32(int32(g.src.below(room - count + 1)))
		w.byte(0x0b)
	}
	if form&3 != 0 {
		if form&4 != 0 {
			w.byte(t)
		} else {
			w.byte(0)
		}
	}
	w.u32(uint32(count))
	for range count {
		if form&4 != 0 {
			g.constant(w, t)
			w.byte(0x0b)
			continue
		}
		w.u32(uint32(g.src.below(len(g.imports) + len(g.funcs))))
	}
}

// tableOf draws a table of the type; -1 when there is none.
func (g *gen) tableOf(t byte) int {
	var fit []int
	for i, table := range g.tables {
		if table.t == t {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return -1
	}
	return fit[g.src.below(len(fit))]
}

func (g *gen) dataSection() *writer {
	w := g.writer()
	w.u32(uint32(g.data))
	for i := range g.data {
		n := g.src.below(20)
		form := g.src.below(3)
		if form == 1 || !g.o.Quiet {
			g.usable = append(g.usable, uint32(i))
		}
		room := int(g.pages) * 65_536
		if form != 1 {
			n = min(n, room)
		}
		w.u32(uint32(form))
		if form == 2 {
			w.u32(0)
		}
		if form != 1 {
			w.byte(0x41)
			w.s32(int32(g.src.below(min(room-n, 65_000) + 1)))
			w.byte(0x0b)
		}
		w.u32(uint32(n))
		for range n {
			w.byte(g.src.byte())
		}
	}
	return w
}
