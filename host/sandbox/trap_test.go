package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// trapper is the function that traps in TestEveryTrap.
const trapper = 5

// traps are all ways in which WebAssembly code traps: what the engine would say, and what the list of ABI 1 calls it.
func traps() map[string]struct {
	code string
	want abi.TrapName
	text string
} {
	type trap = struct {
		code string
		want abi.TrapName
		text string
	}
	i32, i64 := w.Const, func(n int32) string { return "\x42" + w.S32(n) }
	least64 := "\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"
	f32 := func(b string) string { return "\x43" + b }
	f64 := func(b string) string { return "\x44" + b }
	nan32, nan64 := f32("\x00\x00\xc0\x7f"), f64("\x00\x00\x00\x00\x00\x00\xf8\x7f")
	huge32, huge64 := f32("\xff\xff\x7f\x7f"), f64("\x00\x00\x00\x00\x00\x00\xf0\x7f")
	const null, drop = "\xd0\x70", w.Drop
	memory := func(code string) trap { return trap{code, abi.TrapMemory, "out of bounds memory access"} }
	table := func(code string) trap { return trap{code, abi.TrapTable, "invalid table access"} }
	divide := func(code string) trap { return trap{code + drop, abi.TrapDivide, "integer divide by zero"} }
	overflow := func(code string) trap { return trap{code + drop, abi.TrapIntegerOverflow, "integer overflow"} }
	convert := func(code string) trap { return trap{code + drop, abi.TrapConversion, "invalid conversion to integer"} }
	return map[string]trap{
		"unreachable":         {w.Unreachable, abi.TrapUnreachable, "unreachable"},
		"i32.load":            memory(i32(-4) + w.Load(0) + drop),
		"i32.load by offset":  memory(i32(0) + w.Load(1<<20) + drop),
		"i32.load at the end": memory(i32(8<<16-3) + w.Load(0) + drop),
		"i64.load":            memory(i32(-8) + "\x29\x03\x00" + drop),
		"f64.load":            memory(i32(-8) + "\x2b\x03\x00" + drop),
		"v128.load":           memory(i32(-16) + "\xfd\x00\x04\x00" + drop),
		"i32.store":           memory(i32(-4) + i32(1) + w.Store(0)),
		"i32.store8":          memory(i32(-1) + i32(1) + "\x3a\x00\x00"),
		"memory.fill":         memory(i32(-8) + i32(0) + i32(16) + "\xfc\x0b\x00"),
		"memory.copy from":    memory(i32(0) + i32(-8) + i32(16) + "\xfc\x0a\x00\x00"),
		"memory.copy to":      memory(i32(8<<16-8) + i32(0) + i32(16) + "\xfc\x0a\x00\x00"),
		"table.get":           table(i32(99) + "\x25\x00" + drop),
		"table.set":           table(i32(99) + null + "\x26\x00"),
		"table.fill":          table(i32(7) + null + i32(9) + "\xfc\x11\x00"),
		"table.copy":          table(i32(0) + i32(7) + i32(9) + "\xfc\x0e\x00\x00"),
		"table.init":          table(i32(0) + i32(0) + i32(9) + "\xfc\x0c\x00\x00"),
		"call of nowhere":     table(i32(99) + "\x11\x05\x00"),
		"call of nothing":     table(i32(7) + "\x11\x05\x00"),
		"call of another":     {i32(2) + "\x11\x05\x00", abi.TrapIndirect, "indirect call type mismatch"},
		"i32.div_s":           divide(i32(1) + i32(0) + "\x6d"),
		"i32.div_u":           divide(i32(1) + i32(0) + "\x6e"),
		"i32.rem_s":           divide(i32(1) + i32(0) + "\x6f"),
		"i32.rem_u":           divide(i32(1) + i32(0) + "\x70"),
		"i64.div_s":           divide(i64(1) + i64(0) + "\x7f"),
		"i64.div_u":           divide(i64(1) + i64(0) + "\x80"),
		"i64.rem_s":           divide(i64(1) + i64(0) + "\x81"),
		"i64.rem_u":           divide(i64(1) + i64(0) + "\x82"),
		"least i32.div_s":     overflow(i32(-1<<31) + i32(-1) + "\x6d"),
		"least i64.div_s":     overflow(least64 + i64(-1) + "\x7f"),
		"i32.trunc_f32_s":     convert(nan32 + "\xa8"),
		"i32.trunc_f32_u":     convert(nan32 + "\xa9"),
		"i32.trunc_f64_s":     convert(nan64 + "\xaa"),
		"i64.trunc_f64_u":     convert(nan64 + "\xb1"),
		"huge i32.trunc_f32":  overflow(huge32 + "\xa8"),
		"huge i32.trunc_f64":  overflow(huge64 + "\xaa"),
		"huge i64.trunc_f64":  overflow(huge64 + "\xb1"),
		"recursion":           {w.Call(trapper), abi.TrapDepth, "calls are nested deeper than 1000 (limits.depth)"},
	}
}

// trapModule traps in one step of its life.
func trapModule(step, code string) *w.Module {
	m := w.Transform(w.Const(0), w.Const(0))
	m.Funcs = append(m.Funcs, w.Func{Code: code})
	m.Table, m.Elements = 8, 3
	m.Customs = [][2]string{{"name", "\x01" + w.Name(w.Vec(w.U32(trapper)+w.Name("trapper")))}}
	call := w.Call(trapper)
	switch step {
	case "start":
		m.Start = trapper
	case "_initialize":
		m.Funcs = append(m.Funcs, w.Func{Export: "_initialize", Code: call})
	case "wasmill_alloc":
		m.Funcs[0].Code = call + m.Funcs[0].Code
	case "wasmill_init":
		m.Funcs[1].Code = call + m.Funcs[1].Code
	case "wasmill_batch":
		m.Funcs[2].Code = call + m.Funcs[2].Code
	}
	return m
}

// trapped runs a module until it traps.
func trapped(t *testing.T, e Engine, m *w.Module) *Failure {
	t.Helper()
	ctx := context.Background()
	compiled := compiledModule(t, e, m.Bytes())
	p, err := compiled.Start(ctx, Options{})
	if err == nil {
		in := lane(t, p)
		err = call(t, in, discard)
		if err := errors.Join(in.Close(ctx), p.Close(ctx)); err != nil {
			t.Error(err)
		}
	}
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("no failure: %v", err)
	}
	return f
}

// TestEveryTrap traps in every way in every step of a guest's life: the name, the text and the stack are the same on each
// engine, and nothing in them is of the rewriter's making.
func TestEveryTrap(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) {
		for name, tt := range traps() {
			for _, step := range []string{"start", "_initialize", "wasmill_alloc", "wasmill_init", "wasmill_batch"} {
				t.Run(name+" in "+step, func(t *testing.T) {
					f := trapped(t, e, trapModule(step, tt.code))
					if f.Trap != tt.want || f.Text != tt.text || f.Status != 0 {
						t.Errorf("trap %q %q, want %q %q", f.Trap, f.Text, tt.want, tt.text)
					}
					want := []string{"trapper", step}
					if step == "start" {
						want = want[:1]
					}
					if got := slices.Compact(slices.Clone(f.Stack)); !slices.Equal(got, want) && (tt.want != abi.TrapDepth || got[0] != "trapper") {
						t.Errorf("stack %q, want %q", f.Stack, want)
					}
				})
			}
		}
	})
}

// TestFuelTrap uses up the fuel of a call, in a function of its own and in one that is called.
func TestFuelTrap(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, trapModule("wasmill_batch", w.Loop+w.Br0+w.End).Bytes(), Options{Limits: Limits{FuelCall: 100_000, FuelRecord: 1}})
		err := call(t, lane(t, p), discard)
		var f *Failure
		if !errors.As(err, &f) || f.Trap != abi.TrapFuel || !strings.Contains(f.Text, "limits.fuel") || !slices.Equal(f.Stack, []string{"trapper", "wasmill_batch"}) {
			t.Errorf("got %v, stack %q", err, f.Stack)
		}
	})
}
