package wasmgen

import "bytes"

// blockExpression is a block, loop or if that leaves one value.
func (f *function) blockExpression(t byte, depth int) {
	f.block(signature{results: []byte{t}}, depth, func() { f.byte(t) })
}

// block writes a block, loop or if of a type; what it takes lies on the stack.
func (f *function) block(sig signature, depth int, writeType func()) {
	kind := f.below(3)
	if kind == 2 {
		f.expression(i32, depth+1)
	}
	f.byte([]byte{0x02, 0x03, 0x04}[kind])
	writeType()
	inner := label{types: sig.results}
	if kind == 1 {
		inner = label{types: sig.params, loop: true}
	}
	f.labels = append(f.labels, inner)
	f.inside(sig, depth)
	same := bytes.Equal(sig.params, sig.results)
	if kind == 2 && (!same || f.one(2)) {
		f.byte(0x05)
		f.inside(sig, depth)
	}
	f.labels = f.labels[:len(f.labels)-1]
	f.byte(0x0b)
}

// inside writes what stands in a block.
func (f *function) inside(sig signature, depth int) {
	if bytes.Equal(sig.params, sig.results) && f.one(6) {
		f.statements(depth + 1) // what came in goes out
		return
	}
	f.discard(sig.params)
	f.statements(depth + 1)
	if f.one(8) {
		f.leave(depth + 1)
		return
	}
	f.expressions(sig.results, depth)
	if n := len(sig.results); f.one(6) && n > 0 && f.nodes > 0 {
		f.lastAgain(sig, depth)
	}
}

// lastAgain branches out of the innermost block, maybe, with what it leaves on the stack.
func (f *function) lastAgain(sig signature, depth int) {
	l := f.labels[len(f.labels)-1]
	if !bytes.Equal(l.types, sig.results) {
		return
	}
	if l.loop {
		f.guard(globalLoops)
	}
	f.expression(i32, depth+1)
	f.index(0x0d, 0)
}

// typedBlock is a block of a type of the module, whose results are thrown away.
func (f *function) typedBlock(depth int) {
	index := f.below(len(f.g.types))
	sig := f.g.types[index]
	f.expressions(sig.params, depth)
	f.block(sig, depth, func() { f.signed(int64(index), 5) })
	f.discard(sig.results)
}

// branchOut leaves a value out of a block that it may leave early.
func (f *function) branchOut(t byte, depth int) {
	f.byte(0x02, t)
	f.labels = append(f.labels, label{types: []byte{t}})
	f.expression(t, depth+1)
	f.expression(i32, depth+1)
	if f.one(3) {
		f.byte(0x0e)
		f.u32(1)
		f.u32(0)
		f.u32(0)
	} else {
		f.index(0x0d, 0)
		f.byte(0x1a)
		f.statements(depth + 1)
		f.expression(t, depth+1)
	}
	f.labels = f.labels[:len(f.labels)-1]
	f.byte(0x0b)
}

// target draws a label; depth is what a branch names it by.
func (f *function) target() (l label, depth uint32) {
	d := f.below(len(f.labels))
	return f.labels[len(f.labels)-1-d], uint32(d)
}

// leave ends a path: nothing behind it is reached.
func (f *function) leave(depth int) {
	switch f.below(6) {
	case 0, 1:
		l, d := f.target()
		if l.loop {
			f.guard(globalLoops)
		}
		f.expressions(l.types, depth)
		f.index(0x0c, d)
	case 2, 3:
		f.branchTable(depth)
	case 4:
		f.expressions(f.sig.results, depth)
		f.byte(0x0f)
	case 5:
		f.byte(0x00)
	}
	f.unreached(depth)
}

// branchTable goes to one of several labels of the same types.
func (f *function) branchTable(depth int) {
	first, d := f.target()
	var fit []uint32
	loop := false
	for i := range f.labels {
		if l := f.labels[len(f.labels)-1-i]; bytes.Equal(l.types, first.types) {
			fit = append(fit, uint32(i))
			loop = loop || l.loop
		}
	}
	if loop {
		f.guard(globalLoops)
	}
	f.expressions(first.types, depth)
	f.masked(7, depth)
	f.byte(0x0e)
	n := f.below(6)
	f.u32(uint32(n))
	for range n {
		f.u32(fit[f.below(len(fit))])
	}
	f.u32(d)
}

// unreached writes code whose operands come from nowhere. It leaves nothing that would have to be of a type.
func (f *function) unreached(depth int) {
	for range f.below(4) {
		switch f.below(6) {
		case 0:
			f.byte(0x1a)
		case 1:
			ops := f.g.ops[i32]
			o := ops[f.below(len(ops))]
			f.op(o.code)
			if o.lanes > 0 {
				f.byte(0)
			}
			f.byte(0x1a)
		case 2:
			f.byte(0x1b, 0x1a)
		case 3:
			index := f.below(len(f.g.imports) + len(f.g.funcs))
			f.index(0x10, uint32(index))
			f.discard(f.g.sig(index).results)
		case 4:
			_, d := f.target()
			f.index(0x0c, d)
		default:
			f.statement(depth + 1)
		}
	}
}
