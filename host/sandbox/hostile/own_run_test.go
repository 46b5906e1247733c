package hostile

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// plenty is more fuel than anything here can use up in the time that it has.
var plenty = sandbox.Limits{FuelCall: 1 << 50}

const wasiModule = "wasi_snapshot_preview1"

// ownRunAttacks are modules that are taken and do harm when they run.
var ownRunAttacks = []attack{
	{id: "O1", name: "memory.grow without end", cpu: 0.5, slow: 1, rss: 60, onEach: true, each: some(func() []variant {
		grows := func(n int32) []byte { return batching("", forever(w.Const(n)+w.Grow+w.Drop)).bytes() }
		fails := func(n int32) []byte { return answering("", w.Const(n)+w.Grow).bytes() }
		return []variant{
			{name: "by one", wasm: grows(1), want: trapped(abi.TrapFuel)},
			{name: "by none", wasm: grows(0), want: trapped(abi.TrapFuel)},
			{name: "by more than there is", wasm: fails(1017), want: answered(-1)},
			{name: "by 65,535", wasm: fails(65_535), want: answered(-1)},
			{name: "by 2^31", wasm: fails(-1 << 31), want: answered(-1)},
			{name: "by 2^32-1", wasm: fails(-1), want: answered(-1)},
			{name: "by all there is", wasm: fails(1016), want: answered(8)},
		}
	})},
	{id: "O2", name: "bulk memory out of bounds", cpu: 0.5, rss: 60, onEach: true, each: some(outOfBounds)},
	{id: "O3", name: "tables grown, filled and copied", cpu: 1, slow: 2, rss: 90, onEach: true, each: some(tableStorms)},
	{id: "O4", name: "indirect calls without end", cpu: 1, slow: 4, rss: 60, onEach: true, each: one(func() []byte {
		m := transform()
		m.tables = []string{funcref + "\x00\x08"}
		nothing := m.def("", "", "", "")
		m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(nothing))}
		m.batch.code = forever(repeat(w.Const(0)+"\x11"+w.U32(m.typ("", ""))+"\x00", 50)) + w.Const(0)
		return m.bytes()
	}, trapped(abi.TrapFuel))},
	{id: "O5", name: "a tree of calls without a loop", cpu: 1, slow: 4, rss: 60, onEach: true, each: some(func() []variant {
		tree := func(width, height int) []byte {
			m := transform()
			for i := range height {
				code := ""
				if i > 0 {
					code = repeat(w.Call(m.next-1), width)
				}
				m.def("", "", "", code)
			}
			m.batch.code = w.Call(m.next-1) + w.Const(0)
			return m.bytes()
		}
		return []variant{
			{name: "2^40", wasm: tree(2, 40), limits: sandbox.Limits{FuelCall: 10_000_000, FuelRecord: 1}, want: trapped(abi.TrapFuel)},
			{name: "1,000^6", wasm: tree(1_000, 6), limits: sandbox.Limits{FuelCall: 10_000_000, FuelRecord: 1}, want: trapped(abi.TrapFuel)},
		}
	})},
	{id: "O7", name: "start-up that does what it should not", cpu: 4, rss: 90, long: true, each: some(startUps)},
	{id: "O8", name: "the fuel of alloc and of a call to the last drop", cpu: 1, slow: 4, rss: 60, onEach: true, each: some(func() []variant {
		alloc := func(n int32) []byte {
			m := transform()
			m.alloc.locals = groups(run(1, i32))
			m.alloc.code = times(1, n, "") + w.Const(65536)
			return m.bytes()
		}
		call := batching(groups(run(1, i32)), times(2, 1_000, w.Const(1)+w.Drop))
		return []variant{
			{name: "alloc within 10,000,000", wasm: alloc(1_000_000), want: want{}},
			{name: "alloc over it", wasm: alloc(10_000_000), want: notStarted(abi.TrapFuel)},
			{name: "a call", wasm: call.bytes(), own: lastDrop},
		}
	})},
	{id: "O9", name: "storms of host calls", cpu: 2, slow: 8, rss: 120, onEach: true, long: true, each: some(hostStorms)},
	{id: "O10", name: "segments that were dropped", cpu: 0.5, rss: 60, onEach: true, each: some(droppedSegments)},
	{id: "O11", name: "memory.size and other cheap things without end", cpu: 1, slow: 4, rss: 60, onEach: true, each: some(func() []variant {
		var all []variant
		for name, code := range map[string]string{
			"memory.size": memorySize + w.Drop, "nothing": "", "nops": repeat(nop, 500), "constants": repeat(w.Const(5)+w.Drop, 200),
			"blocks": repeat(block+w.End, 200), "loops": repeat(w.Loop+w.End, 100), "ifs": repeat(w.Const(0)+ifThen+w.End, 100),
			"selects": repeat(w.Const(0)+w.Const(0)+w.Const(0)+"\x1b"+w.Drop, 100),
		} {
			all = append(all, variant{name: name, wasm: batching("", forever(code)).bytes(), limits: sandbox.Limits{FuelCall: 5_000_000, FuelRecord: 1}, want: trapped(abi.TrapFuel, "5000003")})
		}
		return sorted(all)
	})},
	{id: "O12", name: "nothing of everything", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		empty := func(name string, change func(m *module)) variant {
			m := transform()
			m.put(0, "")
			m.put(8<<16, "")
			m.batch.code = w.Const(8<<16) + w.Const(8<<16) + w.Const(0) + copyMemory + w.Const(8<<16) + w.Const(0) + w.Const(0) + fillMemory + w.Const(0)
			change(m)
			return variant{name: name, wasm: m.bytes(), want: want{}}
		}
		return []variant{
			empty("copies and fills at the end", func(*module) {}),
			empty("sections without entries", func(m *module) {
				m.tables, m.globals, m.elements = nil, nil, nil
				m.before = section(w.Custom, w.Name(""))
			}),
			empty("an empty table", func(m *module) {
				m.tables = []string{funcref + "\x01\x00\x00"}
				m.elements = []string{"\x00" + w.Const(0) + w.End + "\x00"}
			}),
			empty("an empty name", func(m *module) { m.export("", 0, 2) }),
			{name: "no records", wasm: echo(), records: []abi.Record{}, want: want{}},
			{name: "an empty record", wasm: echo(), records: []abi.Record{{Value: []byte{}}}, want: want{}},
		}
	})},
	{id: "O13", name: "exports that are imports", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		as := func(export, name, params string, at int) []byte {
			m := transform(imported{wasiModule, name, params, i32})
			m.exports[at] = w.Name(export) + "\x00\x02"
			return m.bytes()
		}
		return []variant{
			{name: "batch is random_get", wasm: as("wasmill_batch", "random_get", i32+i32, 2), want: want{}},
			{name: "batch is a stub", wasm: as("wasmill_batch", "nothing", i32+i32, 2), want: answered(52)},
			{name: "init is a stub", wasm: as("wasmill_init", "sock_accept", i32+i32+i32, 1), want: want{at: atStart, code: sandbox.CodeStart, status: 52}},
			{name: "alloc is a stub", wasm: as("wasmill_alloc", "nothing", i32, 0), want: want{at: atStart, code: sandbox.CodeStart}},
		}
	})},
	{id: "O14", name: "addresses that go round", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		load := func(name, code string) variant {
			return variant{name: name, wasm: batching("", code+w.Drop).bytes(), want: trapped(abi.TrapMemory)}
		}
		top := "\xff\xff\xff\xff\x0f"
		return []variant{
			load("a load at 2^32-1 and an offset of 2^32-1", w.Const(-1)+"\x28\x02"+top),
			load("a load at 0 with an offset of 2^32-1", w.Const(0)+"\x28\x02"+top),
			load("a load over the end", w.Const(8<<16-3)+w.Load(0)),
			load("a vector over the end", w.Const(8<<16-15)+"\xfd\x00\x00\x00"),
			load("a lane over the end", w.Const(8<<16-7)+minusThrees+"\xfd\x57\x00\x00\x00"),
			load("a splat over the end", w.Const(8<<16)+"\xfd\x07\x00\x00"),
		}
	})},
	{id: "O15", name: "functions of a hundred parameters and results", cpu: 2, slow: 4, rss: 120, onEach: true, each: some(manyValues)},
	{id: "O16", name: "equal types under many numbers", cpu: 0.5, rss: 60, onEach: true, each: one(func() []byte {
		m := transform()
		m.types = append(m.types, w.FuncType(i32, i32), w.FuncType(i32, i32))
		twin := uint32(len(m.types) - 1)
		m.tables = []string{funcref + "\x00\x08"}
		m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(2))}
		m.batch.code = w.Const(0) + w.Const(0) + "\x11" + w.U32(twin) + "\x00" + w.Const(65536) + sub
		return m.bytes()
	}, want{})},
	{id: "O17", name: "thousands of globals, and many instances", cpu: 3, slow: 4, rss: 150, onEach: true, long: true, each: func(yield func(variant) bool) {
		m := transform()
		for i := range 10_000 {
			m.global(int32(i))
		}
		m.init.code = w.Const(77) + "\x24" + w.U32(9_999) + w.Const(0)
		m.batch.code = "\x23" + w.U32(9_999) + w.Const(77) + sub + w.Const(5) + "\x24" + w.U32(9_999)
		yield(variant{wasm: m.bytes(), lanes: 50, want: want{}})
	}},
	{id: "O18", name: "remainders, divisions and floats without end", cpu: 2, slow: 8, rss: 60, onEach: true, each: some(func() []variant {
		var all []variant
		for name, code := range dearCode() {
			all = append(all, variant{name: name, wasm: batching(groups(run(1, v128), run(1, f64), run(1, i64)), forever(repeat(code, 20))).bytes(), limits: sandbox.Limits{FuelCall: 1_000_000, FuelRecord: 1}, want: trapped(abi.TrapFuel)})
		}
		return sorted(all)
	})},
	{id: "O32", name: "references that an engine keeps", cpu: 3, rss: 150, long: true, each: one(func() []byte {
		return batching("", forever(repeat("\xd2\x02"+w.Drop, 500))).bytes()
	}, trapped(abi.TrapFuel)).fuelled(1_000_000_000)},
	{id: "O33", name: "instances that are dear to make", cpu: 3, rss: 300, long: true, each: some(dearInstances)},
	{id: "O34", name: "many that end badly beside each other", cpu: 4, rss: 300, long: true, each: func(yield func(variant) bool) {
		yield(variant{own: together})
	}},
	{id: "O19", name: "a start-up that cannot be kept and costs its whole fuel each time", cpu: 3, rss: 60, long: true, each: func(yield func(variant) bool) {
		m := transform()
		m.tables = []string{funcref + "\x00\x08"}
		m.init.locals = groups(run(1, i32))
		m.init.code = times(3, 100_000_000, "") + w.Const(0) + "\xd0\x70\x26\x00" + w.Const(0)
		yield(variant{wasm: m.bytes(), lanes: 3, want: want{}})
	}},
}

// dearCode is code that costs a processor most for its number of instructions, each without effect on the stack. Local 2
// is a v128, 3 an f64 and 4 an i64.
func dearCode() map[string]string {
	f := func(op string) string { return w.Get(3) + w.Get(3) + op + set(3) }
	v := func(op string) string { return w.Get(2) + w.Get(2) + op + set(2) }
	return map[string]string{
		"i32.rem_u":  w.Get(0) + w.Const(7) + "\x70" + w.Drop,
		"i64.rem_s":  w.Get(4) + i64const(7) + "\x81" + set(4),
		"i64.div_u":  w.Get(4) + i64const(7) + "\x80" + set(4),
		"f64.div":    f("\xa3"),
		"f64.sqrt":   w.Get(3) + "\x9f" + set(3),
		"f64.min":    f("\xa4"),
		"f64x2.div":  v("\xfd\xf3\x01"),
		"f64x2.sqrt": w.Get(2) + "\xfd\xef\x01" + set(2),
		"f32x4.min":  v("\xfd\xe8\x01"),
		"i64x2.mul":  v("\xfd\xd5\x01"),
		"i8x16.shl":  w.Get(2) + w.Const(3) + "\xfd\x6b" + set(2),
		"trunc_sat":  w.Get(3) + "\xfc\x07" + set(4),
	}
}

func sorted(all []variant) []variant {
	for i := range all {
		for j := i; j > 0 && strings.Compare(all[j].name, all[j-1].name) < 0; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all
}

func outOfBounds() []variant {
	bulk := func(name string, a, b, c int32, op string, w2 want) variant {
		return variant{name: name, wasm: batching("", w.Const(a)+w.Const(b)+w.Const(c)+op).bytes(), limits: plenty, want: w2}
	}
	const end = 8 << 16
	trap := trapped(abi.TrapMemory)
	again := batching("", forever(w.Const(16)+w.Const(0)+w.Const(end)+fillMemory))
	return []variant{
		bulk("fill of 2^32-1", 0, 7, -1, fillMemory, trap),
		bulk("fill of 2^31", 0, 7, -1<<31, fillMemory, trap),
		bulk("fill over the end", 1, 7, end, fillMemory, trap),
		bulk("fill behind the end", -1, 7, 2, fillMemory, trap),
		bulk("fill of nothing behind the end", end+1, 7, 0, fillMemory, trap),
		bulk("copy of 2^32-1", 0, 0, -1, copyMemory, trap),
		bulk("copy from over the end", 0, 1, end, copyMemory, trap),
		bulk("copy to over the end", 1, 0, end, copyMemory, trap),
		bulk("copy of nothing from behind the end", 0, end+1, 0, copyMemory, trap),
		bulk("copy round the end", -16, 0, 32, copyMemory, trap),
		{name: "again and again", wasm: again.bytes(), want: trap},
		bulk("fill of 2^32-1 with little fuel", 0, 7, -1, fillMemory, trap),
	}
}

func tableStorms() []variant {
	null := "\xd0\x70"
	with := func(name, code string, limits sandbox.Limits, w2 want) variant {
		m := answering("", code)
		m.tables = []string{funcref + "\x00\x10", funcref + "\x01\x10" + w.U32(1<<32-1)}
		m.elements = []string{"\x01\x00" + w.Vec(w.U32(2), w.U32(3))}
		return variant{name: name, wasm: m.bytes(), limits: limits, want: w2}
	}
	grow, fill, copyTable, initTable := "\xfc\x0f\x00", "\xfc\x11\x00", "\xfc\x0e\x00\x00", "\xfc\x0c\x00\x00"
	zero := w.Const(0)
	trap := trapped(abi.TrapTable)
	return []variant{
		with("grown one by one", forever(null+w.Const(1)+grow+w.Drop)+zero, sandbox.Limits{}, trapped(abi.TrapFuel)),
		with("grown by none", forever(null+w.Const(0)+grow+w.Drop)+zero, little, trapped(abi.TrapFuel)),
		with("grown by 2^32-1", null+w.Const(-1)+grow, plenty, answered(-1)),
		with("grown by 2^31", null+w.Const(-1<<31)+"\xfc\x0f\x01", plenty, answered(-1)),
		with("grown to the limit and one over", null+w.Const(65_520)+grow+w.Drop+null+w.Const(1)+grow, plenty, answered(-1)),
		with("grown to the limit", null+w.Const(65_520)+grow+w.Drop+"\xfc\x10\x00", plenty, answered(65_536)),
		with("filled again and again", null+w.Const(65_520)+grow+w.Drop+forever(zero+null+w.Const(65_536)+fill)+zero, sandbox.Limits{}, trapped(abi.TrapFuel)),
		with("copied again and again", null+w.Const(65_520)+grow+w.Drop+forever(zero+zero+w.Const(65_536)+copyTable)+zero, sandbox.Limits{}, trapped(abi.TrapFuel)),
		with("filled out of bounds", zero+null+w.Const(-1)+fill+zero, plenty, trap),
		with("copied out of bounds", zero+w.Const(1)+w.Const(16)+copyTable+zero, plenty, trap),
		with("initialised out of bounds", zero+zero+w.Const(3)+initTable+zero, plenty, trap),
		with("initialised behind the end", w.Const(17)+zero+zero+initTable+zero, plenty, trap),
		with("read out of bounds", w.Const(16)+"\x25\x00"+w.Drop+zero, plenty, trap),
		with("written out of bounds", w.Const(-1)+null+"\x26\x00"+zero, plenty, trap),
		with("initialised with functions and called", zero+zero+w.Const(2)+initTable+zero+zero+"\x11"+w.U32(transform().typ(i32, i32))+"\x00", plenty, answered(65536)),
	}
}

func startUps() []variant {
	start := func(code string) []byte {
		m := transform()
		m.start = w.U32(m.def("", "", groups(run(1, i32)), code))
		return m.bytes()
	}
	init := func(code string) []byte {
		m := transform()
		m.init.locals, m.init.code = groups(run(1, i32)), code
		return m.bytes()
	}
	return []variant{
		{name: "start spins", wasm: start(forever("")), want: notStarted(abi.TrapFuel, "1000000000")},
		{name: "start traps", wasm: start(w.Unreachable), want: notStarted(abi.TrapUnreachable)},
		{name: "start recurses", wasm: start(w.Call(5)), want: notStarted(abi.TrapDepth)},
		{name: "start grows to the limit", wasm: start(w.Const(1016) + w.Grow + w.Drop), want: want{}},
		{name: "start emits", wasm: start(w.Const(0) + w.Const(0) + w.Const(0) + w.Call(emitFunc)), want: notStarted(abi.TrapEmit)},
		{name: "init burns nearly all", wasm: init(times(3, 150_000_000, "") + w.Const(0)), want: want{}},
		{name: "init burns all", wasm: init(times(3, 1_200_000_000, "") + w.Const(0)), want: notStarted(abi.TrapFuel)},
		{name: "init fills memory without end", wasm: init(forever(w.Const(0)+w.Const(1)+w.Const(65536)+fillMemory) + w.Const(0)), want: notStarted(abi.TrapFuel)},
	}
}

// lastDrop finds what a call uses, and gives it that and half of it.
func lastDrop(ctx context.Context, e sandbox.Engine, v *variant) outcome {
	v.own = nil
	v.limits = sandbox.Limits{FuelCall: 1_000_000, FuelRecord: 1}
	first := v.run(ctx, e)
	used := first.Usage.Fuel
	if first.At != atEnd || used < 4_000 {
		return outcome{At: first.At, Error: fmt.Sprintf("%d fuel: %s", used, first.Error)}
	}
	// What the call got besides: one for each of three records.
	v.limits.FuelCall = used - 3
	if o := v.run(ctx, e); o.At != atEnd {
		return outcome{At: "all of it", Error: o.Error}
	}
	v.limits.FuelCall = used / 2
	if o := v.run(ctx, e); o.Trap != abi.TrapFuel {
		return outcome{At: "half of it", Error: o.Error}
	}
	return first
}

func hostStorms() []variant {
	storm := func(name string, im imported, code string) variant {
		m := transform(im)
		m.memories[0] = "\x00" + w.U32(1024)
		vectors := ""
		for range 1024 {
			vectors += "\x00\x00\x10\x00\x00\xf0\x00\x00" // 61,440 bytes at 1 MiB
		}
		m.put(4096, vectors)
		m.batch.code = forever(code+w.Drop) + w.Const(0)
		return variant{name: name, wasm: m.bytes(), want: trapped(abi.TrapFuel)}
	}
	wasi := func(name, params string) imported { return imported{wasiModule, name, params, i32} }
	c := w.Const
	return []variant{
		storm("random_get of 63 MiB", wasi("random_get", i32+i32), c(1<<20)+c(63<<20)+w.Call(2)),
		storm("random_get of nothing", wasi("random_get", i32+i32), c(0)+c(0)+w.Call(2)),
		storm("clock_time_get", wasi("clock_time_get", i32+i64+i32), c(1)+i64const(0)+c(16)+w.Call(2)),
		storm("clock_res_get", wasi("clock_res_get", i32+i32), c(1)+c(16)+w.Call(2)),
		storm("sched_yield", wasi("sched_yield", ""), w.Call(2)),
		storm("a stub", wasi("fd_nothing", i32), c(0)+w.Call(2)),
		storm("fd_write of 1,024 pieces of 60 KiB", wasi("fd_write", i32+i32+i32+i32), c(1)+c(4096)+c(1024)+c(16)+w.Call(2)),
		storm("fd_write of 1,024 pieces to nowhere", wasi("fd_write", i32+i32+i32+i32), c(9)+c(4096)+c(1024)+c(16)+w.Call(2)),
		storm("fd_read into 1,024 pieces", wasi("fd_read", i32+i32+i32+i32), c(0)+c(4096)+c(1024)+c(16)+w.Call(2)),
		storm("poll_oneoff of 1,024 subscriptions that fail", wasi("poll_oneoff", i32+i32+i32+i32), c(1<<20)+c(2<<20)+c(1024)+c(16)+w.Call(2)),
		storm("environ_get", wasi("environ_get", i32+i32), c(16)+c(1024)+w.Call(2)),
		storm("log of 60 MiB", wasi("sched_yield", ""), c(1)+c(0)+c(60<<20)+w.Call(logFunc)+w.Call(2)),
		storm("emit of a record over and over, 1 to a call", wasi("sched_yield", ""), c(0)+c(1)+c(56)+w.Call(emitFunc)+w.Call(2)).quota(),
	}
}

// quota lets a variant end by its output as well: with a record of 56 bytes a million emits are 56 MB.
func (v variant) quota() variant {
	v.limits.Output = 1 << 30
	return v
}

func droppedSegments() []variant {
	with := func(name, code string, w2 want) variant {
		m := answering("", code)
		m.tables = []string{funcref + "\x00\x10"}
		m.elements = []string{"\x01\x00" + w.Vec(w.U32(2), w.U32(3)), "\x03\x00" + w.Vec(w.U32(2)), "\x00" + w.Const(0) + w.End + w.Vec(w.U32(2))}
		m.data = []string{"\x01" + w.Name("passive"), "\x00" + w.Const(8) + w.End + w.Name("active")}
		m.dataCount = true
		return variant{name: name, wasm: m.bytes(), lanes: 3, want: w2}
	}
	initMemory := func(segment, n int32) string {
		return w.Const(64) + w.Const(0) + w.Const(n) + "\xfc\x08" + w.U32(uint32(segment)) + "\x00"
	}
	drop, zero := "\xfc\x09\x00", w.Const(0)
	initTable := func(segment uint32, n int32) string {
		return zero + zero + w.Const(n) + "\xfc\x0c" + w.U32(segment) + "\x00"
	}
	return []variant{
		with("used and dropped", initMemory(0, 7)+drop+drop+zero, want{}),
		with("dropped and used", drop+initMemory(0, 1)+zero, trapped(abi.TrapMemory)),
		with("dropped and used for nothing", drop+initMemory(0, 0)+zero, want{}),
		with("an active one used", initMemory(1, 1)+zero, trapped(abi.TrapMemory)),
		with("an active one used for nothing", initMemory(1, 0)+zero, want{}),
		with("too much of one", initMemory(0, 8)+zero, trapped(abi.TrapMemory)),
		with("2^32-1 of one", initMemory(0, -1)+zero, trapped(abi.TrapMemory)),
		with("elements dropped and used", "\xfc\x0d\x00"+initTable(0, 1)+zero, trapped(abi.TrapTable)),
		with("elements that were put in their place used", initTable(2, 1)+zero, trapped(abi.TrapTable)),
		with("declared elements used", initTable(1, 1)+zero, trapped(abi.TrapTable)),
		with("dropped without end", forever(drop+"\xfc\x0d\x00")+zero, trapped(abi.TrapFuel)),
	}
}

// manyValues are blocks, loops and functions with as many parameters and results as may be.
func manyValues() []variant {
	hundred := repeat(i32, 100)
	m := transform()
	kind := w.S32(int32(m.typ(hundred, hundred)))
	wide := m.def(hundred, hundred, "", wideBody(kind))
	m.batch.code = repeat(w.Const(1), 100) + repeat(w.Call(wide), 30) + repeat(w.Add, 99) + w.Const(100) + sub
	early := transform()
	f := early.def(i32, hundred, "", repeat(w.Const(1), 100)+w.Get(0)+ifThen+repeat(w.Const(2), 100)+ret+w.End)
	early.batch.code = w.Const(1) + w.Call(f) + repeat(w.Add, 99) + w.Const(0) + w.Call(f) + repeat(w.Add, 100)
	return []variant{
		{name: "nested blocks of a hundred", wasm: m.bytes(), want: want{}},
		{name: "a return of a hundred", wasm: early.bytes(), want: answered(300)},
	}
}

func wideBody(kind string) string {
	var in strings.Builder
	for i := range uint32(100) {
		in.WriteString(w.Get(i))
	}
	return in.String() + repeat("\x02"+kind, 20) + repeat(w.End, 20) + repeat("\x03"+kind, 20) + repeat(w.End, 20)
}

// together runs lanes of programs that end in different ways at the same time, while memory is collected, and wants of each
// what it does alone.
func together(ctx context.Context, e sandbox.Engine, _ *variant) outcome {
	deep := transform()
	recursive(deep, "", "", groups(run(50, i64)), w.Call(5))
	all := []variant{
		{name: "depth", wasm: deep.bytes(), want: trapped(abi.TrapDepth)},
		{name: "fuel", wasm: batching("", forever(w.Const(0)+w.Const(1)+w.Const(8<<16)+fillMemory)).bytes(), limits: little, want: trapped(abi.TrapFuel)},
		{name: "memory", wasm: batching("", w.Const(1016)+w.Grow+w.Drop+w.Const(0)+w.Const(1)+w.Const(64<<20)+fillMemory+w.Const(-1)+w.Load(0)+w.Drop).bytes(), want: trapped(abi.TrapMemory)},
		{name: "exit", wasm: batching("", w.Unreachable).bytes(), want: trapped(abi.TrapUnreachable)},
		{name: "echo", wasm: echo(), want: want{}},
		{name: "emit", wasm: emits("", -1, 1, 56), want: trapped(abi.TrapEmit)},
	}
	wrong := make(chan string, len(all))
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			for range 4 {
				v := all[i]
				v.lanes = 1
				if o := v.run(ctx, e); v.check(&o) != "" {
					wrong <- v.check(&o)
					return
				}
				runtime.GC()
			}
		})
	}
	group.Wait()
	select {
	case w := <-wrong:
		return outcome{At: "together", Error: w}
	default:
		return outcome{At: atEnd}
	}
}

// dearInstances have as much as may be of what every instance is made of.
func dearInstances() []variant {
	elements, passive, tables := transform(), transform(), transform()
	elements.tables = []string{funcref + "\x00" + w.U32(65_536)}
	for range 3 {
		elements.elements = append(elements.elements, "\x00"+w.Const(0)+w.End+w.U32(65_536)+repeat("\x02", 65_536))
	}
	for range 90_000 {
		passive.elements = append(passive.elements, "\x01\x00\x01\x02")
		passive.data = append(passive.data, "\x01\x01x")
	}
	passive.dataCount = true
	passive.batch.code = "\xfc\x09\x00" + "\xfc\x0d\x00" + w.Const(0)
	for range 8 {
		tables.tables = append(tables.tables, funcref+"\x00"+w.U32(65_536))
	}
	lanes := func(name string, m *module) variant {
		return variant{name: name, wasm: m.bytes(), lanes: 20, want: want{}}
	}
	return []variant{lanes("elements", elements), lanes("passive segments", passive), lanes("tables", tables)}
}
