package hostile

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// rewriteAttacks are modules of as many bytes as may be that want to cost the reader and the rewriter more than their
// size: those work in the process itself, before anything is compiled apart.
var rewriteAttacks = []attack{
	{id: "R1", name: "sums of floats", cpu: 5, rss: 500, long: true, each: rewriting("", func(m *module) string {
		return "\x43\x00\x00\x00\x00" + repeat("\x43\x00\x00\x00\x00\x92", 100_000) + w.Drop
	})},
	{id: "R2", name: "sums of vectors", cpu: 5, rss: 700, long: true, each: func(yield func(variant) bool) {
		rewriting(groups(run(1, v128)), func(m *module) string {
			return repeat(w.Get(0)+w.Get(0)+"\xfd\xe4\x01"+set(0), 100_000)
		})(func(v variant) bool {
			v.want = refused("", "becomes too large", "67108864") // by the rewriter alone
			return yield(v)
		})
	}},
	{id: "R3", name: "branches", cpu: 5, rss: 500, long: true, each: rewriting("", func(m *module) string {
		return repeat(block+w.Const(0)+brIf0+w.End, 120_000)
	})},
	{id: "R4", name: "calls of a hundred values", cpu: 8, rss: 500, long: true, each: rewriting("", func(m *module) string {
		wide := m.def(repeat(f32, 100), repeat(f32, 100), "", repeat("\x43\x00\x00\x00\x00", 100))
		return repeat("\x43\x00\x00\x00\x00", 100) + repeat(w.Call(wide), binary.MaxCalls) + repeat(w.Drop, 100)
	})},
	{id: "R5", name: "blocks of a hundred values", cpu: 8, rss: 500, long: true, each: rewriting("", func(m *module) string {
		kind := w.S32(int32(m.typ(repeat(f32, 100), repeat(f32, 100))))
		return repeat("\x43\x00\x00\x00\x00", 99) + "\x43\x00\x00\x00\x00\x43\x00\x00\x00\x00\x92" + repeat("\x02"+kind+w.End, 200_000) + repeat(w.Drop, 100)
	})},
	{id: "R6", name: "as many locals as may be in every function", cpu: 4, rss: 500, each: func(yield func(variant) bool) {
		m := transform()
		t := w.U32(m.typ("", ""))
		one := &body{locals: groups(run(binary.MaxLocals-10, f32)), code: w.Get(0) + w.Get(1) + "\x92" + set(2)}
		for range binary.MaxFuncs - 10 {
			m.funcs, m.bodies = append(m.funcs, t), append(m.bodies, one)
		}
		yield(variant{wasm: m.bytes(), want: refused(sandbox.CodeTooLarge, "locals")})
	}},
	{id: "R7", name: "functions of ten thousand types", cpu: 5, rss: 500, each: func(yield func(variant) bool) {
		m := transform()
		const types = binary.MaxTypes - 10
		for i := range types {
			results := fmt.Sprintf("%014b", i)
			results = strings.NewReplacer("0", i32, "1", i64).Replace(results)
			m.types = append(m.types, w.FuncType("", results))
		}
		first := len(m.types) - types
		for i := range binary.MaxFuncs - 10 {
			m.funcs = append(m.funcs, w.U32(uint32(first+i%types)))
			m.bodies = append(m.bodies, &body{code: w.Call(4) + w.Unreachable})
		}
		yield(variant{wasm: m.bytes(), own: onlyRewritten})
	}},
	{id: "R8", name: "names of functions that are not there", cpu: 3, rss: 300, each: func(yield func(variant) bool) {
		m := batching("", w.Unreachable)
		const n = 2_500_000
		var list strings.Builder
		for i := range uint32(n) {
			list.WriteString(w.U32(i) + "\x00")
		}
		names := w.U32(n) + list.String()
		m.after = section(w.Custom, w.Name("name")+"\x01"+w.U32(uint32(len(names)))+names)
		yield(variant{wasm: m.bytes(), want: want{at: atCall, trap: "unreachable"}})
	}},
	{id: "R9", name: "branches in deep blocks", cpu: 5, rss: 500, long: true, each: rewriting("", func(m *module) string {
		return repeat(block, binary.MaxNesting-5) + repeat(w.Const(0)+"\x0d"+w.U32(binary.MaxNesting-10), 150_000) + repeat(w.End, binary.MaxNesting-5)
	})},
	{id: "R10", name: "copies of floats from local to local", cpu: 5, rss: 500, long: true, each: rewriting(groups(run(30_000, f32)), func(m *module) string {
		var code strings.Builder
		for i := range uint32(29_999) {
			code.WriteString(w.Get(i) + set(i+1))
		}
		for i := uint32(29_998); i > 0; i-- {
			code.WriteString(w.Get(i) + set(i-1))
		}
		return w.Get(0) + w.Get(1) + "\x92" + set(0) + code.String() + w.Get(29_999) + "\xbc" + w.Drop
	})},
	{id: "R11", name: "nothing but loops", cpu: 5, rss: 500, long: true, each: rewriting("", func(m *module) string {
		return repeat(w.Loop+w.End, 250_000)
	})},
	{id: "R13", name: "locals of blocks in blocks", cpu: 5, rss: 500, long: true, each: rewriting(groups(run(60_000, i32)), func(m *module) string {
		deep := binary.MaxNesting - 10
		var code strings.Builder
		for i := range uint32(deep) {
			code.WriteString(block + w.Get(i%9) + set((i+5)%9))
		}
		for i := range uint32(deep) {
			code.WriteString(w.End + w.Get(i%7) + set((i+3)%7))
		}
		return repeat(code.String(), 8) + w.Get(59_999) + w.Drop
	})},
	{id: "R12", name: "bulk memory", cpu: 5, rss: 500, long: true, each: rewriting("", func(m *module) string {
		return repeat(w.Const(0)+w.Const(0)+w.Const(0)+fillMemory, 90_000)
	})},
}

// rewriting are a module of as many bytes as may be, whose functions all have some locals and a code, and only what reading
// and rewriting it costs.
func rewriting(locals string, code func(m *module) string) variants {
	return func(yield func(variant) bool) {
		m := transform()
		one := &body{locals: locals, code: code(m)}
		t := w.U32(m.typ("", ""))
		for range (binary.MaxModule - 65536) / len(one.bytes()) {
			m.funcs, m.bodies = append(m.funcs, t), append(m.bodies, one)
		}
		yield(variant{wasm: m.bytes(), own: onlyRewritten})
	}
}

func onlyRewritten(_ context.Context, _ sandbox.Engine, v *variant) outcome {
	m, err := binary.Parse(v.wasm)
	if err != nil {
		return outcome{}.failed(atCompile, err)
	}
	out, err := rewriter.Rewrite(m, rewriter.Options{MaxPages: 1024, MaxTable: binary.MaxTable})
	if err != nil {
		return outcome{}.failed(atCompile, err)
	}
	return outcome{At: atEnd, Usage: sandbox.Usage{Memory: int64(len(out.Wasm))}}
}
