package wasmgen

import "bytes"

// label is what a branch can go to.
type label struct {
	types []byte
	loop  bool
}

// function is a body in the making.
type function struct {
	*writer
	g       *gen
	sig     signature
	locals  []byte // parameters first
	groups  []byte // types of own locals, in the order they are declared
	scratch map[byte]uint32
	labels  []label // innermost last
	end     int     // where in the source this function's share ends
	nodes   int     // how many more expressions with operands
}

// maxNesting bounds how deep blocks and expressions lie inside each other.
const maxNesting = 12

func newFunction(g *gen, sig signature, share int) *function {
	f := &function{
		writer: g.writer(), g: g, sig: sig, scratch: map[byte]uint32{}, end: g.src.pos + share, nodes: share / 2,
		labels: []label{{types: sig.results}},
	}
	f.locals = bytes.Clone(sig.params)
	many := 1
	if g.src.one(20) {
		many = 40 // so that indexes take two bytes
	}
	for range many * g.src.below(6) {
		f.declare(allTypes[g.src.below(len(allTypes))])
	}
	for _, t := range allTypes {
		f.scratch[t] = uint32(len(f.locals))
		f.declare(t)
	}
	return f
}

func (f *function) declare(t byte) {
	f.locals = append(f.locals, t)
	f.groups = append(f.groups, t)
}

// body returns the locals and the code.
func (f *function) body() []byte {
	f.guard(globalCalls)
	f.statements(0)
	for _, t := range f.sig.results {
		f.expression(t, 0)
	}
	f.byte(0x0b)
	head := f.g.writer()
	var groups []func()
	for at := 0; at < len(f.groups); {
		n := 1
		for at+n < len(f.groups) && f.groups[at+n] == f.groups[at] && !f.g.src.one(3) {
			n++
		}
		t := f.groups[at]
		groups = append(groups, func() { head.u32(uint32(n)); head.byte(t) })
		at += n
	}
	if f.g.src.one(8) {
		groups = append(groups, func() { head.u32(0); head.byte(i64) })
	}
	head.u32(uint32(len(groups)))
	for _, write := range groups {
		write()
	}
	return append(head.b, f.b...)
}

// more says whether the function has bytes left for further statements.
func (f *function) more() bool { return f.g.src.pos < min(f.end, len(f.g.src.b)) }

func (f *function) below(n int) int { return f.g.src.below(n) }
func (f *function) one(n int) bool  { return f.g.src.one(n) }

func (f *function) op(code uint16) { f.opcode(code) }

func (f *function) index(code uint16, n uint32) {
	f.op(code)
	f.u32(n)
}

func (f *function) i32Const(n int32) {
	f.byte(0x41)
	f.s32(n)
}

// local draws a local of the type; every function has one.
func (f *function) local(t byte) uint32 {
	var fit []uint32
	for i, have := range f.locals {
		if have == t {
			fit = append(fit, uint32(i))
		}
	}
	return fit[f.below(len(fit))]
}

// global draws a global of the type that code may read, or set; false when there is none.
func (f *function) global(t byte, set bool) (uint32, bool) {
	var fit []uint32
	for i, have := range f.g.globals {
		if have.t == t && i > globalCalls && (have.mutable || !set) {
			fit = append(fit, uint32(i))
		}
	}
	if len(fit) == 0 {
		return 0, false
	}
	return fit[f.below(len(fit))], true
}

// guard takes one from a counter, and leaves the function when there is nothing left.
func (f *function) guard(counter uint32) {
	f.index(0x23, counter)
	f.i32Const(1)
	f.byte(0x6b)
	f.index(0x24, counter)
	f.index(0x23, counter)
	f.i32Const(0)
	f.byte(0x48, 0x04, 0x40)
	if f.one(4) {
		f.byte(0x00)
	} else {
		for _, t := range f.sig.results {
			f.g.constant(f.writer, t)
		}
		f.byte(0x0f)
	}
	f.byte(0x0b)
}

// canonical makes the float or the lanes on top of the stack a NaN that is always the same, if it is one.
func (f *function) canonical(flags uint8, t byte) {
	if flags == 0 || !f.g.o.Quiet {
		return
	}
	const quiet32, quiet64 = 0x7fc00000, 0x7ff8000000000000
	tmp := f.scratch[t]
	if t == v128 {
		f.canonicalLanes(flags, tmp, quiet32<<32|quiet32, quiet64)
		return
	}
	f.index(0x21, tmp)
	f.index(0x20, tmp)
	f.index(0x20, tmp)
	if t == f32 {
		f.byte(0x5c, 0x04, 0x40, 0x43) // f32.ne, if, f32.const
		f.fixed(quiet32, 4)
	} else {
		f.byte(0x62, 0x04, 0x40, 0x44)
		f.fixed(quiet64, 8)
	}
	f.index(0x21, tmp)
	f.byte(0x0b)
	f.index(0x20, tmp)
}

// canonicalLanes keeps the bits of lanes that equal themselves, and takes those of the NaN for others.
func (f *function) canonicalLanes(flags uint8, tmp uint32, quiet32, quiet64 uint64) {
	equal, quiet := byte(0x47), quiet64
	if flags&nan32 != 0 {
		equal, quiet = 0x41, quiet32
	}
	f.index(0x22, tmp)
	f.index(0x20, tmp)
	f.index(0x20, tmp)
	f.byte(0xfd, equal, 0xfd, 0x4e, 0xfd, 0x0c) // and, v128.const
	f.fixed(quiet, 8)
	f.fixed(quiet, 8)
	f.index(0x20, tmp)
	f.index(0x20, tmp)
	f.byte(0xfd, equal, 0xfd, 0x4f, 0xfd, 0x50) // andnot, or
	f.index(0x22, tmp)                          // other code reads the local too
}

// visible makes a float that is about to be seen canonical.
func (f *function) visible(t byte) {
	if t == f32 || t == f64 {
		f.canonical(nan32|nan64, t)
	}
}
