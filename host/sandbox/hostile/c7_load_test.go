package hostile

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// most is how a message names a limit.
func most(limit int) string { return fmt.Sprint(limit) }

// tooLarge is the verdict on a function that is over a limit: what, where and the limit.
func tooLarge(what string, limit int) want {
	return refused(sandbox.CodeTooLarge, what, most(limit), "function 4", "at byte")
}

// nested is code inside of n blocks.
func nested(n int, open, code string) string { return repeat(open, n) + code + repeat(w.End, n) }

// loops are n loops around each other; each sums all locals from 2 on into the next one and may go round again.
func loops(n, locals int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(w.Loop + w.Get(uint32(2+i%locals)) + w.Const(1) + w.Add + set(uint32(2+(i+1)%locals)))
	}
	for i := range n {
		out.WriteString(w.Get(uint32(2+i%locals)) + brIf0 + w.End)
	}
	return out.String()
}

// brTable is a br_table of n targets and a default, all the block around it.
func brTable(n int) string { return "\x0e" + w.U32(uint32(n)) + repeat("\x00", n+1) }

// switches are n of them, each of so many targets.
func switches(n, targets int) string {
	return repeat(block+w.Get(0)+brTable(targets)+w.End, n)
}

// loadAttacks are the cases 1 to 10, 14, and 17 to 21: what a module must not even be compiled for.
var loadAttacks = []attack{
	{id: "C7-1", name: "2^31 locals", cpu: 0.5, rss: 60, each: one(func() []byte {
		return batching(groups(run(1<<31, i32)), "").bytes()
	}, tooLarge("locals", binary.MaxLocals))},
	{id: "C7-2", name: "5 M locals", cpu: 0.5, rss: 60, each: some(func() []variant {
		many := func(n int) []byte {
			return batching(groups(run(uint32(n-1), i32), run(1, f64)), "").bytes()
		}
		return []variant{
			{name: "5 M", wasm: many(5_000_000), want: tooLarge("locals", binary.MaxLocals)},
			{name: "one over", wasm: many(binary.MaxLocals + 1), want: tooLarge("locals", binary.MaxLocals)},
			{name: "a sum over 32 bits", wasm: batching(groups(run(1<<31, i32), run(1<<31, i32), run(5, i32)), "").bytes(), want: tooLarge("locals", binary.MaxLocals)},
			{name: "in runs of one", wasm: batching(w.U32(70_000)+repeat(run(1, i32), 70_000), "").bytes(), want: refused(sandbox.CodeTooLarge, "locals", most(binary.MaxLocals))},
		}
	})},
	{id: "C7-3", name: "nested blocks", cpu: 1, rss: 80, each: func(yield func(variant) bool) {
		for _, n := range []int{12_000, 20_000, 60_000} {
			for name, open := range map[string]string{"block": block, "loop": w.Loop, "if": w.Const(1) + ifThen} {
				v := variant{name: fmt.Sprint(n, name), wasm: batching("", nested(n, open, nop)).bytes(), want: tooLarge("nest", binary.MaxNesting)}
				if !yield(v) {
					return
				}
			}
		}
	}},
	{id: "C7-4", name: "nested loops over locals", cpu: 0.5, rss: 60, each: func(yield func(variant) bool) {
		for _, n := range []int{400, 1000} {
			v := variant{name: fmt.Sprint(n), wasm: batching(groups(run(uint32(n), i32)), loops(n, n)).bytes(), want: refused(sandbox.CodeTooLarge, "loop", "function 4", "at most", "at byte")}
			if !yield(v) {
				return
			}
		}
	}},
	{id: "C7-5", name: "br_table", cpu: 0.5, rss: 60, each: func(yield func(variant) bool) {
		for _, n := range []int{26_000, 50_000, 100_000, 300_000} {
			if !yield(variant{name: fmt.Sprint(n), wasm: batching("", switches(1, n)).bytes(), want: tooLarge("br_table", binary.MaxTargets)}) {
				return
			}
		}
	}},
	{id: "C7-6", name: "8,000 ifs over 200 locals", cpu: 0.5, rss: 60, each: one(func() []byte {
		var code strings.Builder
		for i := range 8000 {
			at := uint32(2 + i%200)
			code.WriteString(w.Get(at) + ifThen + w.Const(int32(i)) + set(2+uint32(i*7%200)) + w.End)
		}
		return batching(groups(run(200, i32)), code.String()).bytes()
	}, refused(sandbox.CodeTooLarge, "function 4", "parts of its code", most(binary.MaxSpans), "at byte"))},
	{id: "C7-7", name: "500 K empty functions", cpu: 1, rss: 160, long: true, each: one(func() []byte {
		m := transform()
		t, empty := w.U32(m.typ("", "")), &body{}
		for range 500_000 {
			m.funcs = append(m.funcs, t)
			m.bodies = append(m.bodies, empty)
		}
		return m.bytes()
	}, refused(sandbox.CodeTooLarge, "functions", "at most", "at byte"))},
	{id: "C7-8", name: "1.2 MB straight-line function", cpu: 0.5, rss: 60, each: one(func() []byte {
		return batching("", repeat(w.Get(0)+w.Drop, 400_000)).bytes()
	}, refused(sandbox.CodeTooLarge, "function 4", "bytes", most(binary.MaxBody), "at byte"))},
	{id: "C7-9", name: "a table of 134 M elements", cpu: 0.5, rss: 60, each: one(func() []byte {
		m := transform()
		m.tables = []string{funcref + "\x00" + w.U32(134_217_728)}
		return m.bytes()
	}, refused(sandbox.CodeTooLarge, "table", "134217728", most(binary.MaxTable), "at byte"))},
	{id: "C7-10", name: "table.grow by 100 M", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		table := func(name, limits string) variant {
			m := answering("", "\xd0\x70"+w.Const(100_000_000)+"\xfc\x0f\x00")
			m.tables = []string{funcref + limits}
			return variant{name: name, wasm: m.bytes(), want: answered(-1)}
		}
		return []variant{table("no maximum", "\x00\x01"), table("the largest maximum", "\x01\x01"+w.U32(1<<32-1))}
	})},
	{id: "C7-14", name: "a memory of 65,536 pages", cpu: 0.5, rss: 60, each: some(func() []variant {
		pages := func(limits string) []byte {
			m := transform()
			m.memories = []string{limits}
			return m.bytes()
		}
		return []variant{
			{name: "least", wasm: pages("\x00" + w.U32(65_536)), want: refused(sandbox.CodeMemory, "65536 pages", "at most 32768")},
			{name: "over what there is", wasm: pages("\x00" + w.U32(65_537)), want: refused(sandbox.CodeMalformed, "65536")},
			{name: "most", wasm: pages("\x01\x08" + w.U32(65_536)), want: want{}},
			{name: "over the job's limit", wasm: pages("\x00" + w.U32(1_025)), want: want{at: atStart, code: sandbox.CodeMemory, says: []string{"67174400", "67108864"}}},
		}
	})},
	{id: "C7-17", name: "200 K data segments", cpu: 0.5, rss: 60, each: one(func() []byte {
		m := transform()
		m.data = strings.SplitAfter(repeat("\x00"+w.Const(0)+w.End+"\x00", 200_000), w.End+"\x00")[:200_000]
		return m.bytes()
	}, refused(sandbox.CodeTooLarge, "data segments", most(binary.MaxSegments), "at byte"))},
	{id: "C7-18", name: "counts of 2^32-1, cut sections, sizes past the end", cpu: 2, rss: 80, each: lies},
	{id: "C7-19", name: "other files", cpu: 0.5, rss: 60, each: some(func() []variant {
		file := func(name, bytes, code, says string) variant {
			return variant{name: name, wasm: []byte(bytes), want: refused(code, says)}
		}
		return []variant{
			file("empty", "", sandbox.CodeNotWasm, "empty"),
			file("magic number only", "\x00asm", sandbox.CodeMalformed, "cut off"),
			file("header only", w.Header, sandbox.CodeMemory+"|"+sandbox.CodeExport+"|"+sandbox.CodeABI+"|"+sandbox.CodeMalformed, "memory"),
			file("component", "\x00asm\x0d\x00\x01\x00", sandbox.CodeComponent, "component"),
			file("text format", "(module)", sandbox.CodeNotWasm, "text"),
			file("text behind a comment", ";; x\n(module)", sandbox.CodeNotWasm, "text"),
			file("gzip", "\x1f\x8b\x08\x00", sandbox.CodeNotWasm, "gzip"),
			file("ELF", "\x7fELF\x02\x01", sandbox.CodeNotWasm, "native"),
			file("HTML", "<!DOCTYPE html><p>404", sandbox.CodeNotWasm, "text file"),
			file("zip", "PK\x03\x04", sandbox.CodeNotWasm, "zip"),
			file("zeros", repeat("\x00", 1<<20), sandbox.CodeNotWasm, "WebAssembly"),
			file("version 2", "\x00asm\x02\x00\x00\x00", sandbox.CodeMalformed, "version"),
		}
	})},
	{id: "C7-20", name: "exports missing, wrong, or too many", cpu: 0.5, rss: 60, each: some(exports)},
	{id: "C7-21", name: "imports that are not offered", cpu: 1, rss: 60, onEach: true, each: some(imports)},
}

// lies are modules that announce what they do not have.
func lies(yield func(variant) bool) {
	malformed := refused(sandbox.CodeMalformed+"|"+sandbox.CodeTooLarge, "at byte")
	for id := byte(w.Type); id <= w.DataCount; id++ {
		for _, rest := range []string{"", "\x00", repeat("\x00", 100)} {
			content := w.U32(1<<32-1) + rest
			want := malformed
			if id == w.Memory {
				want = refused(sandbox.CodeMalformed+"|"+sandbox.CodeTooLarge+"|"+sandbox.CodeFeature, "at byte")
			}
			if !yield(variant{name: fmt.Sprintf("section %d counts 2^32-1 before %d bytes", id, len(rest)), wasm: []byte(w.Header + section(id, content)), want: want}) {
				return
			}
		}
		past := w.Header + string([]byte{id}) + w.U32(1<<32-1) + "\x00\x00"
		if !yield(variant{name: fmt.Sprintf("section %d goes past the end", id), wasm: []byte(past), want: malformed}) {
			return
		}
	}
	full := rich()
	any := refused("", "")
	for n := range full {
		if !yield(variant{name: fmt.Sprintf("cut at %d", n), wasm: full[:n], want: any}) {
			return
		}
	}
	yield(variant{name: "whole", wasm: full, want: want{}})
}

// rich is a module with one of each section.
func rich() []byte {
	m := batching(groups(run(3, i64), run(2, v128)), block+w.Get(0)+brTable(3)+w.End+w.Get(0)+ifThen+nop+elseArm+w.Const(1)+w.Drop+w.End)
	m.tables = []string{funcref + "\x01\x04\x08"}
	m.global(7)
	m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(2), w.U32(3))}
	m.put(8, "hello")
	m.data = append(m.data, "\x01"+w.Name("passive"))
	m.dataCount = true
	m.start = w.U32(m.def("", "", "", ""))
	m.before = section(w.Custom, w.Name("note")+"x")
	return m.bytes()
}

func exports() []variant {
	change := func(name string, w want, f func(m *module)) variant {
		m := transform()
		f(m)
		return variant{name: name, wasm: m.bytes(), want: w}
	}
	without := func(i int) func(*module) {
		return func(m *module) { m.exports = append(m.exports[:i:i], m.exports[i+1:]...) }
	}
	renamed := func(params, results, code string) func(m *module) {
		return func(m *module) {
			without(2)(m)
			m.export("wasmill_batch", 0, m.def(params, results, "", code))
		}
	}
	missing := func(name string) want { return refused(sandbox.CodeExport, name) }
	return []variant{
		change("no alloc", missing("wasmill_alloc"), without(0)),
		change("no init", missing("wasmill_init"), without(1)),
		change("no batch", missing("wasmill_batch"), without(2)),
		change("no memory", refused(sandbox.CodeMemory, `"memory"`), without(3)),
		change("two memories", refused(sandbox.CodeFeature, "2 memories", "at byte"), func(m *module) { m.memories = append(m.memories, "\x00\x01") }),
		change("batch with three parameters", missing("wasmill_batch"), renamed(i32+i32+i32, i32, w.Const(0))),
		change("batch with an i64", missing("wasmill_batch"), renamed(i32+i32, i64, i64const(0))),
		change("batch without a result", missing("wasmill_batch"), renamed(i32+i32, "", "")),
		change("batch with two results", missing("wasmill_batch"), renamed(i32+i32, i32+i32, w.Const(0)+w.Const(0))),
		change("batch is a global", missing("wasmill_batch"), func(m *module) {
			without(2)(m)
			m.global(0)
			m.export("wasmill_batch", 3, 0)
		}),
		change("memory is a function", refused(sandbox.CodeMemory, `"memory"`), func(m *module) {
			without(3)(m)
			m.export("memory", 0, 2)
		}),
		change("a name twice", refused(sandbox.CodeMalformed, "twice", "at byte"), func(m *module) { m.export("memory", 2, 0) }),
		change("an export of nothing", refused(sandbox.CodeMalformed, "at byte"), func(m *module) { m.export("x", 0, 1<<31) }),
		change("_start and others are not looked at", want{}, func(m *module) {
			m.export("_start", 0, m.def("", "", "", w.Unreachable))
			m.export("\x1b[31m\n", 0, 2)
		}),
		change("_initialize with a parameter", missing("_initialize"), func(m *module) { m.export("_initialize", 0, m.def(i32, "", "", "")) }),
	}
}

func imports() []variant {
	with := func(name string, w want, module, field, params, results string) variant {
		m := transform(imported{module, field, params, results})
		return variant{name: name, wasm: m.bytes(), want: w}
	}
	const wasi = "wasi_snapshot_preview1"
	enosys := transform(imported{wasi, "sock_accept", i32 + i32 + i32, i32})
	enosys.batch.code = w.Const(1) + w.Const(0) + w.Const(16) + w.Call(2)
	other := func(kind string) variant {
		m := transform()
		m.imports = append(m.imports, w.Name("env")+w.Name("x")+kind)
		return variant{name: fmt.Sprintf("kind % x", kind), wasm: m.bytes(), want: refused(sandbox.CodeImport, "env", "at byte")}
	}
	return []variant{
		with("unknown module", refused(sandbox.CodeImport, "fs", "open"), "fs", "open", i32, i32),
		with("unknown function", refused(sandbox.CodeImport, "wasmill_1", "exec"), "wasmill_1", "exec", i32, i32),
		with("our own module of helpers", refused(sandbox.CodeImport, "__wasmill", "yield"), "__wasmill", "yield", i64+i64, i64),
		with("the same function twice", want{}, "wasmill_1", "emit", i32+i32+i32, ""),
		with("the same function twice with two types", refused(sandbox.CodeImport, "emit"), "wasmill_1", "emit", i32+i32, ""),
		with("no name", refused(sandbox.CodeImport), "", "", "", ""),
		with("terminal codes", refused(sandbox.CodeImport, `\x1b`), "env\x1b[31m", "a\nb", "", ""),
		with("a long name", refused(sandbox.CodeImport), repeat("m", 9_000), repeat("n", 9_000), "", ""),
		with("a longer name", refused(sandbox.CodeTooLarge, most(binary.MaxName), "at byte"), repeat("m", 20_000), "n", "", ""),
		with("a socket without a result", refused(sandbox.CodeImport, "sock_open"), wasi, "sock_open", i32, ""),
		with("proc_exec", want{}, wasi, "proc_exec", i32, i32),
		with("fd_open", want{}, wasi, "fd_open", i32+i64, i32),
		with("fd_write with another type", refused(sandbox.CodeImport, "fd_write"), wasi, "fd_write", i32, i32),
		with("the unstable WASI", refused(sandbox.CodeImport, "wasi_unstable"), "wasi_unstable", "fd_write", i32+i32+i32+i32, i32),
		with("abi 2", refused(sandbox.CodeABI, "ABI 2"), "wasmill_2", "emit", i32+i32+i32, ""),
		{name: "an unknown function of WASI answers ENOSYS", wasm: enosys.bytes(), want: answered(52)},
		other("\x01" + funcref + "\x00\x00"), other("\x02\x00\x00"), other("\x03" + i32 + "\x00"), other("\x03" + i64 + "\x01"),
	}
}
