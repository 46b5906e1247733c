package wasmgen

// statements writes code that leaves the stack as it is.
func (f *function) statements(depth int) {
	if depth > maxNesting {
		return
	}
	most := 3
	if depth == 0 {
		most = 40
	}
	for n := f.below(most); n > 0 && f.more(); n-- {
		f.statement(depth)
	}
}

func (f *function) statement(depth int) {
	if f.nodes <= 0 || depth > maxNesting {
		f.byte(0x01)
		return
	}
	f.nodes--
	switch f.below(16) {
	case 0:
		f.byte(0x01)
	case 1:
		f.expression(allTypes[f.below(len(allTypes))], depth+1)
		f.byte(0x1a)
	case 2, 3:
		l := f.below(len(f.locals))
		f.expression(f.locals[l], depth+1)
		f.index(0x21, uint32(l))
	case 4:
		f.setGlobal(depth)
	case 5, 6, 7:
		f.store(depth)
	case 8:
		f.block(signature{}, depth, func() { f.byte(0x40) })
	case 9:
		f.typedBlock(depth)
	case 10:
		f.loop(depth)
	case 11:
		index := f.below(len(f.g.imports) + len(f.g.funcs))
		f.call(index, depth)
		f.discard(f.g.sig(index).results)
	case 12:
		f.branch(depth)
	case 13:
		f.bulk(depth)
	case 14:
		f.tables(depth)
	case 15:
		f.maybeLeave(depth)
	}
}

func (f *function) setGlobal(depth int) {
	t := allTypes[f.below(len(allTypes))]
	if g, ok := f.global(t, true); ok {
		f.expression(t, depth+1)
		f.index(0x24, g)
	}
}

func (f *function) store(depth int) {
	a := stores[f.below(len(stores))]
	f.address(depth)
	f.expression(a.t, depth+1)
	f.visible(a.t)
	f.memarg(a)
}

// loop runs some times.
func (f *function) loop(depth int) {
	f.byte(0x03, 0x40)
	f.labels = append(f.labels, label{loop: true})
	f.statements(depth + 1)
	f.guard(globalLoops)
	f.expression(i32, depth+1)
	f.index(0x0d, 0)
	f.labels = f.labels[:len(f.labels)-1]
	f.byte(0x0b)
}

// branch goes somewhere, or not.
func (f *function) branch(depth int) {
	l, d := f.target()
	if l.loop {
		f.guard(globalLoops)
	}
	f.expressions(l.types, depth)
	f.expression(i32, depth+1)
	f.index(0x0d, d)
	f.discard(l.types)
}

// maybeLeave ends a path inside an if.
func (f *function) maybeLeave(depth int) {
	f.expression(i32, depth+1)
	f.byte(0x04, 0x40)
	f.labels = append(f.labels, label{})
	f.leave(depth + 1)
	f.labels = f.labels[:len(f.labels)-1]
	f.byte(0x0b)
}

// bulk is an instruction on many bytes.
func (f *function) bulk(depth int) {
	const most = 0x3ff
	kind := f.below(4)
	if len(f.g.usable) == 0 && kind >= 2 {
		kind -= 2
	}
	if kind == 3 {
		f.index(0xfc09, f.g.usable[f.below(len(f.g.usable))]) // data.drop
		return
	}
	f.address(depth)
	switch kind {
	case 0:
		f.expression(i32, depth+1)
		f.masked(most, depth)
		f.op(0xfc0b) // memory.fill
		f.byte(0)
	case 1:
		f.address(depth)
		f.masked(most, depth)
		f.op(0xfc0a) // memory.copy
		f.byte(0, 0)
	case 2:
		f.masked(7, depth)
		f.masked(7, depth)
		f.index(0xfc08, f.g.usable[f.below(len(f.g.usable))]) // memory.init
		f.byte(0)
	}
}

// tables is an instruction that changes a table.
func (f *function) tables(depth int) {
	table := f.below(len(f.g.tables))
	t := f.g.tables[table].t
	switch f.below(5) {
	case 0:
		f.masked(7, depth)
		f.expression(t, depth+1)
		f.index(0x26, uint32(table)) // table.set
	case 1:
		f.masked(7, depth)
		f.expression(t, depth+1)
		f.masked(3, depth)
		f.index(0xfc11, uint32(table)) // table.fill
	case 2:
		f.masked(7, depth)
		f.masked(7, depth)
		f.masked(3, depth)
		f.op(0xfc0e) // table.copy
		f.u32(uint32(table))
		f.u32(uint32(f.g.tableOf(t)))
	case 3:
		f.initTable(table, depth)
	case 4:
		f.index(0xfc0d, uint32(f.below(len(f.g.elements)))) // elem.drop
	}
}

func (f *function) initTable(table, depth int) {
	var fit []int
	for i, t := range f.g.elements {
		if t == f.g.tables[table].t {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return
	}
	f.masked(7, depth)
	f.masked(3, depth)
	f.masked(3, depth)
	f.op(0xfc0c) // table.init
	f.u32(uint32(fit[f.below(len(fit))]))
	f.u32(uint32(table))
}
