// Package wasmgen makes random valid WebAssembly modules, for tests of what reads, rewrites and runs modules. Nothing but
// tests may import it.
//
// A module uses all of WebAssembly 2.0: every numeric and vector instruction, blocks of several values, branches of all
// sorts also out of and behind unreachable code, direct and indirect calls, several tables, references, bulk operations,
// segments of every kind, a start function. It imports functions of the module "host", exports everything it has, and ends
// by itself: each backward branch and each call takes one from a counter. The format is that of the core specification 2.0,
// chapter 5; numbers are sometimes written longer than they need to be, where it allows that.
package wasmgen

// Options say what a module may hold.
type Options struct {
	// Quiet makes a module whose memory, integers and control never depend on the bits of a NaN: each float is made
	// canonical before its bits can be seen. Without it, only an engine with canonical NaNs runs the module repeatably. Its
	// code also leaves active data segments alone: an engine was seen to keep what the specification says is dropped.
	Quiet bool
	// Plain leaves out what the compilers of wazero 1.12 get wrong, selects of floats and vectors before all: then they run the
	// module rightly as it is.
	Plain bool
	// Short writes everything as toolchains do. Without it numbers are now and then longer than they need to be, also those
	// of instructions, and custom sections hold anything: the specification allows that, engines read it wrongly.
	Short bool
}

// Names of what a module exports beside its functions f0, f1, .., globals g0, g1, .. and tables t0, t1, ..
const (
	Memory = "memory"
	// Loops and Calls are exported mutable globals, i32: how many backward branches and calls are left. A caller sets them
	// before each call.
	Loops, Calls = "loops", "calls"
)

// What a caller sets the two counters to; a module begins with the same.
const (
	MaxLoops = 2_000
	MaxCalls = 300
)

// Host is the module that a generated one imports functions from.
const Host = "host"

// HostFunc is a function that a module may import.
type HostFunc struct {
	Name            string
	Params, Results []byte // value types, as bytes of the format
}

// HostFuncs returns all functions that modules import.
func HostFuncs() []HostFunc {
	return []HostFunc{
		{Name: "note", Params: []byte{i32}},
		{Name: "mix", Params: []byte{i64, i64}, Results: []byte{i64}},
		{Name: "pair", Params: []byte{i32, f64}, Results: []byte{i32, i64}},
	}
}

// Generate makes the module that src stands for: each choice takes some of its bytes, and when they are used up, choices are
// the smallest there are. The same bytes give the same module.
func Generate(src []byte, o Options) []byte {
	g := &gen{src: source{b: src}, o: o}
	g.plan()
	return g.module()
}

// Bytes are n bytes for Generate, out of a seed (SplitMix64, public domain).
func Bytes(seed uint64, n int) []byte {
	s := mixer(seed)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.next() >> 32)
	}
	return b
}
