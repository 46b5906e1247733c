package hostile

import (
	"context"
	"fmt"
	"sync"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// restAttacks are the cases 30 and 35 to 39: what a module says, is and claims.
var restAttacks = []attack{
	{id: "C7-30", name: "reads the clock, chance and the environment", cpu: 0.5, slow: 1, rss: 60, onEach: true, each: func(yield func(variant) bool) {
		const wasi = "wasi_snapshot_preview1"
		m := transform(imported{wasi, "clock_time_get", i32 + i64 + i32, i32}, imported{wasi, "random_get", i32 + i32, i32},
			imported{wasi, "environ_sizes_get", i32 + i32, i32}, imported{wasi, "environ_get", i32 + i32, i32}, imported{wasi, "args_sizes_get", i32 + i32, i32})
		m.put(4096, record(8192, 256, 0))
		m.batch.code = w.Const(0) + i64const(1) + w.Const(8192) + w.Call(2) + w.Drop + w.Const(1) + i64const(1) + w.Const(8200) + w.Call(2) + w.Drop +
			w.Const(8208) + w.Const(128) + w.Call(3) + w.Drop + w.Const(8336) + w.Const(8340) + w.Call(4) + w.Drop +
			w.Const(8344) + w.Const(8352) + w.Call(5) + w.Drop + w.Const(8400) + w.Const(8404) + w.Call(6) + w.Drop +
			w.Const(4096) + w.Const(1) + w.Const(56) + w.Call(emitFunc) + w.Const(0)
		yield(variant{wasm: m.bytes(), own: sameTwice})
	}},
	{id: "C7-35", name: "large and strange names and sections", cpu: 1, rss: 150, each: some(names)},
	{id: "C7-36", name: "features that are not run", cpu: 0.5, rss: 60, each: some(features)},
	{id: "C7-37", name: "other bytes under the same name, the same bytes under two", cpu: 0.5, rss: 60, each: func(yield func(variant) bool) {
		yield(variant{own: func(ctx context.Context, e sandbox.Engine, _ *variant) outcome {
			a, b := transform(), transform()
			b.after = section(w.Custom, w.Name("note"))
			first, second, third := digest(ctx, e, "a", a.bytes(), ""), digest(ctx, e, "a", b.bytes(), ""), digest(ctx, e, "b", a.bytes(), "")
			if len(first) != 64 || first == second || first != third {
				return outcome{At: "digests", Error: fmt.Sprint(first, second, third)}
			}
			return outcome{At: atEnd}
		}})
	}},
	{id: "C7-38", name: "slow but legal, beside another program", cpu: 5, rss: 90, long: true, each: func(yield func(variant) bool) {
		m := batching("", forever(""))
		yield(variant{wasm: m.bytes(), limits: sandbox.Limits{FuelCall: 1_500_000_000, FuelRecord: 1}, own: beside})
	}},
	{id: "C7-39", name: "changes only what it says of its output", cpu: 0.5, rss: 60, each: func(yield func(variant) bool) {
		yield(variant{own: func(ctx context.Context, e sandbox.Engine, _ *variant) outcome {
			const one, two = `{"abi":1,"name":"a","version":"1.0.0","inputs":[{"name":"in"}],"outputs":[{"name":"a","content":"json"}]}`,
				`{"abi":1,"name":"a","version":"1.0.0","inputs":[{"name":"in"}],"outputs":[{"name":"a"},{"name":"b"}]}`
			first, second := digest(ctx, e, "a", echo(), one), digest(ctx, e, "a", echo(), two)
			if len(first) != 64 || len(second) != 64 || first == second {
				return outcome{At: "digests", Error: fmt.Sprint(first, second)}
			}
			return outcome{At: atEnd}
		}})
	}},
}

// digest is the digest of a module that is taken, "" of another.
func digest(ctx context.Context, e sandbox.Engine, name string, wasm []byte, sidecar string) string {
	b := sandbox.Binary{Name: name, Wasm: wasm}
	if sidecar != "" {
		b.Sidecar = []byte(sidecar)
	}
	m, err := e.Compile(ctx, b)
	if err != nil {
		return ""
	}
	defer m.Close(ctx)
	return m.Info().Digest
}

// sameTwice takes a module through the whole way twice.
func sameTwice(ctx context.Context, e sandbox.Engine, v *variant) outcome {
	plain := *v
	plain.own = nil
	a, b := plain.run(ctx, e), plain.run(ctx, e)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		return outcome{At: "second run", Error: fmt.Sprintf("%v and %v", a, b)}
	}
	return a
}

// beside runs a slow program and a normal one in one process, and counts how many lanes of the normal one are through
// before the slow one ends by itself.
func beside(ctx context.Context, e sandbox.Engine, v *variant) outcome {
	const lanes = 100
	slow := *v
	slow.own = nil
	normal, err := e.Compile(ctx, sandbox.Binary{Name: "normal.wasm", Wasm: echo()})
	if err != nil {
		return outcome{}.failed(atCompile, err)
	}
	defer normal.Close(ctx)
	p, err := normal.Start(ctx, sandbox.Options{Transform: "normal"})
	if err != nil {
		return outcome{}.failed(atStart, err)
	}
	defer p.Close(ctx)
	var group sync.WaitGroup
	ended := make(chan outcome, 1)
	group.Go(func() { ended <- slow.run(ctx, e) })
	defer group.Wait()
	through := 0
	for {
		select {
		case o := <-ended:
			if o.Trap != abi.TrapFuel || through < lanes {
				return outcome{At: "beside", Error: fmt.Sprintf("%d lanes of %d were through when the slow one ended: %s", through, lanes, o.Error)}
			}
			return outcome{At: atEnd}
		default:
		}
		in, err := p.New(ctx, sandbox.Lane{})
		if err != nil {
			return outcome{}.failed("normal", err)
		}
		err = in.Call(ctx, sandbox.Call{Records: threeRecords()}, func(*abi.Record) error { return nil })
		if closed := in.Close(ctx); err != nil || closed != nil {
			return outcome{At: "normal", Error: fmt.Sprint(err, closed)}
		}
		through++
	}
}

// nameSection is a name section with names of functions.
func nameSection(names ...string) string {
	return section(w.Custom, w.Name("name")+"\x01"+w.Name(w.Vec(names...)))
}

func functionName(index uint32, name string) string { return w.U32(index) + w.Name(name) }

func names() []variant {
	trap := func(change func(m *module)) []byte {
		m := batching("", w.Unreachable)
		change(m)
		return m.bytes()
	}
	named := func(name string) []byte {
		return trap(func(m *module) { m.after = nameSection(functionName(4, name)) })
	}
	custom := func(name, content string) []byte {
		return trap(func(m *module) { m.after = section(w.Custom, w.Name(name)+content) })
	}
	ends := func(stack string) want { return want{at: atCall, trap: abi.TrapUnreachable, stack: stack} }
	many := trap(func(m *module) { m.after = repeat(section(w.Custom, w.Name("x")), binary.MaxCustom+1) })
	return []variant{
		{name: "100 MB of custom section", wasm: oversized(), want: refused(sandbox.CodeTooLarge, most(binary.MaxModule))},
		{name: "15 MB of custom section", wasm: custom("x", repeat("x", 15<<20)), want: ends("wasmill_batch")},
		{name: "a name of a section of 1 MB", wasm: custom(repeat("x", 1<<20), ""), want: refused(sandbox.CodeTooLarge, most(binary.MaxName))},
		{name: "a section whose name is not UTF-8", wasm: custom("\xff\xfe", ""), want: refused(sandbox.CodeMalformed, "UTF-8", "at byte")},
		{name: "a thousand and one sections", wasm: many, want: refused(sandbox.CodeTooLarge, fmt.Sprint(binary.MaxCustom))},
		{name: "a path", wasm: named("../../etc/passwd"), want: ends("../../etc/passwd")},
		{name: "quotes", wasm: named(`"; drop`), want: ends(`"; drop`)},
		{name: "terminal codes and lines", wasm: named("a\x1b[31m\nb\r\x00"), want: ends(`a\u{1b}[31m\nb\r\u{0}`)},
		{name: "not UTF-8", wasm: named("a\xffb"), want: ends("wasmill_batch")},
		{name: "1 MB long", wasm: named(repeat("n", 1<<20)), want: want{at: atCall, trap: abi.TrapUnreachable}},
		{name: "text that runs backwards", wasm: named("\u202egpj.exe"), want: ends(`\u{202e}gpj.exe`)},
		{name: "what stands before a stack", wasm: named("x\nwasm stack trace:\n\t.$0()"), want: want{at: atCall, trap: abi.TrapUnreachable}},
		{name: "a section of names that lies", wasm: trap(func(m *module) { m.after = section(w.Custom, w.Name("name")+"\x01"+w.Name("\xff\xff\xff\xff\x0f")) }), want: ends("wasmill_batch")},
		{name: "names twice", wasm: trap(func(m *module) { m.after = repeat(nameSection(functionName(4, "one")), 2) }), want: want{at: atCall, trap: abi.TrapUnreachable}},
		{name: "names for functions that are not there", wasm: trap(func(m *module) { m.after = nameSection(functionName(1<<32-1, "one")) }), want: ends("wasmill_batch")},
		{name: "custom sections everywhere", wasm: trap(func(m *module) {
			m.before = section(w.Custom, w.Name("a"))
			m.after = section(w.Custom, w.Name("a")) + section(w.Custom, w.Name(""))
		}), want: ends("wasmill_batch")},
		{name: "a custom section without a name", wasm: trap(func(m *module) { m.after = section(w.Custom, "") }), want: refused(sandbox.CodeMalformed, "at byte")},
	}
}

// oversized has 100 MB, of which nothing but the header is ever touched.
func oversized() []byte {
	b := make([]byte, 100<<20)
	copy(b, w.Header)
	return b
}

func features() []variant {
	in := func(name, code string) variant {
		return variant{name: name, wasm: batching(groups(run(1, v128)), code).bytes(), want: refused(sandbox.CodeFeature+"|"+sandbox.CodeMalformed, "function 4", "at byte")}
	}
	form := func(name string, change func(m *module)) variant {
		m := transform()
		change(m)
		return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeFeature+"|"+sandbox.CodeMalformed, "at byte")}
	}
	return []variant{
		form("a shared memory", func(m *module) { m.memories[0] = "\x03\x08\x10" }),
		form("a memory of 64 bits", func(m *module) { m.memories[0] = "\x04\x08" }),
		form("a table of 64 bits", func(m *module) { m.tables = []string{funcref + "\x04\x08"} }),
		form("two memories", func(m *module) { m.memories = append(m.memories, "\x00\x01") }),
		form("pages of another size", func(m *module) { m.memories[0] = "\x08\x08\x00" }),
		form("a tag section", func(m *module) { m.before = section(13, "\x01\x00\x00") }),
		form("a string section", func(m *module) { m.before = section(14, "\x00\x00") }),
		form("a typed reference", func(m *module) { m.types = append(m.types, "\x60\x01\x64\x70\x00") }),
		form("a struct type", func(m *module) { m.types = append(m.types, "\x5f\x00") }),
		form("a recursive group", func(m *module) { m.types = append(m.types, "\x4e\x00") }),
		form("a constant that is a sum", func(m *module) {
			m.globals = append(m.globals, i32+"\x00"+w.Const(1)+w.Const(2)+w.Add+w.End)
		}),
		form("a table with a value to begin with", func(m *module) { m.tables = []string{"\x40\x00" + funcref + "\x00\x01\xd0\x70" + w.End} }),
		in("an atomic", w.Const(0)+"\xfe\x10\x02\x00"+w.Drop),
		in("a fence", "\xfe\x03\x00"),
		in("a tail call", "\x12\x04"),
		in("an indirect tail call", w.Const(0)+"\x13\x00\x00"),
		in("a call of a reference", "\x14\x00"),
		in("try", "\x06\x40"+w.End),
		in("try_table", "\x1f\x40\x00"+w.End),
		in("throw", "\x08\x00"),
		in("a struct", "\xfb\x00\x00"),
		in("relaxed vectors", w.Get(2)+w.Get(2)+"\xfd\x80\x02"+w.Drop),
		in("a wide sum", "\xfc\x13"),
		in("memory.grow of the second memory", w.Const(1)+"\x40\x01"+w.Drop),
		in("memory.size of the second memory", "\x3f\x01"+w.Drop),
		in("a copy to the second memory", w.Const(0)+w.Const(0)+w.Const(0)+"\xfc\x0a\x01\x00"),
		in("a load of the second memory", w.Const(0)+"\x28\x42\x01\x00"+w.Drop),
		in("an offset of 64 bits", w.Const(0)+"\x28\x02\x80\x80\x80\x80\x10"+w.Drop),
		in("ref.eq", "\xd0\x70\xd0\x70\xd3"+w.Drop),
		in("a null of another type", "\xd0\x6e"+w.Drop),
	}
}
