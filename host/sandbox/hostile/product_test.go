package hostile

import (
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// productAttacks make the host itself work, outside of any child and any fuel: they have two things that are long, for
// work that would be the product of both lengths.
var productAttacks = []attack{
	{id: "Q1", name: "a manifest that nearly stands in the module everywhere", cpu: 2, rss: 200, each: one(nearlyEverywhere, refused(sandbox.CodeManifest, "is not the one it was built with"))},
	{id: "Q2", name: "locals that are all the result of an and", cpu: 4, rss: 400, long: true, each: one(allAnds, want{})},
	{id: "Q3", name: "debug data in which little stands for much", cpu: 4, rss: 600, long: true, onEach: true, each: some(debugProducts)},
	{id: "Q5", name: "ten million references to functions", cpu: 1, slow: 4, rss: 60, onEach: true, each: one(func() []byte {
		return batching(groups(run(1, i32)), times(2, 10_000, repeat("\xd2\x03"+w.Drop, 1_000))).bytes()
	}, want{}).fuelled(11_000_000_000)},
	{id: "Q6", name: "code that becomes many times as long", cpu: 4, rss: 600, long: true, each: some(swelling)},
	{id: "Q4", name: "45 million lines in one call", cpu: 0.7, rss: 200, onEach: true, each: one(newlines, want{})},
}

// nearlyEverywhere has a text that a search by rolling sums takes for what it looks at, at each of 15 million places, and
// that differs from it in its last bytes.
func nearlyEverywhere() []byte {
	const sameSum = "safaenhf" // as aaaaaaaa has, with the factor 16777619 in 32 bits
	m := transform()
	m.memories[0] = "\x00" + w.U32(240)
	m.put(8, "wasmill-manifest-beside-module-1"+repeat("a", 15_000_000))
	m.after += section(w.Custom, w.Name("wasmill")+repeat("a", abi.MaxManifest-len(sameSum))+sameSum)
	return m.bytes()
}

func allAnds() []byte {
	const locals = 59_000
	var code strings.Builder
	code.WriteString(w.Get(0) + w.Get(0) + "\x71")
	for i := range uint32(locals) {
		code.WriteString(tee(i))
	}
	code.WriteString(w.Drop)
	return batching(groups(run(locals, i32)), code.String()+repeat(w.Get(locals-1)+w.Drop, 150_000)).bytes()
}

func debugProducts() []variant {
	ends := trapped(abi.TrapUnreachable)
	// A table of DWARF 5 with two million folders that take no bytes.
	head := "\x01\x01\x01\xfb\x0e\x01" + "\x00\xff\xff\x7f" + "\x00\x00"
	table := le16(5) + "\x04\x00" + le32(uint32(len(head))) + head
	tables := repeat(le32(uint32(len(table)))+table, 500_000)
	// Functions that all have the same number of inlined calls before them, and then calls that are nowhere.
	var entries strings.Builder
	entries.WriteString("\x01")
	for i := range uint32(131_000) {
		entries.WriteString("\x02" + le32(8*i+1) + le32(8))
	}
	entries.WriteString(repeat("\x03\x01", 6_000_000) + "\x00")
	kinds := "\x01\x11\x01\x00\x00" + "\x02\x2e\x00\x11\x01\x12\x06\x00\x00" + "\x03\x1d\x00\x31\x11\x00\x00" + "\x00"
	return []variant{
		{name: "folders of nothing", wasm: customs(".debug_line", tables), want: ends},
		{name: "calls after many functions", wasm: customs(".debug_abbrev", kinds, ".debug_info", unit(entries.String()), ".debug_line", lineTable("")), want: ends},
	}
}

// swelling are modules of 15 MiB that are made of what takes the most bytes when it is written anew.
func swelling() []variant {
	swell := func(name, kind, code string) variant {
		m := transform()
		for range 15 {
			m.def("", "", groups(run(1, kind)), w.Get(0)+repeat(code, 1_000_000/len(code))+w.Drop)
		}
		return variant{name: name, wasm: m.bytes(), want: refused(sandbox.CodeTooLarge, "becomes too large")}
	}
	return []variant{swell("f64.copysign", f64, w.Get(0)+"\xa6"), swell("f64x2.sqrt and v128.not", v128, "\xfd\xef\x01"+"\xfd\x4d")}
}

func newlines() []byte {
	const at, n = 131_072, 45_000_000
	m := transform(imported{wasiModule, "fd_write", i32 + i32 + i32 + i32, i32})
	m.memories[0] = "\x00" + w.U32(720)
	m.batch.code = w.Const(at) + w.Const('\n') + w.Const(n) + fillMemory +
		w.Const(16) + w.Const(at) + w.Store(0) + w.Const(16) + w.Const(n) + w.Store(4) +
		w.Const(1) + w.Const(16) + w.Const(1) + w.Const(32) + w.Call(2)
	return m.bytes()
}
