package hostile

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// frameAttacks recurse with frames as large as code can make them, as deep as may be. A compiler's frame has a slot for
// each value that is alive across the call, for each local at each loop and join that changes it, and for the values of
// blocks and calls; the room for all frames is fixed, and where it ends differs by engine. So the count of depth must end
// the guest before that, everywhere at the same call.
var frameAttacks = []attack{
	{id: "F1", name: "live values", cpu: 3, rss: 200, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		for _, n := range []int{100, 300, 500, 680, 5_000, 30_000} {
			m := transform()
			recursive(m, "", "", "", repeat(w.Const(0)+"\xfd\x00\x00\x00", n)+w.Call(5)+repeat("\xfd\x51", n-1)+"\xfd\x53"+w.Drop)
			give(fmt.Sprint(n, " vectors"), m)
		}
		long := transform()
		recursive(long, "", "", groups(run(3_000, i64)), spread(3_000, 60_000))
		give("60,000 instructions over 3,000 locals", long)
	})},
	{id: "F2", name: "loops over locals", cpu: 10, rss: 600, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		for _, shape := range [][2]int{{9, 2_000}, {3, 5_000}, {190, 100}} {
			m := transform()
			m.memories[0] = "\x00\x08"
			recursive(m, "", "", groups(run(uint32(shape[1]), v128)), around(w.Loop, shape[0], shape[1], "", w.Get(0)+"\xfd\x53"+brIf0))
			give(fmt.Sprint(shape[0], " loops over ", shape[1], " vectors"), m)
		}
	})},
	{id: "F3", name: "ifs and blocks over locals", cpu: 10, rss: 500, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		for _, shape := range [][2]int{{48, 2_000}, {900, 100}} {
			ifs, blocks := transform(), transform()
			recursive(ifs, "", "", groups(run(uint32(shape[1]), v128)), around(w.Const(1)+ifThen, shape[0], shape[1], "", ""))
			recursive(blocks, "", "", groups(run(uint32(shape[1]), v128)), around(block+w.Get(0)+"\xfd\x53"+brIf0, shape[0], shape[1], "", ""))
			give(fmt.Sprint(shape[0], " ifs over ", shape[1], " vectors"), ifs)
			give(fmt.Sprint(shape[0], " blocks over ", shape[1], " vectors"), blocks)
		}
	})},
	{id: "F5", name: "locals that are only read, loops behind each other, and many ways to one place", cpu: 12, rss: 600, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		vectors := func(n int) string { return groups(run(uint32(n), v128)) }
		var fill, sum strings.Builder
		for i := range uint32(1_000) {
			fill.WriteString(w.Const(int32(16*i)) + "\xfd\x00\x00\x00" + set(i))
			sum.WriteString(w.Get(i))
		}
		use := sum.String() + repeat("\xfd\x51", 999)
		read := transform()
		again := w.Get(0) + "\xfd\x53" + brIf0 + w.End
		recursive(read, "", "", vectors(1_000), fill.String()+repeat(w.Loop, 19)+use+"\xfd\x53"+w.Drop+w.Call(5)+use+"\xfd\x53"+w.Drop+repeat(again, 19))
		give("19 loops that only read 1,000 vectors", read)
		rounds := transform()
		turn := around(w.Loop, 1, 200, "", w.Get(0)+"\xfd\x53"+brIf0)
		recursive(rounds, "", "", vectors(200), strings.ReplaceAll(repeat(turn, 60), w.Call(5), "")+w.Call(5)+turn)
		give("60 loops behind each other over 200 vectors", rounds)
		ways := transform()
		var cases strings.Builder
		for range 60 {
			cases.WriteString(w.End)
			for i := range uint32(100) {
				cases.WriteString(w.Get(i) + w.Get(i+1) + "\xfd\x51" + set(i))
			}
		}
		recursive(ways, "", "", vectors(101), w.Const(0)+"\xfd\x00\x00\x00"+set(100)+w.Loop+repeat(block, 60)+w.Const(1)+w.Load(0)+"\x0e"+w.U32(59)+labelsTo(59)+cases.String()+
			w.Call(5)+w.Get(0)+"\xfd\x53"+brIf0+w.End+w.Get(50)+"\xfd\x53"+w.Drop)
		give("60 ways to one place", ways)
		passed := transform()
		all := repeat(v128, 100)
		var get strings.Builder
		for i := range uint32(100) {
			get.WriteString(w.Get(i))
		}
		passed.tables = []string{funcref + "\x00\x08"}
		passed.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(5))}
		kind := w.U32(passed.typ(all, all))
		indirect := w.Const(0) + "\x11" + kind + "\x00"
		passed.batch.code = repeat(minusThrees, 100) + w.Call(5) + repeat(w.Drop, 100) + w.Const(0)
		passed.def(all, all, "", get.String()+repeat(indirect, 500))
		give("500 indirect calls of a hundred vectors", passed)
	})},
	{id: "F7", name: "loops over locals that are only theirs", cpu: 6, rss: 600, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		for _, shape := range [][2]int{{18, 1_000}, {180, 100}} {
			n, locals := shape[0], uint32(shape[1])
			var change strings.Builder
			for i := range locals {
				change.WriteString(w.Get(i) + w.Get((i+1)%locals) + "\xfd\x51")
			}
			change.WriteString(w.Call(5))
			for i := range locals {
				change.WriteString(set(i))
			}
			m := transform()
			recursive(m, "", "", groups(run(locals, v128)), repeat(w.Loop, n)+change.String()+repeat(w.Const(1)+w.Load(0)+brIf0+w.End, n))
			give(fmt.Sprint(n, " loops over ", locals, " vectors"), m)
		}
	})},
	{id: "F6", name: "many ways to one place, each with all locals", cpu: 12, rss: 600, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		for _, shape := range [][2]int{{100, 200}, {100, 1_000}, {1_000, 100}, {10, 5_000}} {
			n, locals := shape[0], shape[1]
			// one local still has the value of the loop's head, so all go through values of their own on each way back
			late := uint32(locals)
			turn := w.Get(late) + w.Get(0) + "\xfd\x51" + set(late) + w.Get(late) + "\xfd\x53" + brIf0
			way := w.Const(1) + w.Load(0) + brIf0
			m := transform()
			recursive(m, "", "", groups(run(uint32(locals+1), v128)), around(w.Loop, 1, locals, "", repeat(way, n)+turn))
			give(fmt.Sprint(n, " ways back over ", locals, " vectors"), m)
			table := transform()
			label := w.Const(1) + w.Load(0) + "\x0e" + w.U32(uint32(n)) + repeat("\x01", n+1)
			recursive(table, "", "", groups(run(uint32(locals+1), v128)), around(w.Loop, 1, locals, "", w.Const(1)+w.Load(0)+ifThen+label+w.End+turn))
			give(fmt.Sprint(n, " labels over ", locals, " vectors"), table)
		}
	})},
	{id: "F4", name: "values of calls and blocks", cpu: 6, rss: 300, onEach: true, long: true, each: frames(func(give func(string, *module)) {
		hundred := repeat(v128, 100)
		for _, n := range []int{5, 100, 400} {
			m := transform()
			recursive(m, "", "", "", repeat(w.Call(6), n)+w.Call(5)+repeat(w.Call(7), n))
			m.def("", hundred, "", repeat(w.Const(0)+"\xfd\x00\x00\x00", 100))
			m.def(hundred, "", "", "")
			give(fmt.Sprint(n, " calls with a hundred results, all alive"), m)
		}
		wide := transform()
		var all strings.Builder
		for i := range uint32(100) {
			all.WriteString(w.Get(i))
		}
		wide.batch.code = repeat(minusThrees, 100) + w.Call(5) + repeat(w.Drop, 100) + w.Const(0)
		wide.def(hundred, hundred, "", all.String()+all.String()+w.Call(5)+repeat("\xfd\x51", 100))
		give("a hundred vectors in and out", wide)
		for _, n := range []int{50, 400} {
			m := transform()
			kind := w.S32(int32(m.typ(hundred, hundred)))
			turn := w.Const(0) + brIf0 + repeat(w.Call(7)+w.Call(6), 1)
			recursive(m, "", "", "", w.Call(6)+repeat("\x03"+kind, n)+w.Call(7)+w.Call(5)+w.Call(6)+repeat(turn+w.End, n)+w.Call(7))
			m.def("", hundred, "", repeat(w.Const(0)+"\xfd\x00\x00\x00", 100))
			m.def(hundred, "", "", "")
			give(fmt.Sprint(n, " loops of a hundred values"), m)
		}
	})},
}

// frames are recursions that must end by the count of depth.
func frames(make func(give func(string, *module))) variants {
	deepest := sandbox.Limits{Depth: sandbox.MaxDepth, FuelCall: 1 << 40}
	return func(yield func(variant) bool) {
		more := true
		make(func(name string, m *module) {
			more = more && yield(variant{name: name, wasm: m.bytes(), limits: deepest, want: trapped(abi.TrapDepth, "limits.depth")})
		})
	}
}

// recursive makes the batch call function 5, whose code is given.
func recursive(m *module, params, results, locals, code string) {
	m.batch.code = w.Call(5) + w.Const(0)
	m.def(params, results, locals, code)
}

// around is a call of function 5 inside of many blocks, between code that changes all locals, and again after it.
func around(open string, n, locals int, before, last string) string {
	var change strings.Builder
	for i := range uint32(locals) {
		change.WriteString(w.Get(i) + w.Get((i+1)%uint32(locals)) + "\xfd\x51" + set(i))
	}
	load := w.Const(0) + "\xfd\x00\x00\x00" + set(0)
	return load + repeat(before+open, n) + change.String() + w.Call(5) + change.String() + repeat(last+w.End, n) + change.String() + w.Get(uint32(locals-1)) + "\xfd\x53" + w.Drop
}

// labelsTo are the labels 0 to n.
func labelsTo(n uint32) string {
	var all strings.Builder
	for i := range n + 1 {
		all.WriteString(w.U32(i))
	}
	return all.String()
}

// spread is about n instructions over i64 locals, around a call of function 5.
func spread(locals, n int) string {
	var half strings.Builder
	for i := range n / 8 {
		at := uint32(i % locals)
		half.WriteString(w.Get(at) + i64const(3) + "\x7c" + set(at))
	}
	return half.String() + w.Call(5) + half.String()
}
