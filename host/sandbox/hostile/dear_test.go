//go:build linux

package hostile

import (
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// dearest is code that costs much time for its fuel, by name. Each leaves the stack as it is; local 2 is a v128, 3 an f64,
// 4 an i64, 5 an f32, 6 an i32.
func dearest() map[string]string {
	c := w.Const
	v := func(op string) string { return w.Get(2) + w.Get(2) + op + set(2) }
	one := func(op string) string { return w.Get(2) + op + set(2) }
	d := func(op string) string { return w.Get(3) + w.Get(3) + op + set(3) }
	null := "\xd0\x70"
	all := map[string]string{
		"i32.add":              w.Get(6) + c(1) + w.Add + set(6),
		"global.set":           "\x23\x00" + c(1) + w.Add + "\x24\x00",
		"i32.store":            c(64) + w.Get(6) + w.Store(0),
		"i32.load far":         w.Get(6) + c(4096*7+64) + w.Add + c(0x3fffff) + "\x71" + tee(6) + w.Load(0) + w.Drop,
		"a call":               w.Call(5),
		"a call of 100 values": repeat(w.Get(6), 100) + w.Call(6) + repeat(w.Drop, 100),
		"an indirect call":     c(0) + "\x11\x00\x00",
		"memory.grow of none":  c(0) + w.Grow + w.Drop,
		"memory.grow failing":  c(-1) + w.Grow + w.Drop,
		"memory.size":          memorySize + w.Drop,
		"memory.fill of none":  c(0) + c(0) + c(0) + fillMemory,
		"memory.fill of 7":     c(0) + c(0) + c(7) + fillMemory,
		"memory.fill of 64":    c(0) + c(0) + c(64) + fillMemory,
		"memory.fill of 4 KiB": c(0) + c(0) + c(4096) + fillMemory,
		"memory.fill of 4 MiB": c(0) + c(0) + c(4<<20) + fillMemory,
		"memory.copy of 7":     c(0) + c(64) + c(7) + copyMemory,
		"memory.copy of 4 KiB": c(0) + c(8192) + c(4096) + copyMemory,
		"memory.copy down":     c(1) + c(0) + c(4<<20) + copyMemory,
		"memory.copy of 4 MiB": c(0) + c(1) + c(4<<20) + copyMemory,
		"memory.init of none":  c(0) + c(0) + c(0) + "\xfc\x08\x00\x00",
		"memory.init of 7":     c(0) + c(0) + c(7) + "\xfc\x08\x00\x00",
		"data.drop":            "\xfc\x09\x01",
		"elem.drop":            "\xfc\x0d\x00",
		"table.get":            c(0) + "\x25\x00" + w.Drop,
		"table.set":            c(1) + null + "\x26\x00",
		"table.size":           "\xfc\x10\x00" + w.Drop,
		"table.grow of none":   null + c(0) + "\xfc\x0f\x00" + w.Drop,
		"table.grow failing":   null + c(-1) + "\xfc\x0f\x00" + w.Drop,
		"table.fill of none":   c(1) + null + c(0) + "\xfc\x11\x00",
		"table.fill of 15":     c(1) + null + c(15) + "\xfc\x11\x00",
		"table.copy of 15":     c(1) + c(1) + c(15) + "\xfc\x0e\x00\x00",
		"table.init of none":   c(0) + c(0) + c(0) + "\xfc\x0c\x00\x00",
		"table.init of 1":      c(0) + c(0) + c(1) + "\xfc\x0c\x01\x00",
		"ref.func":             "\xd2\x05" + w.Drop,
		"ref.is_null":          null + "\xd1" + w.Drop,
		"br_table":             block + block + w.Get(6) + "\x0e\x01\x00\x01" + w.End + w.End,
		"if that branches off": block + w.Get(6) + brIf0 + w.End,
		"i64.div_s":            w.Get(4) + i64const(7) + "\x7f" + set(4),
		"i32.div_u":            w.Get(6) + c(7) + "\x6e" + set(6),
		"i32.rem_u":            w.Get(6) + c(7) + "\x70" + set(6),
		"i64.rem_s":            w.Get(4) + i64const(7) + "\x81" + set(4),
		"i64.div_u of large":   i64large + w.Get(4) + i64const(3) + "\x84" + "\x80" + set(4),
		"i32.popcnt":           w.Get(6) + "\x69" + set(6),
		"i64.ctz":              w.Get(4) + "\x7a" + set(4),
		"f64.add":              d("\xa0"),
		"f64.div":              d("\xa3"),
		"f64.sqrt":             w.Get(3) + "\x9f" + set(3),
		"f64.min":              d("\xa4"),
		"f64.max":              d("\xa5"),
		"f64.copysign":         d("\xa6"),
		"f64.nearest":          w.Get(3) + "\x9e" + set(3),
		"f64.ceil":             w.Get(3) + "\x9b" + set(3),
		"f32.div":              w.Get(5) + w.Get(5) + "\x95" + set(5),
		"f32.demote":           w.Get(3) + "\xb6" + set(5),
		"i64.trunc_sat_f64_u":  w.Get(3) + "\xfc\x07" + set(4),
		"i32.trunc_sat_f64_s":  w.Get(3) + "\xfc\x02" + set(6),
		"f64.convert_i64_u":    w.Get(4) + "\xba" + set(3),
		"i8x16.swizzle":        v("\xfd\x0e"),
		"i8x16.shuffle":        w.Get(2) + w.Get(2) + "\xfd\x0d\x00\x11\x02\x13\x04\x15\x06\x17\x08\x19\x0a\x1b\x0c\x1d\x0e\x1f" + set(2),
		"i8x16.shl":            w.Get(2) + c(3) + "\xfd\x6b" + set(2),
		"i8x16.shr_s":          w.Get(2) + c(3) + "\xfd\x6c" + set(2),
		"i64x2.shr_s":          w.Get(2) + c(3) + "\xfd\xcc\x01" + set(2),
		"i8x16.popcnt":         one("\xfd\x62"),
		"i64x2.mul":            v("\xfd\xd5\x01"),
		"i16x8.q15mulr":        v("\xfd\x82\x01"),
		"i16x8.extmul":         v("\xfd\x9c\x01"),
		"i32x4.dot":            v("\xfd\xba\x01"),
		"f32x4.div":            v("\xfd\xe7\x01"),
		"f32x4.min":            v("\xfd\xe8\x01"),
		"f32x4.sqrt":           one("\xfd\xe3\x01"),
		"f64x2.div":            v("\xfd\xf3\x01"),
		"f64x2.sqrt":           one("\xfd\xef\x01"),
		"f64x2.max":            v("\xfd\xf5\x01"),
		"f64x2.nearest":        one("\xfd\x94\x01"),
		"f32x4.convert_u":      one("\xfd\xfb\x01"),
		"i32x4.trunc_sat_u":    one("\xfd\xf9\x01"),
		"i32x4.trunc_sat_f64u": one("\xfd\xfd\x01"),
		"f64x2.convert_low_u":  one("\xfd\xff\x01"),
		"f32x4.demote":         one("\xfd\x5e"),
		"i64x2.all_true":       w.Get(2) + "\xfd\xc3\x01" + w.Drop,
		"i8x16.bitmask":        w.Get(2) + "\xfd\x64" + set(6),
		"v128.bitselect":       w.Get(2) + w.Get(2) + w.Get(2) + "\xfd\x52" + set(2),
		"v128.store":           c(64) + w.Get(2) + "\xfd\x0b\x04\x00",
		"v128.load8_lane":      c(64) + w.Get(2) + "\xfd\x54\x00\x00\x0f" + set(2),
		"a host call":          c(0) + c(0) + c(0) + w.Call(emitFunc),
	}
	return all
}

// i64large is a constant whose division takes long.
const i64large = "\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"

// dearModule runs code without end, many times over in one turn of a loop.
func dearModule(code string) []byte {
	m := transform()
	m.types = append(m.types, w.FuncType("", ""))
	m.def("", "", "", "")
	hundred := repeat(i32, 100)
	var back string
	for i := range uint32(100) {
		back += w.Get(i)
	}
	m.def(hundred, hundred, "", back)
	m.global(0)
	m.tables = []string{funcref + "\x00\x10"}
	m.memories[0] = "\x00" + w.U32(1024)
	m.elements = []string{"\x01\x00" + w.Vec(w.U32(5)), "\x01\x00" + w.Vec(w.U32(5)), "\x00" + w.Const(0) + w.End + w.Vec(w.U32(5))}
	m.data, m.dataCount = []string{"\x01" + w.Name("0123456789"), "\x01" + w.Name("x")}, true
	m.batch.locals = groups(run(1, v128), run(1, f64), run(1, i64), run(1, f32), run(1, i32))
	nothing := w.U32(m.typ("", ""))
	if code == w.Const(0)+"\x11\x00\x00" {
		code = w.Const(0) + "\x11" + nothing + "\x00"
	}
	m.batch.code = "\x44\x00\x00\x00\x00\x00\x00\xf8\x3f" + set(3) + forever(repeat(code, 100)) + w.Const(0)
	return m.bytes()
}

// processor is what this process has had of the processor, which says more than the clock where many want it.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFuel tells how long a unit of fuel takes in code of many sorts. It is what the table of costs is judged by: no
// code may take many times what plain code does.
func BenchmarkFuel(b *testing.B) {
	ctx := b.Context()
	e, err := sandbox.New(sandbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(ctx)
	const fuel = 3_000_000
	code := dearest()
	for _, name := range slices.Sorted(maps.Keys(code)) {
		b.Run(name, func(b *testing.B) {
			m, err := e.Compile(ctx, sandbox.Binary{Name: "dear.wasm", Wasm: dearModule(code[name])})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close(ctx)
			p, err := m.Start(ctx, sandbox.Options{Limits: sandbox.Limits{FuelCall: fuel, FuelRecord: 1}})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close(ctx)
			before := processor()
			for b.Loop() {
				o := outcome{}
				v := variant{records: []abi.Record{}}
				if err := v.lane(ctx, p, io.Discard, &o); o.failed(atCall, err).Trap != abi.TrapFuel {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processor()-before).Nanoseconds())/float64(b.N)/fuel, "ns/fuel")
			b.ReportMetric(0, "ns/op")
		})
	}
}
