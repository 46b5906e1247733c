package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

func TestAllocInBatch(t *testing.T) {
	grown := func(alloc string) []byte {
		m := w.Transform(w.Const(0), w.Echo())
		// The config goes to 65536; what is asked for later is answered by alloc.
		m.Funcs[0].Code = w.Get(0) + w.Const(64) + "\x48" + "\x04\x7f" + w.Const(65536) + "\x05" + alloc + w.End
		return m.Bytes()
	}
	big := Call{Records: []abi.Record{{Value: make([]byte, 300_000)}}}
	small := Call{Records: records(3)}
	tests := []struct {
		name, alloc string
		call        Call
		tooLarge    bool
	}{
		{"nothing", w.Const(0), small, false},
		{"misaligned", w.Const(65544), small, false},
		{"outside", w.Const(8 * 65536), small, false},
		{"at the end", w.Const(8*65536 - 16), small, false},
		{"wraps", w.Const(-16), small, false},
		{"trap", w.Unreachable, small, false},
		{"emit", w.Const(0) + w.Const(0) + w.Const(0) + w.Call(0) + w.Const(65536), small, false},
		{"nothing for a lone large record", w.Const(0), big, true},
		{"trap for a lone large record", w.Unreachable, big, true},
		{"wild address for a lone large record", w.Const(-16), big, false},
		{"nothing for two records", w.Const(0), Call{Records: []abi.Record{big.Records[0], big.Records[0]}}, false},
	}
	onEach(t, func(t *testing.T, e Engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				in := lane(t, started(t, e, grown(tt.alloc), Options{}))
				err := in.Call(context.Background(), tt.call, discard)
				var failed *Failure
				if tt.tooLarge {
					if !errors.As(err, &failed) || failed.Trap != abi.TrapTooLarge {
						t.Errorf("got %v", err)
					}
					return
				}
				if errors.As(err, &failed) || !errors.Is(err, ErrAlloc) {
					t.Errorf("got %v", err)
				}
				checkFault(t, err, CodeAlloc)
			})
		}
	})
}

func TestMemoryIsBoundedExactly(t *testing.T) {
	// The status is the size after growing page by page until it fails.
	untilFull := w.Loop + w.Const(1) + w.Grow + w.Const(-1) + "\x47\x0d\x00" + w.End + "\x3f\x00"
	onEach(t, func(t *testing.T, e Engine) {
		for _, pages := range []int64{8, 9, 100} {
			p := started(t, e, w.Transform(w.Const(0), untilFull).Bytes(), Options{Limits: Limits{Memory: pages << 16}})
			for range 3 {
				var failed *Failure
				if err := call(t, lane(t, p), discard); !errors.As(err, &failed) || int64(failed.Status) != pages {
					t.Errorf("limit of %d pages: %v", pages, err)
				}
			}
		}
	})
	e := engines(t)["compiler"]
	err := startError(t, e, w.Transform(w.Const(0), w.Const(0)).Bytes(), Options{Limits: Limits{Memory: 7 << 16}})
	checkFault(t, err, CodeMemory, "524288", "458752")
	err = startError(t, e, w.Transform(w.Const(0), w.Const(0)).Bytes(), Options{Limits: Limits{Memory: 100_000}})
	checkFault(t, err, CodeLimits, "64 KiB")
}

func TestNothingIsLeftOfAnInstance(t *testing.T) {
	// The status is a counter in memory, and memory beyond the first pages must be zero when it is had again.
	count := w.Const(16) + w.Const(16) + w.Load(0) + w.Const(1) + w.Add + w.Store(0) + w.Const(4) + w.Grow + w.Drop +
		w.Const(9*65536) + w.Load(0) + w.Const(9*65536) + w.Const(-1) + w.Store(0) + w.Const(16) + w.Load(0) + w.Add
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, w.Transform(w.Const(0), count).Bytes(), Options{})
		for range 5 {
			in := lane(t, p)
			var failed *Failure
			if err := call(t, in, discard); !errors.As(err, &failed) || failed.Status != 1 {
				t.Fatalf("got %v", err)
			}
			if err := in.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLogIsRationed(t *testing.T) {
	// 200 lines of 5 bytes, the last one with an escape in it.
	flood := w.Const(200) + "\x21\x02" + w.Loop + w.Const(7) + w.Const(8) + w.Const(5) + w.Call(1) +
		w.Get(2) + w.Const(-1) + w.Add + "\x22\x02\x0d\x00" + w.End + w.Const(0)
	m := w.Transform(w.Const(0), flood)
	m.Funcs[2].Locals = "\x7f"
	m.Data = "a\x1b\nbc"
	onEach(t, func(t *testing.T, e Engine) {
		var lines []string
		log := func(level int, text string) { lines = append(lines, fmt.Sprint(level, text)) }
		in := lane(t, started(t, e, m.Bytes(), Options{Log: log}))
		for range 2 {
			if err := call(t, in, discard); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(lines) != maxLogLines+1 {
			t.Fatalf("%d lines", len(lines))
		}
		if lines[0] != `3 a\u{1b}\nbc` && lines[0] != `3a\u{1b}\nbc` {
			t.Errorf("first line %q", lines[0])
		}
		if last := lines[maxLogLines]; !strings.Contains(last, "300 more lines") {
			t.Errorf("last line %q", last)
		}
	})
}

func TestGuestLogOutput(t *testing.T) {
	var got []string
	g := guestLog{sink: func(level int, text string) { got = append(got, fmt.Sprintf("%d:%s", level, text)) }}
	for _, part := range []string{"one\ntw", "o\n\nthr", strings.Repeat("e", 5000), "\nlast"} {
		g.output(1, []byte(part))
	}
	g.output(2, []byte("error"))
	g.close()
	want := []string{"1:one", "1:two", "1:", "1:thr" + strings.Repeat("e", abi.MaxLogLine-3), "1:last", "2:error"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestIndexes(t *testing.T) {
	var x indexes
	for _, i := range []uint32{0, 5, 1000, abi.NoIndex} {
		x.hand(i)
	}
	tests := []struct {
		kind  abi.Kind
		index uint32
		want  bool
	}{
		{abi.KindRecord, 0, true},
		{abi.KindRecord, abi.NoIndex, true},
		{abi.KindRecord, 1, false},
		{abi.KindRecord, 1 << 31, false},
		{abi.KindDeadLetter, 5, true},
		{abi.KindDeadLetter, 5, false},
		{abi.KindFail, 5, false},
		{abi.KindRecord, 5, true},
		{abi.KindFail, 1000, true},
		{abi.KindFail, 6, false},
		{abi.KindDeadLetter, abi.NoIndex, false},
	}
	for i, tt := range tests {
		if got := x.allows(&abi.Record{Kind: tt.kind, Index: tt.index}); got != tt.want {
			t.Errorf("%d: kind %d, index %d: %v", i, tt.kind, tt.index, got)
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

func TestInstancesRunBesideEachOther(t *testing.T) {
	e := engines(t)["compiler"]
	p := started(t, e, w.Transform(w.Const(0), w.Echo()).Bytes(), Options{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				in, err := p.New(t.Context(), Lane{})
				if err != nil {
					t.Error(err)
					return
				}
				n := 0
				err = in.Call(t.Context(), Call{Records: records(100)}, func(*abi.Record) error { n++; return nil })
				if err != nil || n != 100 {
					t.Errorf("%d records, %v", n, err)
				}
				if err := in.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := w.Transform(w.Const(0), w.Echo()).Bytes()
	run := func() error {
		e, err := New(Config{CacheDir: dir})
		if err != nil {
			return err
		}
		defer e.Close(t.Context())
		if e.Kind() != "compiler" {
			t.Skip("the interpreter has no cache")
		}
		m, err := e.Compile(t.Context(), Binary{Name: "test.wasm", Wasm: wasm})
		if err != nil {
			return err
		}
		return m.Close(t.Context())
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", info, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in the cache, %v", len(files), err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(); err != nil {
		t.Errorf("with a damaged cache: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if err := run(); !errors.As(err, &f) || f.ErrCode != CodeCache || f.WayOut == "" {
		t.Errorf("with an open cache: %v", err)
	}
}

func TestDigestCountsTheSidecar(t *testing.T) {
	wasm := []byte("wasm")
	plain, with, other := digestOf(Binary{Wasm: wasm}), digestOf(Binary{Wasm: wasm, Sidecar: []byte("{}")}), digestOf(Binary{Wasm: wasm, Sidecar: []byte("{ }")})
	if plain != "8b53639f152c8fc6ef30802fde462ba0be9cf085f7580dc69efd72e002abbb35" && len(plain) != 64 || plain == with || with == other {
		t.Errorf("digests %s %s %s", plain, with, other)
	}
}

func TestInfo(t *testing.T) {
	m := w.Transform(w.Const(0), w.Echo())
	m.MaxPages = 20
	mod, err := engines(t)["interpreter"].Compile(t.Context(), Binary{Name: "test.wasm", Wasm: m.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(t.Context())
	info := mod.Info()
	if want := []string{"wasmill_1.emit (i32, i32, i32) -> ()", "wasmill_1.log (i32, i32, i32) -> ()"}; !slices.Equal(info.Imports, want) {
		t.Errorf("imports %q", info.Imports)
	}
	want := []string{"memory memory", "wasmill_alloc (i32) -> (i32)", "wasmill_batch (i32, i32) -> (i32)", "wasmill_init (i32, i32, i32) -> (i32)"}
	if !slices.Equal(info.Exports, want) {
		t.Errorf("exports %q", info.Exports)
	}
	if info.MemoryMin != 8 || info.MemoryMax != 20 || info.Size != len(m.Bytes()) || len(info.Digest) != 64 {
		t.Errorf("%+v", info)
	}
}

func TestTrapOf(t *testing.T) {
	const stack = "\nwasm stack trace:\n\t.$5()"
	tests := []struct {
		text string
		want abi.TrapName
	}{
		{"wasm error: unreachable" + stack, abi.TrapUnreachable},
		{"stack overflow", abi.TrapDepth},
		{"wasm error: stack overflow" + stack, abi.TrapDepth},
		{"start function[5] failed: stack overflow", abi.TrapDepth},
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

func TestCancelledBeforeACall(t *testing.T) {
	in := lane(t, started(t, engines(t)["compiler"], w.Transform(w.Const(0), w.Echo()).Bytes(), Options{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := in.Call(ctx, Call{Records: records(1)}, discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := call(t, in, discard); err != nil {
		t.Errorf("the instance did not survive: %v", err)
	}
}
