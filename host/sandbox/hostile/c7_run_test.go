package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// little is fuel that even the interpreter has used up soon.
var little = sandbox.Limits{FuelCall: 2_000_000, FuelRecord: 1}

// runAttacks are the cases 11 to 16 and 22 to 36: what a module does when it runs.
var runAttacks = []attack{
	{id: "C7-11", name: "endless loops", cpu: 6, rss: 60, long: true, each: some(func() []variant {
		loop := forever("")
		start := transform()
		start.start = w.U32(start.def("", "", "", loop))
		initialize := transform()
		initialize.export("_initialize", 0, initialize.def("", "", "", loop))
		starting := transform()
		starting.init.code = loop + w.Const(0)
		alloc := transform()
		alloc.alloc.code = loop + w.Const(0)
		return []variant{
			{name: "in a batch", wasm: batching("", loop).bytes(), want: trapped(abi.TrapFuel)},
			{name: "in the start section", wasm: start.bytes(), want: notStarted(abi.TrapFuel)},
			{name: "in _initialize", wasm: initialize.bytes(), want: notStarted(abi.TrapFuel)},
			{name: "in init", wasm: starting.bytes(), want: notStarted(abi.TrapFuel)},
			{name: "in alloc, for the config", wasm: alloc.bytes(), want: notStarted(abi.TrapFuel)},
		}
	})},
	{id: "C7-11b", name: "endless loops with little fuel", cpu: 0.5, slow: 2, rss: 60, onEach: true, each: some(func() []variant {
		bodies := map[string]string{
			"empty":       forever(""),
			"branches":    w.Loop + w.Const(1) + brIf0 + w.End,
			"a br_table":  w.Loop + w.Get(0) + brTable(5) + w.End,
			"two loops":   w.Loop + w.Loop + w.Const(0) + brIf0 + w.End + w.Br0 + w.End,
			"if and else": w.Loop + w.Get(0) + ifThen + "\x0c\x01" + elseArm + "\x0c\x01" + w.End + w.End,
			"calls":       forever(w.Const(1) + w.Call(2) + w.Drop),
		}
		var all []variant
		for name, code := range bodies {
			all = append(all, variant{name: name, wasm: batching("", code).bytes(), limits: little, want: trapped(abi.TrapFuel, "2000003")})
		}
		return sorted(all)
	})},
	{id: "C7-12", name: "2,000 memory.fill of 16 MiB in a straight line", cpu: 1, rss: 90, long: true, each: one(func() []byte {
		m := batching("", repeat(w.Const(0)+w.Const(7)+w.Const(16<<20)+fillMemory, 2_000))
		m.memories[0] = "\x00" + w.U32(260)
		return m.bytes()
	}, trapped(abi.TrapFuel))},
	{id: "C7-13", name: "endless recursion", cpu: 0.5, rss: 90, onEach: true, each: some(func() []variant {
		deep := func(params, locals, code string) []byte {
			m := transform()
			m.batch.code = repeat(w.Const(0), len(params)) + w.Call(m.next) + w.Const(0)
			m.def(params, "", locals, code)
			return m.bytes()
		}
		want := trapped(abi.TrapDepth)
		return []variant{
			{name: "small", wasm: deep("", "", w.Call(5)), want: want},
			{name: "parameters", wasm: deep(i32, "", w.Get(0)+w.Call(5)), want: want},
			{name: "many locals", wasm: deep("", groups(run(2_000, i64)), w.Call(5)), want: want},
		}
	})},
	{id: "C7-15", name: "memory.grow page by page", cpu: 0.5, rss: 60, onEach: true, each: one(func() []byte {
		return answering("", w.Loop+w.Const(1)+w.Grow+w.Const(-1)+"\x47"+brIf0+w.End+memorySize).bytes()
	}, answered(1024))},
	{id: "C7-16", name: "grows to the limit and touches all", cpu: 5, rss: 200, long: true, each: func(yield func(variant) bool) {
		m := batching("", w.Const(1016)+w.Grow+w.Drop+w.Const(0)+w.Const(1)+w.Const(64<<20)+fillMemory)
		yield(variant{wasm: m.bytes(), own: backToBaseline, want: want{}})
	}},
	{id: "C7-22", name: "wild addresses", cpu: 0.5, rss: 60, onEach: true, each: some(wildAddresses)},
	{id: "C7-23", name: "output that lies over the frame", cpu: 0.5, rss: 60, onEach: true, each: some(func() []variant {
		header := answering("", w.Get(0)+w.Const(1)+w.Const(56)+w.Call(emitFunc)+w.Const(0))
		self := transform()
		self.put(4096, record(4096, 56, 0))
		self.batch.code = w.Const(4096) + w.Const(1) + w.Const(56) + w.Call(emitFunc) + w.Const(0)
		overlap := transform()
		overlap.put(4096, record(0, 8, 0)+record(8, 8, 1))
		overlap.batch.code = w.Const(4096) + w.Const(8) + w.Const(56) + w.Call(emitFunc) + w.Const(0)
		same := transform()
		same.batch.code = repeat(w.Get(0)+w.Load(20)+w.Get(0)+w.Load(16)+w.Get(0)+w.Load(24)+w.Call(emitFunc), 3) + w.Const(0)
		return []variant{
			{name: "the frame's header as a record", wasm: header.bytes(), want: want{}},
			{name: "a record that is its own value", wasm: self.bytes(), want: want{}},
			{name: "more records than there are", wasm: overlap.bytes(), want: want{}},
			{name: "the input three times", wasm: same.bytes(), want: want{}},
		}
	})},
	{id: "C7-24", name: "counts that do not fit", cpu: 0.5, rss: 60, onEach: true, each: some(wrongCounts)},
	{id: "C7-25", name: "output a million times the input", cpu: 0.5, rss: 90, onEach: true, each: some(func() []variant {
		large := transform()
		large.put(4096, record(0, 500_000, 0))
		large.batch.code = forever(w.Const(4096) + w.Const(1) + w.Const(56) + w.Call(emitFunc))
		large.batch.code += w.Const(0)
		small := transform()
		small.put(4096, record(0, 0, 0))
		small.batch.locals = groups(run(1, i32))
		small.batch.code = times(2, 1_200_000, w.Const(4096)+w.Const(1)+w.Const(56)+w.Call(emitFunc)) + w.Const(0)
		return []variant{
			{name: "large records", wasm: large.bytes(), limits: plenty, want: trapped(abi.TrapQuota, "67108864")},
			{name: "small records, one a call", wasm: small.bytes(), limits: sandbox.Limits{Output: 1 << 20}, want: trapped(abi.TrapQuota, "1048576")},
			{name: "one array of a million records over each other", wasm: stacked(), want: trapped(abi.TrapQuota, "67108864")},
		}
	})},
	{id: "C7-26", name: "allocations that cannot be used", cpu: 0.5, slow: 3, rss: 60, onEach: true, each: some(allocations)},
	{id: "C7-27", name: "traps on one record", cpu: 0.5, rss: 60, onEach: true, each: one(func() []byte {
		// Before it traps it says where it is: progress is the index of the second record.
		return batching("", w.Get(0)+w.Const(1)+w.Store(96)+w.Unreachable).bytes()
	}, want{at: atCall, trap: abi.TrapUnreachable, stack: "wasmill_batch"})},
	{id: "C7-28", name: "ways to end", cpu: 0.5, rss: 60, onEach: true, each: some(endings)},
	{id: "C7-29", name: "keeps state between batches", cpu: 0.5, rss: 60, onEach: true, each: one(func() []byte {
		m := transform()
		m.global(0)
		bump := "\x23\x00" + w.Const(1) + w.Add + "\x24\x00"
		m.batch.code = bump + w.Const(16) + w.Const(16) + w.Load(0) + "\x23\x00" + w.Add + w.Store(0) + w.Const(1) + w.Grow + w.Drop +
			w.Const(16) + w.Load(0) + memorySize + w.Add + w.Const(10) + sub
		return m.bytes()
	}, want{})},
	{id: "C7-31", name: "floods its log", cpu: 1.5, slow: 4, rss: 90, onEach: true, each: some(floods)},
	{id: "C7-32", name: "sleeps, and waits for the clock", cpu: 0.5, slow: 2, rss: 60, onEach: true, each: some(sleepers)},
	{id: "C7-33", name: "10^7 host calls", cpu: 1, slow: 3, rss: 60, onEach: true, each: some(func() []variant {
		calls := func(code string) []byte { return batching(groups(run(1, i32)), times(2, 10_000_000, code)).bytes() }
		emitNone := w.Const(0) + w.Const(0) + w.Const(0) + w.Call(emitFunc)
		logNone := w.Const(0) + w.Const(0) + w.Const(0) + w.Call(logFunc)
		wild := func(length int32) []byte {
			return batching("", w.Const(1)+w.Const(0)+w.Const(length)+w.Call(logFunc)).bytes()
		}
		return []variant{
			{name: "emit of nothing", wasm: calls(emitNone), want: trapped(abi.TrapFuel)},
			{name: "log of nothing", wasm: calls(logNone), want: trapped(abi.TrapFuel)},
			{name: "log of 4 GiB", wasm: wild(-1), want: trapped(abi.TrapMemory)},
			{name: "log of 2 GiB", wasm: wild(-1 << 31), want: trapped(abi.TrapMemory)},
			{name: "emit of 2^32-1 records", wasm: batching("", w.Const(0)+w.Const(-1)+w.Const(56)+w.Call(emitFunc)).bytes(), want: trapped(abi.TrapEmit)},
		}
	})},
	{id: "C7-34", name: "leaks with each call until there is no memory", cpu: 0.5, slow: 1, rss: 150, onEach: true, each: func(yield func(variant) bool) {
		// alloc hands out one fresh page after the other, and 0 in the end.
		m := transform()
		m.alloc.locals = groups(run(1, i32))
		m.alloc.code = w.Const(1) + w.Grow + tee(1) + w.Const(-1) + "\x46" + "\x04\x7f" + w.Const(0) + elseArm + w.Get(1) + w.Const(16) + "\x74" + w.End
		yield(variant{wasm: m.bytes(), calls: 2_000, want: want{at: atCall, code: sandbox.CodeAlloc, says: []string{"wasmill_alloc gave no memory"}}})
	}},
}

// backToBaseline runs many instances one after the other and holds what the process then has to what it had.
func backToBaseline(ctx context.Context, e sandbox.Engine, v *variant) outcome {
	before := resident()
	again := *v
	again.own, again.lanes = nil, 40
	again.limits.FuelCall = 1 << 30
	o := again.run(ctx, e)
	if after := resident(); after > before+(40<<20) {
		return outcome{At: "memory", Error: fmt.Sprintf("%d MiB before, %d after", before>>20, after>>20)}
	}
	return o
}

// resident is what this process has of memory, in bytes; 0 where the system does not tell.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// record is an emitted record as it lies in memory.
func record(value, length uint32, index uint32) string {
	le := binary.LittleEndian
	b := make([]byte, 56)
	le.PutUint32(b[24:], value)
	le.PutUint32(b[28:], length)
	le.PutUint32(b[20:], 1<<32-1)
	le.PutUint32(b[48:], index)
	return string(b)
}

// emits is a transform that emits what lies at 4096.
func emits(records string, ptr, count, stride int32) []byte {
	m := transform()
	m.put(4096, records)
	m.batch.code = w.Const(ptr) + w.Const(count) + w.Const(stride) + w.Call(emitFunc) + w.Const(0)
	return m.bytes()
}

func wildAddresses() []variant {
	const end = 8 << 16
	value := func(ptr, length uint32) []byte { return emits(record(ptr, length, 0), 4096, 1, 56) }
	trap := func(name string, wasm []byte) variant {
		return variant{name: name, wasm: wasm, want: trapped(abi.TrapEmit)}
	}
	return []variant{
		trap("a value behind the end", value(end, 1)),
		trap("a value over the end", value(end-1, 2)),
		trap("a value that wraps", value(1<<32-1, 2)),
		trap("a length of 2^31", value(0, 1<<31)),
		trap("a length of -2", value(0, 1<<32-2)),
		trap("records behind the end", emits("", end, 1, 56)),
		trap("records over the end", emits("", end-48, 1, 56)),
		trap("records that wrap", emits("", -8, 2, 56)),
		trap("a stride of 2^32-8", emits("", 4096, 2, -8)),
		trap("a stride of 0", emits("", 4096, 2, 0)),
		trap("2^31 records", emits("", 0, -1<<31, 56)),
		{name: "a wild address of nothing", wasm: value(1<<32-1, 0), want: want{}},
		{name: "no records at a wild address", wasm: emits("", -1, 0, 7), want: want{}},
	}
}

func wrongCounts() []variant {
	good := record(0, 4, 0)
	change := func(at int, b string) string { return good[:at] + b + good[at+len(b):] }
	trap := func(name string, records string, count int32) variant {
		return variant{name: name, wasm: emits(records, 4096, count, 56), want: trapped(abi.TrapEmit)}
	}
	return []variant{
		trap("a record more than there is, which is index 0 twice as a verdict", change(38, "\x10")+change(38, "\x10"), 2),
		trap("an index that was not handed over", record(0, 4, 3), 1),
		trap("kind 2", change(38, "\x02"), 1),
		trap("flags", change(39, "\x80"), 1),
		trap("byte 52", change(52, "\x01"), 1),
		trap("port 1 of 1", change(44, "\x01"), 1),
		trap("65 headers", change(36, "\x41"), 1),
		trap("65,535 headers", change(36, "\xff\xff"), 1),
		trap("a time outside of all years", change(0, "\xff\xff\xff\xff\xff\xff\xff\x7f")[:39]+"\x01"+good[40:], 1),
		{name: "bytes that are no UTF-8 and no JSON", wasm: func() []byte {
			m := transform()
			m.put(4096, good)
			m.put(0, "\xff\xfe\x00\x1b")
			m.batch.code = w.Const(4096) + w.Const(1) + w.Const(56) + w.Call(emitFunc) + w.Const(0)
			return m.bytes()
		}(), want: want{}},
	}
}

// stacked emits a million records in one call, each of which is large and all of which are one.
func stacked() []byte {
	m := transform()
	m.memories[0] = "\x00" + w.U32(1024)
	m.batch.locals = groups(run(1, i32))
	fill := w.Get(2) + w.Const(1<<20) + w.Store(1<<20+28)
	m.batch.code = w.Loop + fill + w.Get(2) + w.Const(56) + w.Add + tee(2) + w.Const(50_000*56) + "\x49" + brIf0 + w.End +
		w.Const(1<<20) + w.Const(50_000) + w.Const(56) + w.Call(emitFunc) + w.Const(0)
	return m.bytes()
}

// allocations answer well for the config and then with code.
func allocations() []variant {
	later := func(code string) []byte {
		m := transform()
		m.global(0)
		m.alloc.code = "\x23\x00" + eqz + "\x04\x7f" + w.Const(1) + "\x24\x00" + w.Const(65536) + elseArm + code + w.End
		return m.bytes()
	}
	bad := func(name, code string) variant {
		return variant{name: name, wasm: later(code), want: want{at: atCall, code: sandbox.CodeAlloc}}
	}
	first := func(name, code string, trap abi.TrapName) variant {
		m := transform()
		m.alloc.code = code
		return variant{name: name + ", for the config", wasm: m.bytes(), want: notStarted(trap)}
	}
	return []variant{
		bad("nothing", w.Const(0)), bad("misaligned", w.Const(65544)), bad("behind the end", w.Const(8<<16)),
		bad("over the end", w.Const(8<<16-16)), bad("negative", w.Const(-16)), bad("a trap", w.Unreachable),
		bad("an exit by recursion", w.Get(0)+w.Call(2)),
		bad("an endless loop", forever("")+w.Const(0)),
		first("nothing", w.Const(0), ""), first("misaligned", w.Const(8), ""), first("a trap", w.Unreachable, abi.TrapUnreachable),
		first("negative", w.Const(-16), ""),
		{name: "the same address each time", wasm: later(w.Const(65536)), calls: 3, want: want{}},
		{name: "an address inside of its data", wasm: later(w.Const(16)), want: want{}},
	}
}

func endings() []variant {
	exit := func(code int32) []byte {
		m := transform(imported{"wasi_snapshot_preview1", "proc_exit", i32, ""})
		m.batch.code = w.Const(code) + w.Call(2) + w.Const(0)
		return m.bytes()
	}
	indirect := func(index int32) []byte {
		m := transform()
		m.tables = []string{funcref + "\x00\x08"}
		m.elements = []string{"\x00" + w.Const(0) + w.End + w.Vec(w.U32(2))}
		m.batch.code = w.Const(index) + "\x11" + w.U32(m.typ("", "")) + "\x00" + w.Const(0)
		return m.bytes()
	}
	return []variant{
		{name: "proc_exit(0)", wasm: exit(0), want: trapped(abi.TrapExit, "proc_exit(0)")},
		{name: "proc_exit(1)", wasm: exit(1), want: trapped(abi.TrapExit, "proc_exit(1)")},
		{name: "unreachable", wasm: batching("", w.Unreachable).bytes(), want: trapped(abi.TrapUnreachable)},
		{name: "division by zero", wasm: answering("", w.Const(1)+w.Const(0)+"\x6d").bytes(), want: trapped(abi.TrapDivide)},
		{name: "remainder by zero", wasm: answering("", w.Const(1)+w.Const(0)+"\x70").bytes(), want: trapped(abi.TrapDivide)},
		{name: "remainder of the least", wasm: answering("", w.Const(-1<<31)+w.Const(-1)+"\x6f").bytes(), want: want{}},
		{name: "division of the least", wasm: answering("", w.Const(-1<<31)+w.Const(-1)+"\x6d").bytes(), want: trapped(abi.TrapIntegerOverflow)},
		{name: "indirect call of another type", wasm: indirect(0), want: trapped(abi.TrapIndirect)},
		{name: "indirect call of nothing", wasm: indirect(3), want: trapped(abi.TrapTable)},
		{name: "indirect call outside", wasm: indirect(-1), want: trapped(abi.TrapTable)},
		{name: "an error text of all memory", wasm: answering("", w.Get(0)+w.Const(0)+w.Store(100)+w.Get(0)+w.Const(8<<16)+w.Store(104)+w.Const(9)).bytes(), want: answered(9)},
		{name: "an error text of 4 GiB", wasm: answering("", w.Get(0)+w.Const(-1)+w.Store(100)+w.Get(0)+w.Const(-1)+w.Store(104)+w.Const(9)).bytes(), want: answered(9)},
		{name: "the least status", wasm: answering("", w.Const(-1<<31)).bytes(), want: answered(-1 << 31)},
	}
}

func floods() []variant {
	const wasi = "wasi_snapshot_preview1"
	text := repeat("\x1b[31m\r\n\x00\xff\xfeline", 5_000)
	logging := batching(groups(run(1, i32)), times(2, 1_000_000, w.Const(9)+w.Const(4096)+w.Const(60_000)+w.Call(logFunc)))
	logging.put(4096, text)
	writing := func(fd int32) []byte {
		m := transform(imported{wasi, "fd_write", i32 + i32 + i32 + i32, i32})
		vectors := make([]byte, 8*1024)
		for i := range 1024 {
			binary.LittleEndian.PutUint32(vectors[8*i:], 65536)
			binary.LittleEndian.PutUint32(vectors[8*i+4:], 60_000)
		}
		m.put(4096, string(vectors))
		m.put(65536, text)
		m.batch.locals = groups(run(1, i32))
		m.batch.code = times(2, 1_000, w.Const(fd)+w.Const(4096)+w.Const(1024)+w.Const(16)+w.Call(2)+w.Drop) + w.Const(0)
		return m.bytes()
	}
	return []variant{
		{name: "log", wasm: logging.bytes(), want: trapped(abi.TrapFuel)},
		{name: "stdout", wasm: writing(1), want: trapped(abi.TrapFuel)},
		{name: "stderr", wasm: writing(2), want: trapped(abi.TrapFuel)},
	}
}

func sleepers() []variant {
	const wasi = "wasi_snapshot_preview1"
	clock := imported{wasi, "clock_time_get", i32 + i64 + i32, i32}
	now := w.Const(1) + i64const(1) + w.Const(16) + w.Call(2) + w.Drop
	// Waits until the clock shows a second more than at first.
	waiting := transform(clock)
	waiting.batch.locals = groups(run(1, i64))
	waiting.batch.code = now + w.Const(16) + "\x29\x03\x00" + set(2) +
		w.Loop + now + w.Const(16) + "\x29\x03\x00" + w.Get(2) + "\x7d" + "\x42\x80\x94\xeb\xdc\x03" + "\x54" + brIf0 + w.End + w.Const(0)
	forEver := transform(clock)
	forEver.batch.code = forever(now) + w.Const(0)
	poll := imported{wasi, "poll_oneoff", i32 + i32 + i32 + i32, i32}
	subscription := repeat("\x00", 24) + "\xff\xff\xff\xff\xff\xff\xff\x7f" + repeat("\x00", 16)
	sleeping := func(n int32, body func(code string) string) []byte {
		m := transform(poll)
		m.put(4096, repeat(subscription, 1_024))
		m.batch.locals = groups(run(1, i32))
		m.batch.code = body(w.Const(4096)+w.Const(262_144)+w.Const(n)+w.Const(16)+w.Call(2)+set(2)) + w.Get(2)
		return m.bytes()
	}
	once := func(code string) string { return code }
	return []variant{
		{name: "waits for a second", wasm: waiting.bytes(), want: trapped(abi.TrapFuel)},
		{name: "reads the clock for ever", wasm: forEver.bytes(), want: trapped(abi.TrapFuel)},
		{name: "sleeps for 292 years", wasm: sleeping(1, once), want: want{}},
		{name: "sleeps 1,024 times at once", wasm: sleeping(1_024, once), want: want{}},
		{name: "sleeps too often at once", wasm: sleeping(1_025, once), want: answered(28)},
		{name: "2^31 subscriptions", wasm: sleeping(-1<<31, once), want: answered(28)},
		{name: "sleeps for ever", wasm: sleeping(1, forever), want: trapped(abi.TrapFuel)},
		{name: "sleeps for ever, 1,024 times at once", wasm: sleeping(1_024, forever), want: trapped(abi.TrapFuel)},
	}
}

// echo is a transform that emits its input.
func echo() []byte { return answering("", w.Echo()).bytes() }
