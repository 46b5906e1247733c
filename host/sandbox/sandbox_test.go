package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onEach runs a test on both kinds of engine.
func onEach(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) { f(t, e) })
	}
}

// started compiles and starts a module.
func started(t testing.TB, e Engine, wasm []byte, o Options) Program {
	t.Helper()
	ctx := context.Background()
	m, err := e.Compile(ctx, Binary{Name: "test.wasm", Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(ctx), m.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// lane makes an instance.
func lane(t testing.TB, p Program) Instance {
	t.Helper()
	in, err := p.New(context.Background(), Lane{Seed: [2]uint64{1, 2}, Time: 1_700_000_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return in
}

// records are n records with values "r0", "r1", ...
func records(n int) []abi.Record {
	recs := make([]abi.Record, n)
	for i := range recs {
		recs[i] = abi.Record{Value: fmt.Appendf(nil, "r%d", i), Index: uint32(i)}
	}
	return recs
}

func discard(*abi.Record) error { return nil }

// call runs one frame of three records.
func call(t testing.TB, in Instance, emit Emit) error {
	t.Helper()
	return in.Call(context.Background(), Call{Records: records(3)}, emit)
}

// startError compiles and starts a module that must not start.
func startError(t *testing.T, e Engine, wasm []byte, o Options) error {
	t.Helper()
	ctx := context.Background()
	m, err := e.Compile(ctx, Binary{Name: "test.wasm", Wasm: wasm})
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	p, err := m.Start(ctx, o)
	if err == nil {
		t.Error(p.Close(ctx), "it started")
	}
	return err
}

func TestEcho(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine) {
		in := lane(t, started(t, e, w.Transform(w.Const(0), w.Echo()).Bytes(), Options{}))
		var got []string
		err := call(t, in, func(r *abi.Record) error {
			got = append(got, fmt.Sprintf("%s %d", r.Value, r.Index))
			return nil
		})
		if want := []string{"r0 0", "r1 1", "r2 2"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestTrapsAreEqual(t *testing.T) {
	f64 := func(b string) string { return "\x44" + b }
	tests := []struct {
		name, code string
		want       abi.TrapName
	}{
		{"unreachable", w.Unreachable, abi.TrapUnreachable},
		{"load", w.Const(-4) + w.Load(0), abi.TrapMemory},
		{"divide by zero", w.Const(1) + w.Const(0) + "\x6d", abi.TrapDivide},
		{"divide the least by -1", w.Const(-1<<31) + w.Const(-1) + "\x6d", abi.TrapIntegerOverflow},
		{"too large for an integer", f64("\x00\x00\x00\x00\x00\x00\xf0\x7f") + "\xaa", abi.TrapIntegerOverflow},
		{"not a number", f64("\x00\x00\x00\x00\x00\x00\xf8\x7f") + "\xaa", abi.TrapConversion},
		{"call outside of the table", w.Const(99) + "\x11\x05\x00" + w.Const(0), abi.TrapTable},
		{"call of nothing", w.Const(7) + "\x11\x05\x00" + w.Const(0), abi.TrapTable},
		{"call of another type", w.Const(2) + "\x11\x05\x00" + w.Const(0), abi.TrapIndirect},
		{"recursion", w.Call(5) + w.Const(0), abi.TrapDepth},
		{"emit of nowhere", w.Const(-56) + w.Const(1) + w.Const(56) + w.Call(0) + w.Const(0), abi.TrapEmit},
		{"log of nowhere", w.Const(1) + w.Const(-8) + w.Const(8) + w.Call(1) + w.Const(0), abi.TrapMemory},
		{"log of wrapping length", w.Const(1) + w.Const(16) + w.Const(-8) + w.Call(1) + w.Const(0), abi.TrapMemory},
	}
	onEach(t, func(t *testing.T, e Engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				m := w.Transform(w.Const(0), tt.code)
				m.Funcs = append(m.Funcs, w.Func{Export: "deeper", Code: w.Call(5)})
				m.Table, m.Elements = 8, 3
				in := lane(t, started(t, e, m.Bytes(), Options{}))
				err := call(t, in, discard)
				var failed *Failure
				if !errors.As(err, &failed) || failed.Trap != tt.want || failed.Status != 0 || failed.Progress != abi.NoIndex {
					t.Fatalf("got %#v", err)
				}
				if failed.Text == "" {
					t.Error("nothing says why")
				}
				if err := call(t, in, discard); !errors.Is(err, errFailed) {
					t.Errorf("a call after the failure: %v", err)
				}
			})
		}
	})
}

// TestTrapSaysThatMemoryIsFull tells a wild address from the lack of memory that may have led to it.
func TestTrapSaysThatMemoryIsFull(t *testing.T) {
	const limit = 16 * 64 << 10
	wild := w.Const(-4) + w.Load(0)
	grow := w.Loop + w.Const(1) + w.Grow + w.Const(0) + "\x4e\x0d\x00" + w.End // until it is refused
	onEach(t, func(t *testing.T, e Engine) {
		for code, want := range map[string]string{
			wild:                                  "out of bounds memory access",
			grow + wild:                           "out of bounds memory access; memory is at its limit of 1048576 bytes (limits.memory)",
			w.Const(100) + w.Grow + w.Drop + wild: "out of bounds memory access; it was refused more memory than its limit of 1048576 bytes (limits.memory)",
			w.Const(100) + w.Grow + w.Drop + w.Unreachable: "unreachable; it was refused more memory than its limit of 1048576 bytes (limits.memory)",
		} {
			m := w.Transform(w.Const(0), code)
			err := call(t, lane(t, started(t, e, m.Bytes(), Options{Limits: Limits{Memory: limit}})), discard)
			var failed *Failure
			if !errors.As(err, &failed) || failed.Text != want {
				t.Errorf("got %v, not %q", err, want)
			}
		}
	})
}

func TestTraceNamesFunctions(t *testing.T) {
	m := w.Transform(w.Const(0), w.Call(5)+w.Const(0))
	m.Funcs = append(m.Funcs, w.Func{Code: w.Call(6)}, w.Func{Code: w.Unreachable})
	m.Customs = [][2]string{{"name", "\x01" + w.Name(w.Vec(w.U32(5)+w.Name("mid\x1b[31mdle")))}}
	onEach(t, func(t *testing.T, e Engine) {
		err := call(t, lane(t, started(t, e, m.Bytes(), Options{})), discard)
		var failed *Failure
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		if want := []string{"function 6", `mid\u{1b}[31mdle`, "wasmill_batch"}; !slices.Equal(failed.Stack, want) {
			t.Errorf("got %q", failed.Stack)
		}
	})
}

// errOurs is trouble of the host's own, from inside an emit.
var errOurs = errors.New("disk full")

func TestHostTroubleIsNoTrap(t *testing.T) {
	echo := w.Transform(w.Const(0), w.Echo()).Bytes()
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, echo, Options{})
		var failed *Failure
		err := call(t, lane(t, p), func(*abi.Record) error { return errOurs })
		if !errors.Is(err, errOurs) || errors.As(err, &failed) {
			t.Errorf("an error of emit: %v", err)
		}
		err = call(t, lane(t, p), func(*abi.Record) error {
			var none []int
			none[2] = 1
			return nil
		})
		if err == nil || errors.As(err, &failed) || !strings.Contains(err.Error(), "index out of range") {
			t.Errorf("a Go panic in emit: %v", err)
		}
		want := &Failure{Trap: abi.TrapQuota, Text: "enough", Progress: abi.NoIndex}
		err = call(t, lane(t, p), func(*abi.Record) error { return want })
		if !errors.As(err, &failed) || failed.Trap != abi.TrapQuota || failed.Text != "enough" {
			t.Errorf("a failure from emit: %v", err)
		}
	})
}

func TestStartRefused(t *testing.T) {
	say := func(code string) string { return w.Const(3) + w.Const(8) + w.Const(5) + w.Call(1) + code }
	tests := []struct {
		name   string
		module *w.Module
		code   string
		text   []string
	}{
		{"status", w.Transform(say(w.Const(4)), w.Const(0)), CodeStart, []string{"status 4", "sorry"}},
		{"trap", w.Transform(say(w.Unreachable), w.Const(0)), CodeStart, []string{"trap unreachable", "sorry"}},
		{"emit", w.Transform(w.Const(0)+w.Const(0)+w.Const(56)+w.Call(0)+w.Const(0), w.Const(0)), CodeStart, []string{"trap emit"}},
	}
	start := w.Transform(w.Const(0), w.Const(0))
	start.Funcs = append(start.Funcs, w.Func{Code: w.Call(5)})
	start.Start = 5
	tests = append(tests, struct {
		name   string
		module *w.Module
		code   string
		text   []string
	}{"start section runs over", start, CodeStart, []string{"trap depth"}})
	onEach(t, func(t *testing.T, e Engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				tt.module.Data = "sorry"
				err := startError(t, e, tt.module.Bytes(), Options{})
				checkFault(t, err, tt.code, tt.text...)
			})
		}
	})
}

// checkFault checks an error's code, that it names the module and a way out, and its text.
func checkFault(t *testing.T, err error, code string, text ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("no fault: %v", err)
	}
	if f.ErrCode != code || f.WayOut == "" || !strings.HasPrefix(f.Place, "test.wasm") {
		t.Errorf("code %s, place %q, way out %q", f.ErrCode, f.Place, f.WayOut)
	}
	for _, want := range text {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestImageIsStable(t *testing.T) {
	build := func(value int32) []byte {
		m := w.Transform(w.Const(16)+w.Const(value)+w.Store(0)+w.Const(0), w.Echo())
		return m.Bytes()
	}
	images := map[string]string{}
	for name, e := range engines(t) {
		a, b := started(t, e, build(5), Options{}), started(t, e, build(6), Options{})
		if a.Image() == b.Image() || len(a.Image()) != 64 {
			t.Errorf("%s: images %s and %s", name, a.Image(), b.Image())
		}
		images[a.Image()] = name
	}
	if len(images) != 1 {
		t.Errorf("engines differ: %v", images)
	}
}

func TestTrapOf(t *testing.T) {
	const stack = "\nwasm stack trace:\n\t.$5()"
	tests := []struct {
		text string
		want abi.TrapName
	}{
		{"wasm error: unreachable" + stack, abi.TrapUnreachable},
		{"stack overflow", ""},
		{"wasm error: stack overflow" + stack, ""},
		{"start function[5] failed: stack overflow", ""},
		{"start function[5] export[\"a\nb\"] failed: wasm error: integer divide by zero" + stack, abi.TrapDivide},
		{"start function[5] export[\"x failed: wasm error: unreachable\"] failed: wasm error: invalid table access" + stack, abi.TrapTable},
		{"wasm error: something new" + stack, ""},
		{"module[] function[stack overflow] failed", ""},
		{"unreachable (recovered by wazero)" + stack, ""},
		{"", ""},
	}
	for _, tt := range tests {
		if got, _, ok := trapOf(errors.New(tt.text)); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%q is %q, %v", tt.text, got, ok)
		}
	}
}
