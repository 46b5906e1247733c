package hostile

import (
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// ownLoadAttacks are modules that reach for what is not theirs, or that cost much to compile.
var ownLoadAttacks = []attack{
	{id: "O20", name: "reserved names", cpu: 0.5, rss: 60, each: some(func() []variant {
		var all []variant
		for _, name := range []string{"__wasmill_", "__wasmill_fuel", "__wasmill_depth", "__wasmill_start", "__wasmill_g0", "__wasmill_x"} {
			function, global := transform(), transform()
			function.export(name, 0, 2)
			global.global(0)
			global.export(name, 3, 0)
			w := refused(sandbox.CodeExport+"|"+sandbox.CodeMalformed, name)
			all = append(all, variant{name: name, wasm: function.bytes(), want: w}, variant{name: name + ", a global", wasm: global.bytes(), want: w})
		}
		near := transform()
		near.export("__wasmil_fuel", 0, 2)
		near.export("wasmill_fuel", 0, 2)
		return append(all, variant{name: "names beside them", wasm: near.bytes(), want: want{}})
	})},
	{id: "O21", name: "indexes of what the host adds", cpu: 0.5, rss: 60, each: some(reaching)},
	{id: "O22", name: "segments out of range", cpu: 0.5, rss: 60, each: some(segments)},
	{id: "O23", name: "thousands of tables", cpu: 0.5, rss: 60, each: some(func() []variant {
		m := transform()
		for range 10_000 {
			m.tables = append(m.tables, funcref+"\x00"+w.U32(10_000))
		}
		few := transform()
		for range binary.MaxTables {
			few.tables = append(few.tables, funcref+"\x00"+w.U32(binary.MaxTable))
		}
		return []variant{
			{name: "10,000", wasm: m.bytes(), want: refused(sandbox.CodeTooLarge, "tables", most(binary.MaxTables), "at byte")},
			{name: "as many as may be", wasm: few.bytes(), want: want{}},
		}
	})},
	{id: "O24", name: "br_tables that are small one by one", cpu: 1, rss: 200, each: some(func() []variant {
		inOne := batching("", switches(61, 9_000))
		spread := transform()
		for range 1_500 {
			spread.def(i32, "", "", switches(1, 9_000))
		}
		return []variant{
			{name: "in one function", wasm: inOne.bytes(), want: refused(sandbox.CodeTooLarge, "br_table", "function 4", "at byte")},
			{name: "in 1,500 functions", wasm: spread.bytes(), want: refused(sandbox.CodeTooLarge, "br_table", "function", "at byte")},
		}
	})},
	{id: "O25", name: "many types", cpu: 3, rss: 400, long: true, each: some(func() []variant {
		kinds := func(n, params int) []byte {
			m := transform()
			for range n {
				m.types = append(m.types, w.FuncType(repeat(v128, params), repeat(i64, params)))
			}
			return m.bytes()
		}
		return []variant{
			{name: "too many", wasm: kinds(binary.MaxTypes+1, 0), want: refused(sandbox.CodeTooLarge, "types", most(binary.MaxTypes), "at byte")},
			{name: "too many parameters", wasm: kinds(1, binary.MaxParams+1), want: refused(sandbox.CodeTooLarge, "parameters", most(binary.MaxParams), "at byte")},
			{name: "as many as may be", wasm: kinds(binary.MaxTypes-10, binary.MaxParams), want: want{}},
		}
	})},
	{id: "O26", name: "as many empty functions as may be", cpu: 4, rss: 400, long: true, each: one(func() []byte {
		m := transform()
		t := w.U32(m.typ("", ""))
		for range binary.MaxFuncs - 10 {
			m.funcs = append(m.funcs, t)
			m.bodies = append(m.bodies, &body{})
		}
		return m.bytes()
	}, want{})},
	{id: "O27", name: "as many exports, imports and names as may be", cpu: 2, rss: 200, each: some(func() []variant {
		exports := transform()
		for i := range binary.MaxExports - 10 {
			exports.export(fmt.Sprint(i), 2, 0)
		}
		var more []imported
		for i := range binary.MaxImports - 10 {
			more = append(more, imported{wasiModule, fmt.Sprintf("f%d", i), i32, i32})
		}
		return []variant{
			{name: "exports", wasm: exports.bytes(), want: want{}},
			{name: "imports", wasm: transform(more...).bytes(), want: want{}},
		}
	})},
	{id: "O28", name: "as many segments as may be", cpu: 3, rss: 300, long: true, each: some(func() []variant {
		data, elements := transform(), transform()
		elements.tables = []string{funcref + "\x00\x08"}
		for range binary.MaxSegments {
			data.data = append(data.data, "\x00"+w.Const(8)+w.End+"\x01x")
			elements.elements = append(elements.elements, "\x00"+w.Const(0)+w.End+"\x01\x02")
		}
		return []variant{
			{name: "of data", wasm: data.bytes(), want: want{}},
			{name: "of elements", wasm: elements.bytes(), want: want{}},
		}
	})},
	{id: "O29", name: "locals, blocks and labels just under their limits", cpu: 20, rss: 700, long: true, each: some(edges)},
	{id: "O30", name: "one over each limit of a function", cpu: 1, rss: 100, each: some(over)},
	{id: "O31", name: "all of a module in functions just under their limits, compiled apart", cpu: 14, rss: 600, long: true, each: some(full)},
}

// reaching are modules that name functions, globals, types and segments behind their own.
func reaching() []variant {
	malformed := refused(sandbox.CodeMalformed, "at byte")
	in := func(name, code string) variant {
		m := batching("", code)
		m.global(0)
		m.tables = []string{funcref + "\x00\x08"}
		return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeMalformed, "function 4", "at byte")}
	}
	form := func(name string, change func(m *module)) variant {
		m := transform()
		m.tables = []string{funcref + "\x00\x08"}
		change(m)
		return variant{name: name, wasm: m.bytes(), want: malformed}
	}
	var all []variant
	for beyond := range uint32(12) {
		next := func(n uint32) string { return w.U32(n + beyond) }
		all = append(all,
			in(fmt.Sprint("call ", beyond), "\x10"+next(5)),
			in(fmt.Sprint("ref.func ", beyond), "\xd2"+next(5)+w.Drop),
			in(fmt.Sprint("global.get ", beyond), "\x23"+next(1)+w.Drop),
			in(fmt.Sprint("global.set ", beyond), i64const(-1)+"\x24"+next(1)),
			in(fmt.Sprint("call_indirect ", beyond), w.Const(0)+"\x11"+next(uint32(len(transform().types)))+"\x00"),
			in(fmt.Sprint("block ", beyond), "\x02"+w.S32(int32(uint32(len(transform().types))+beyond))+w.End),
			in(fmt.Sprint("table ", beyond), "\xfc\x10"+next(1)+w.Drop),
			in(fmt.Sprint("data ", beyond), "\xfc\x09"+next(0)),
			in(fmt.Sprint("elements ", beyond), "\xfc\x0d"+next(0)),
			in(fmt.Sprint("local ", beyond), "\x20"+next(2)+w.Drop),
			in(fmt.Sprint("label ", beyond), "\x0c"+next(1)),
			form(fmt.Sprint("start ", beyond), func(m *module) { m.start = next(5) }),
			form(fmt.Sprint("export ", beyond), func(m *module) { m.export("x", 0, 5+beyond) }),
			form(fmt.Sprint("exported global ", beyond), func(m *module) { m.export("x", 3, beyond) }),
			form(fmt.Sprint("element ", beyond), func(m *module) {
				m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(next(5))}
			}),
			form(fmt.Sprint("element expression ", beyond), func(m *module) {
				m.elements = []string{"\x04" + w.Const(0) + w.End + w.Vec("\xd2"+next(5)+w.End)}
			}),
			form(fmt.Sprint("global that is a function ", beyond), func(m *module) {
				m.globals = []string{funcref + "\x00\xd2" + next(5) + w.End}
			}),
		)
	}
	undeclared := batching("", "\xd2\x02"+w.Drop)
	undeclared.exports = append(undeclared.exports[:0:0], undeclared.exports[1:]...)
	return append(all, in("ref.func that is not declared", "\xd2\x01"+w.Drop))
}

// segments lie outside of what they are for. wazero would leave out an element segment that does, and all behind it.
func segments() []variant {
	elements := func(name string, items ...string) variant {
		m := transform()
		m.tables = []string{funcref + "\x00\x02"}
		m.elements = items
		return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeMalformed, "element", "outside", "at byte")}
	}
	at := func(offset int32, n int) string {
		return "\x00" + w.Const(offset) + w.End + w.U32(uint32(n)) + repeat("\x02", n)
	}
	data := func(name, segment string) variant {
		m := transform()
		m.data = []string{segment}
		return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeMalformed, "data", "outside", "at byte")}
	}
	bytes := func(offset int32, text string) string { return "\x00" + w.Const(offset) + w.End + w.Name(text) }
	in := transform()
	in.tables = []string{funcref + "\x00\x02"}
	in.elements = []string{at(0, 2), at(2, 0), at(1, 1)}
	return []variant{
		elements("one too many", at(0, 3)), elements("over the end", at(1, 2)), elements("behind the end", at(3, 0)),
		elements("negative", at(-1, 1)), elements("the second", at(0, 1), at(2, 1), at(0, 1)), elements("with expressions", "\x04"+w.Const(2)+w.End+w.Vec("\xd0\x70"+w.End)),
		elements("with a named table", "\x02\x00"+w.Const(2)+w.End+"\x00"+w.Vec("\x02")),
		data("over the end", bytes(8<<16-1, "ab")), data("behind the end", bytes(8<<16+1, "")), data("negative", bytes(-1, "a")), data("with a named memory", "\x02\x00"+w.Const(8<<16)+w.End+w.Name("x")),
		{name: "inside", wasm: in.bytes(), want: want{}},
	}
}

// edges are functions that are just within the limits.
func edges() []variant {
	ok := func(name string, locals, code string) variant {
		return variant{name: name, wasm: batching(locals, code).bytes(), want: want{}}
	}
	var used strings.Builder
	for i := range uint32(binary.MaxLocals - 10) {
		used.WriteString(w.Get(2+i) + set(2+(i+7)%(binary.MaxLocals-10)))
	}
	depth := binary.MaxLoopLocals / 100
	labels := repeat(switches(1, binary.MaxTargets-1), binary.MaxAllTargets/binary.MaxTargets)
	return []variant{
		ok("locals", groups(run(binary.MaxLocals-10, i32)), used.String()),
		ok("locals, with all that may be added", groups(run(binary.MaxLocals-2, i32), run(1, v128), run(1, f64)), everything(binary.MaxLocals)),
		ok("blocks", "", nested(binary.MaxNesting-2, block, nop)),
		ok("ifs", "", nested(binary.MaxNesting-2, w.Const(0)+ifThen, nop)),
		{name: "loops", wasm: batching(groups(run(100, i32)), loopsAround(depth, 100)).bytes(), want: trapped(abi.TrapFuel)},
		ok("calls", "", w.Const(0)+ifThen+repeat(w.Get(0)+w.Get(1)+w.Call(4)+w.Drop, binary.MaxCalls)+w.End),
		ok("labels", "", labels),
		ok("labels to far and near", "", farLabels(min(binary.MaxNesting, 2_000), 10)),
	}
}

// everything has one of each sort of instruction that is written as several. Locals have a v128 and an f64 at last.
func everything(locals uint32) string {
	v, d := locals, locals+1
	return w.Get(v) + w.Get(v) + "\xfd\xe4\x01" + w.Get(v) + "\xfd\xf2\x01" + w.Get(v) + w.Get(v) + "\xfd\x52" + set(v) +
		w.Get(d) + w.Get(d) + "\xa6" + w.Get(d) + "\xa3" + w.Get(d) + w.Get(0) + "\x1b" + set(d) +
		w.Const(7) + w.Const(3) + "\x6f" + w.Drop + block + w.Loop + w.Const(1) + "\x0d\x01" + w.Br0 + w.End + w.End
}

// farLabels are nested blocks with br_tables in the middle that name every one of them.
func farLabels(depth, tables int) string {
	var targets strings.Builder
	for i := range uint32(depth) {
		targets.WriteString(w.U32(i))
	}
	one := w.Const(0) + ifThen + w.Get(0) + "\x0e" + w.U32(uint32(depth-1)) + targets.String() + w.End
	return nested(depth, block, repeat(one, tables))
}

// over are functions that are just over a limit.
func over() []variant {
	bad := func(name, says string, limit int, locals, code string) variant {
		return variant{name: name, wasm: batching(locals, code).bytes(), want: tooLarge(says, limit)}
	}
	return []variant{
		bad("locals", "locals", binary.MaxLocals, groups(run(binary.MaxLocals+1, i32)), ""),
		bad("blocks", "nested", binary.MaxNesting, "", nested(binary.MaxNesting+1, block, nop)),
		bad("labels of one", "br_table", binary.MaxTargets, "", switches(1, binary.MaxTargets+1)),
		bad("labels of all", "br_table", binary.MaxAllTargets, "", switches(9, binary.MaxAllTargets/8)),
		bad("values of locals that meet", "meet", binary.MaxMerged, groups(run(1_000, i32)), repeat(w.Const(1)+ifThen, 261)+change(1_000)+repeat(w.End, 261)+allLocals(1_000)),
		bad("values that are passed on", "passed on", binary.MaxPassed, groups(run(1_000, i32)), block+change(1_000)+w.Get(0)+brTable(3_000)+w.End+allLocals(1_000)),
		bad("ways back to a loop", "ways back", binary.MaxWaysBack, groups(run(100, i32)), w.Loop+change(100)+repeat(w.Get(0)+brIf0, 3_300)+w.End+allLocals(100)),
		bad("loops over locals", "loops", binary.MaxLoopLocals, groups(run(1_000, i32)), loopsAround(binary.MaxLoopLocals/1_000+1, 1_000)),
		bad("loops over what is only theirs", "loops", binary.MaxLoopLocals, groups(run(1_000, i32)), repeat(w.Loop, 21)+change(1_000)+repeat(w.Get(2)+brIf0+w.End, 21)),
		bad("spans of locals", "alive", binary.MaxSpans, groups(run(1_001, i32)), change(1_000)+repeat(w.Const(0)+ifThen+w.End, 1_500)+allLocals(1_000)),
		bad("spans of what is read at the end", "alive", binary.MaxSpans, groups(run(1_001, i32)), repeat(w.Const(0)+ifThen+w.End, 1_500)+allLocals(1_000)),
		bad("calls", "calls", binary.MaxCalls, "", repeat(w.Call(4), binary.MaxCalls+1)),
		bad("values on the stack of blocks", "stack", binary.MaxHeld, "", repeat(w.Const(1), 20_000)+repeat(block+w.End, 5_001)+repeat(w.Drop, 20_000)),
		bad("values on the stack of branches", "stack", binary.MaxHeld, "", block+repeat(w.Const(1), 20_000)+repeat(w.Const(1)+brIf0, 5_001)+repeat(w.Drop, 20_000)+w.End),
		many("labels of the module", "labels", binary.MaxModuleTargets, 60, "", switches(1, 20_000)),
		many("loops of the module", "loops", binary.MaxModuleLoops, 120, groups(run(1_000, i32)), loopsAround(10, 1_000)),
		many("locals of the module", "locals", binary.MaxModuleLocals, 40, groups(run(50_000, i32)), ""),
	}
}

// many are functions of which each is within the limits and all together are not.
func many(name, says string, limit, n int, locals, code string) variant {
	m := transform()
	t := w.U32(m.typ("\x7f\x7f", ""))
	for range n + 1 {
		m.funcs, m.bodies = append(m.funcs, t), append(m.bodies, &body{locals: locals, code: code})
	}
	return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeTooLarge, says, most(limit), "function", "of the module", "at byte")}
}

// change reads and writes n locals from 2 on.
func change(n uint32) string {
	var code strings.Builder
	for i := range n {
		code.WriteString(w.Get(2+i) + w.Get(2+(i+1)%n) + w.Add + set(2+i))
	}
	return code.String()
}

// loopsAround are n nested loops around code that changes locals, of which the last is never 0.
func loopsAround(n int, locals uint32) string {
	return w.Const(1) + set(1+locals) + repeat(w.Loop, n) + change(locals-1) + repeat(w.Get(1+locals)+brIf0+w.End, n) + allLocals(locals)
}

// allLocals reads n locals from 2 on.
func allLocals(n uint32) string {
	var code strings.Builder
	for i := range n {
		code.WriteString(w.Get(2+i) + w.Drop)
	}
	return code.String()
}

// full are modules of as many bytes as may be, in functions that are each within the limits. No limit of form stops all of
// them; the process that compiles does.
func full() []variant {
	fill := func(name string, bytes int, locals, code string) variant {
		m := transform()
		t := w.U32(m.typ("", ""))
		one := &body{locals: locals, code: code}
		for range min((bytes-4096)/(len(one.bytes())+2), binary.MaxFuncs-10) {
			m.funcs = append(m.funcs, t)
			m.bodies = append(m.bodies, one)
		}
		return variant{name: name, wasm: m.bytes(), apart: true, want: refused("module.compile_limit")}
	}
	floats := transform()
	floats.batch.locals = groups(run(1, v128))
	floats.batch.code = repeat(w.Get(2)+w.Get(2)+"\xfd\xe4\x01"+set(2), (binary.MaxBody-4096)/9) + w.Const(0)
	return []variant{
		fill("blocks", binary.MaxModule, "", nested(binary.MaxNesting-2, block, nop)),
		fill("loops over locals", 170_000, groups(run(102, i32)), loopsAround(100, 100)),
		{name: "a megabyte of sums of vectors", wasm: floats.bytes(), apart: true, want: want{}},
	}
}
