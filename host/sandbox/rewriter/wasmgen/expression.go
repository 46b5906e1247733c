package wasmgen

import (
	"bytes"
	"slices"
)

// expression writes code that leaves one value of the type.
func (f *function) expression(t byte, depth int) {
	if f.nodes <= 0 || depth > maxNesting {
		f.leaf(t)
		return
	}
	f.nodes--
	switch f.below(16) {
	case 0, 1, 2:
		f.leaf(t)
	case 3:
		f.expression(t, depth+1)
		f.index(0x22, f.local(t))
	case 4:
		f.blockExpression(t, depth)
	case 5:
		f.choose(t, depth)
	case 6:
		f.callFor(t, depth)
	case 7:
		f.branchOut(t, depth)
	case 8:
		f.special(t, depth)
	case 9, 10:
		f.load(t, depth)
	default:
		f.operation(t, depth)
	}
}

// leaf needs no operands.
func (f *function) leaf(t byte) {
	switch f.below(4) {
	case 2:
		if g, ok := f.global(t, false); ok {
			f.index(0x23, g)
			return
		}
		f.index(0x20, f.local(t))
	case 3:
		f.index(0x20, f.local(t))
	default:
		f.g.constant(f.writer, t)
	}
}

func (f *function) expressions(types []byte, depth int) {
	for _, t := range types {
		f.expression(t, depth+1)
	}
}

// operation is an instruction of arithmetic.
func (f *function) operation(t byte, depth int) {
	if isRef(t) {
		f.special(t, depth)
		return
	}
	ops := f.g.ops[t]
	o := ops[f.below(len(ops))]
	if o.flags&trunc != 0 && !f.one(4) || f.g.o.Plain && slices.Contains(mistaken, o.code) {
		f.leaf(t)
		return
	}
	for i, p := range o.params {
		f.expression(p, depth+1)
		if o.flags&sees != 0 {
			f.visible(p)
		}
		if i == 1 && o.flags&divide != 0 && !f.one(10) {
			f.notZero(p)
		}
	}
	f.op(o.code)
	if o.lanes > 0 {
		f.byte(byte(f.below(int(o.lanes))))
	}
	if t == v128 {
		f.canonical(o.flags&(nan32|nan64), t)
	}
}

// notZero makes the integer on top of the stack odd.
func (f *function) notZero(t byte) {
	if t == i32 {
		f.i32Const(1)
		f.byte(0x72)
		return
	}
	f.byte(0x42)
	f.s64(1)
	f.byte(0x84)
}

// special is what only some types have.
func (f *function) special(t byte, depth int) {
	switch t {
	case i32:
		if f.one(2) {
			f.bits(f32, 0xbc, depth)
			return
		}
		f.sizes(depth)
	case i64:
		f.bits(f64, 0xbd, depth)
	case v128:
		f.expression(v128, depth+1)
		f.expression(v128, depth+1)
		f.op(0xfd0d) // shuffle
		for range 16 {
			f.byte(byte(f.below(32)))
		}
	case funcref, externref:
		table := f.g.tableOf(t)
		if table < 0 {
			f.leaf(t)
			return
		}
		f.masked(7, depth)
		f.index(0x25, uint32(table))
	default:
		f.leaf(t)
	}
}

// bits shows the bits of what arithmetic made.
func (f *function) bits(t byte, reinterpret uint16, depth int) {
	f.operation(t, depth+1)
	f.visible(t)
	f.op(reinterpret)
}

// sizes is what tells of memory, tables and references.
func (f *function) sizes(depth int) {
	table := f.below(len(f.g.tables))
	switch f.below(5) {
	case 0:
		f.byte(0x3f, 0) // memory.size
	case 1:
		f.masked(1, depth)
		f.byte(0x40, 0) // memory.grow
	case 2:
		f.index(0xfc10, uint32(table)) // table.size
	case 3:
		f.expression(f.g.tables[table].t, depth+1)
		f.masked(3, depth)
		f.index(0xfc0f, uint32(table)) // table.grow
	case 4:
		f.expression([]byte{funcref, externref}[f.below(2)], depth+1)
		f.byte(0xd1) // ref.is_null
	}
}

// masked is an i32 that seldom is above mask.
func (f *function) masked(mask int32, depth int) {
	f.expression(i32, depth+1)
	if f.one(12) && mask > 3 {
		return
	}
	f.i32Const(mask)
	f.byte(0x71)
	if f.g.o.Plain { // nothing that a branch could take for a comparison
		f.i32Const(0)
		f.byte(0x72)
	}
}

// address leaves an address, and memarg writes what goes with it.
func (f *function) address(depth int) { f.masked(0xffff, depth) }

func (f *function) memarg(a access) {
	f.op(a.code)
	f.u32(uint32(f.below(int(a.align) + 1)))
	switch {
	case f.one(30):
		f.u32(uint32(f.g.src.number()))
	default:
		f.u32(uint32(f.below(256)))
	}
	if a.lanes > 0 {
		f.byte(byte(f.below(int(a.lanes))))
	}
}

func (f *function) load(t byte, depth int) {
	var fit []access
	for _, a := range loads {
		if a.t == t {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		f.special(t, depth)
		return
	}
	a := fit[f.below(len(fit))]
	f.address(depth)
	if a.lanes > 0 {
		f.expression(v128, depth+1)
	}
	f.memarg(a)
}

// choose is a select, of either form.
func (f *function) choose(t byte, depth int) {
	if f.g.o.Plain && (t == f32 || t == f64 || t == v128) {
		f.load(t, depth)
		return
	}
	f.expression(t, depth+1)
	f.expression(t, depth+1)
	f.expression(i32, depth+1)
	if isRef(t) || f.one(2) {
		f.byte(0x1c)
		f.u32(1)
		f.byte(t)
		return
	}
	f.byte(0x1b)
}

// callFor calls a function that has a result of the type, and keeps that.
func (f *function) callFor(t byte, depth int) {
	var fit []int
	for i := range len(f.g.imports) + len(f.g.funcs) {
		if bytes.IndexByte(f.g.sig(i).results, t) >= 0 {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		f.leaf(t)
		return
	}
	index := fit[f.below(len(fit))]
	results := f.g.sig(index).results
	f.call(index, depth)
	keep := bytes.LastIndexByte(results, t)
	f.discard(results[keep+1:])
	if keep == 0 {
		return
	}
	f.index(0x21, f.scratch[t])
	f.discard(results[:keep])
	f.index(0x20, f.scratch[t])
}

// call is a direct or an indirect call.
func (f *function) call(index, depth int) {
	sig := f.g.sig(index)
	for _, t := range sig.params {
		f.expression(t, depth+1)
		if index < len(f.g.imports) {
			f.visible(t)
		}
	}
	if index < len(f.g.imports) || !f.one(3) {
		f.index(0x10, uint32(index))
		return
	}
	f.masked(7, depth)
	f.op(0x11)
	f.u32(f.g.funcs[index-len(f.g.imports)])
	f.u32(uint32(max(0, f.g.tableOf(funcref))))
}

// discard takes values off the stack: some are dropped, some kept in locals.
func (f *function) discard(types []byte) {
	for i := len(types) - 1; i >= 0; i-- {
		if f.one(3) {
			f.index(0x21, f.local(types[i]))
			continue
		}
		f.byte(0x1a)
	}
}
