package rewriter_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/guests"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// subject is a guest that stands on wazero alone.
type subject struct {
	mod   api.Module
	batch api.Function
	fuel  api.MutableGlobal
	ptr   uint64
	size  uint64
	used  uint64
}

const endless = 1 << 60

func newSubject(tb testing.TB, wasm []byte, o rewriter.Options, records []abi.Record) *subject {
	tb.Helper()
	ctx := context.Background()
	m, err := binary.Parse(wasm)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := rewriter.Rewrite(m, o)
	if err != nil {
		tb.Fatal(err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithMemoryCapacityFromMax(false))
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	three := []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}
	long := []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}
	nothing := api.GoModuleFunc(func(context.Context, api.Module, []uint64) {})
	host := rt.NewHostModuleBuilder("wasmill_1")
	host.NewFunctionBuilder().WithGoModuleFunction(nothing, three, nil).Export("emit")
	host.NewFunctionBuilder().WithGoModuleFunction(nothing, three, nil).Export("log")
	if _, err := host.Instantiate(ctx); err != nil {
		tb.Fatal(err)
	}
	yield := rt.NewHostModuleBuilder(rewriter.Module)
	yield.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
		stack[0] += 1_000_000
	}), long, long[:1]).Export(rewriter.Yield)
	if _, err := yield.Instantiate(ctx); err != nil {
		tb.Fatal(err)
	}
	mod, err := rt.InstantiateWithConfig(ctx, out.Wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	s := &subject{mod: mod, batch: mod.ExportedFunction("wasmill_batch")}
	if !o.Plain {
		s.fuel = mod.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal)
		mod.ExportedGlobal(rewriter.Depth).(api.MutableGlobal).Set(1900)
	}
	call := func(name string, args ...uint64) uint64 {
		f := mod.ExportedFunction(name)
		if f == nil {
			return 0
		}
		got, err := f.Call(ctx, args...)
		if err != nil {
			tb.Fatal(err)
		}
		if len(got) == 0 {
			return 0
		}
		return uint64(uint32(got[0]))
	}
	call(rewriter.Start)
	call("_initialize")
	ptr := call("wasmill_alloc", 18)
	mod.Memory().Write(uint32(ptr), []byte("{}"))
	call("wasmill_init", ptr, 2, abi.MaxFrame)
	fields := 0
	if len(records) > 0 {
		fields = len(records[0].Fields)
	}
	size := abi.FrameSize(records, fields)
	s.size = uint64(size)
	s.ptr = call("wasmill_alloc", s.size+16)
	view, ok := mod.Memory().Read(uint32(s.ptr), uint32(size))
	if !ok {
		tb.Fatal("no room for the frame")
	}
	if err := abi.PutFrame(view, uint32(s.ptr), abi.FrameHeader{Flags: abi.FlagFirst}, records, fields); err != nil {
		tb.Fatal(err)
	}
	return s
}

// run is one call; it returns the nanoseconds of processor time that it took.
func (s *subject) run(tb testing.TB) int64 {
	if s.fuel != nil {
		s.fuel.Set(endless)
	}
	start := threadTime(tb)
	stack := [2]uint64{s.ptr, s.size}
	if err := s.batch.CallWithStack(context.Background(), stack[:]); err != nil || uint32(stack[0]) != 0 {
		tb.Fatal(err, stack[0])
	}
	took := threadTime(tb) - start
	if s.fuel != nil {
		s.used = endless - s.fuel.Get()
	}
	return took
}

func threadTime(tb testing.TB) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		tb.Fatal(err)
	}
	return now.Nano()
}

// TestCostOfChecks is run by hand: WASMILL_COST="c-scan go-swar" go test -run TestCostOfChecks -v
func TestCostOfChecks(t *testing.T) {
	names := os.Getenv("WASMILL_COST")
	if names == "" {
		t.Skip("a measurement")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var records []abi.Record
	for i, v := range guests.Values(1000) {
		records = append(records, abi.Record{Value: v, Index: uint32(i)})
	}
	dir := os.Getenv("WASMILL_COST_DIR")
	for _, g := range guests.All() {
		if names != "all" && !strings.Contains(" "+names+" ", " "+g.Name+" ") {
			continue
		}
		wasm, err := g.Wasm(dir)
		if err != nil {
			t.Fatal(err)
		}
		rounds := 40
		rs := records
		if g.JSON || g.Work == guests.Floats {
			rs, rounds = records[:100], 25
		}
		plain := newSubject(t, wasm, rewriter.Options{Plain: true, KeepData: true}, rs)
		full := newSubject(t, wasm, rewriter.Options{MaxPages: 32768, MaxTable: 65536, KeepData: true}, rs)
		a, b := int64(1<<62), int64(1<<62)
		for range rounds {
			a, b = min(a, plain.run(t)), min(b, full.run(t))
		}
		n := float64(len(rs))
		fmt.Printf("%-14s plain %9.1f  full %9.1f ns/record  ratio %.3f  fuel/record %.0f\n", g.Name, float64(a)/n, float64(b)/n, float64(b)/float64(a), float64(full.used)/n)
	}
}
