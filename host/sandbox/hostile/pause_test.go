package hostile

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// sliceOfFuel is what the guests of these tests get at a time, as those of the sandbox do.
const sliceOfFuel = 1_000_000

// spinners are modules that never return from a batch.
func spinners() map[string]*module {
	c := w.Const
	large := func(m *module) *module {
		m.memories[0] = "\x00" + w.U32(1024)
		return m
	}
	table := func(code string) *module {
		m := batching("", "\xd0\x70"+c(65_520)+"\xfc\x0f\x00"+w.Drop+forever(code))
		m.tables = []string{funcref + "\x00\x10"}
		return m
	}
	long := batching(groups(run(1, i32)), forever(repeat(w.Get(2)+c(1)+w.Add+set(2), 120_000)))
	tree := transform()
	for i := range 40 {
		code := ""
		if i > 0 {
			code = repeat(w.Call(tree.next-1), 2)
		}
		tree.def("", "", "", code)
	}
	tree.batch.code = w.Call(tree.next-1) + c(0)
	passive := large(batching("", forever(c(0)+c(0)+c(4<<20)+"\xfc\x08\x00\x00")))
	passive.data, passive.dataCount = []string{"\x01" + w.Name(repeat("x", 4<<20))}, true
	return map[string]*module{
		"a loop":               batching("", forever("")),
		"a function of 1 MB":   long,
		"a tree of calls":      tree,
		"memory.fill":          large(batching("", forever(c(0)+c(7)+c(64<<20)+fillMemory))),
		"memory.copy up":       large(batching("", forever(c(0)+c(1)+c(64<<20-1)+copyMemory))),
		"memory.copy down":     large(batching("", forever(c(1)+c(0)+c(64<<20-1)+copyMemory))),
		"memory.init":          passive,
		"table.fill":           table(c(0) + "\xd0\x70" + c(65_536) + "\xfc\x11\x00"),
		"table.copy":           table(c(0) + c(0) + c(65_536) + "\xfc\x0e\x00\x00"),
		"memory.grow, failing": batching("", forever(c(-1)+w.Grow+w.Drop)),
		"table.grow, failing":  table("\xd0\x70" + c(-1) + "\xfc\x0f\x00" + w.Drop),
		"ref.func":             batching("", forever(repeat("\xd2\x02"+w.Drop, 1_000))),
	}
}

// errEnough ends a guest from inside of yield.
type errEnough struct{}

func (errEnough) Error() string { return "enough" }

// watched is what a guest's yields tell.
type watched struct {
	yields int
	most   int64 // fuel that was used beyond a slice
	filled int   // bytes of a fill between two yields, the most
	last   int
}

// stage is a rewritten module on an engine of its own, whose yield is ours.
func stage(t *testing.T, wasm []byte, config wazero.RuntimeConfig, yield func(mod api.Module, stack []uint64)) api.Module {
	t.Helper()
	form, err := binary.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rewriter.Rewrite(form, rewriter.Options{MaxPages: 1024, MaxTable: binary.MaxTable, KeepData: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	host := func(module string, functions ...string) {
		b := rt.NewHostModuleBuilder(module)
		for _, name := range functions {
			i32, i64 := api.ValueTypeI32, api.ValueTypeI64
			params, results := []api.ValueType{i32, i32, i32}, []api.ValueType{}
			call := func(api.Module, []uint64) {}
			if name == rewriter.Yield {
				params, results, call = []api.ValueType{i64, i64}, []api.ValueType{i64}, yield
			}
			f := api.GoModuleFunc(func(_ context.Context, mod api.Module, stack []uint64) { call(mod, stack) })
			b.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	host(rewriter.Module, rewriter.Yield)
	host("wasmill_1", "emit", "log")
	mod, err := rt.Instantiate(ctx, out.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

// call runs the batch with a first slice of fuel.
func call(ctx context.Context, mod api.Module, slice int64) ([]uint64, error) {
	mod.ExportedGlobal(rewriter.Fuel).(api.MutableGlobal).Set(uint64(slice))
	mod.ExportedGlobal(rewriter.Depth).(api.MutableGlobal).Set(1000)
	return mod.ExportedFunction("wasmill_batch").Call(ctx, 0, 0)
}

// watch stops a module after so many yields.
func watch(t *testing.T, m *module, yields int) watched {
	t.Helper()
	var seen watched
	mod := stage(t, m.bytes(), wazero.NewRuntimeConfig(), func(mod api.Module, stack []uint64) {
		seen.yield(mod, stack)
		if seen.yields == yields {
			panic(errEnough{})
		}
	})
	if _, err := call(t.Context(), mod, sliceOfFuel); err == nil {
		t.Fatal("it returned")
	}
	return seen
}

// yield looks at how far a guest has come since the last time, and gives it the rest of another slice.
func (s *watched) yield(mod api.Module, stack []uint64) {
	left := int64(stack[0])
	s.yields++
	s.most = max(s.most, -left)
	memory, _ := mod.Memory().Read(0, mod.Memory().Size())
	at := 0
	for at < len(memory) && memory[at] == 7 {
		at += 1 << 16
	}
	if at > s.last {
		s.filled = max(s.filled, at-s.last)
	}
	s.last = at
	for left < 0 {
		left += sliceOfFuel
	}
	stack[0] = uint64(left)
}

// TestYieldsComeOften shows in fuel and bytes, not in time, how long a guest can keep the processor to itself: a slice and
// what one region or one piece of bulk work costs, which is less than another slice.
func TestYieldsComeOften(t *testing.T) {
	for name, m := range spinners() {
		t.Run(name, func(t *testing.T) {
			yields := 50
			if testing.Short() {
				yields = 5
			}
			seen := watch(t, m, yields)
			if seen.yields != yields || seen.most >= sliceOfFuel {
				t.Errorf("%d yields, %d fuel over a slice", seen.yields, seen.most)
			}
			if most := (sliceOfFuel + sliceOfFuel/4) * 8; name == "memory.fill" && (seen.filled == 0 || seen.filled > most) {
				t.Errorf("%d bytes were filled between two yields, at most %d may be", seen.filled, most)
			}
		})
	}
}

// stops are the times for which Go's garbage collector stopped the world, from asking until all goroutines ran again.
func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// longestStop is the upper bound of the longest one that came between.
func longestStop(before, after *metrics.Float64Histogram) float64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if i >= len(before.Counts) || after.Counts[i] > before.Counts[i] {
			return after.Buckets[i+1]
		}
	}
	return 0
}

// TestYieldsChangeNothing gives fuel in slices of every size, down to one that makes every check a yield: the answer and
// what is used are the same.
func TestYieldsChangeNothing(t *testing.T) {
	answers := map[int]string{}
	for name, config := range map[string]wazero.RuntimeConfig{"compiler": wazero.NewRuntimeConfig(), "interpreter": wazero.NewRuntimeConfigInterpreter()} {
		for _, locals := range []int{1, 3, 5, 16, 17, 40} {
			t.Run(fmt.Sprint(name, " ", locals), func(t *testing.T) {
				size, given, yields := int64(0), int64(0), 0
				mod := stage(t, living(locals, 3), config, func(_ api.Module, stack []uint64) {
					more := (-int64(stack[0]) + size - 1) / size * size
					given, yields = given+more, yields+1
					stack[0] += uint64(more)
				})
				for _, size = range []int64{1 << 40, 1_000_000, 1_000, 100, 17, 2, 1} {
					given, yields = size, 0
					got, err := call(t.Context(), mod, size)
					if err != nil {
						t.Fatal(err)
					}
					answer := fmt.Sprintf("%d after %d fuel", int32(got[0]), given-int64(mod.ExportedGlobal(rewriter.Fuel).Get()))
					if answers[locals] == "" {
						answers[locals] = answer
					}
					if first := answers[locals]; answer != first || size <= 100 && yields < 40 {
						t.Errorf("in slices of %d it is %s, not %s (%d yields)", size, answer, answers[locals], yields)
					}
				}
			})
		}
	}
}

// BenchmarkCollectorPause tells the longest that Go's garbage collector stops all goroutines while a guest spins, and the
// longest that a whole run of it takes, which on a busy machine says more of the machine.
func BenchmarkCollectorPause(b *testing.B) {
	e, err := sandbox.New(sandbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(b.Context())
	for name, m := range spinners() {
		b.Run(name, func(b *testing.B) {
			var stop atomic.Bool
			ended := make(chan string)
			v := variant{wasm: m.bytes()}
			go func() {
				last := ""
				for !stop.Load() {
					last = spin(b.Context(), e, &v)
				}
				ended <- last
			}()
			before := stops()
			longest := time.Duration(0)
			for b.Loop() {
				begin := time.Now()
				runtime.GC()
				longest = max(longest, time.Since(begin))
			}
			after := stops()
			stop.Store(true)
			if last := <-ended; last != "" {
				b.Error(last)
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-run")
			b.ReportMetric(longestStop(before, after)*1000, "ms-longest-stop")
		})
	}
}

// spin runs a guest until its fuel is used up.
func spin(ctx context.Context, e sandbox.Engine, v *variant) string {
	v.limits.FuelCall = 2_000_000_000
	if o := v.run(ctx, e); o.Trap != abi.TrapFuel {
		return fmt.Sprintf("%s %s %s", o.At, o.Trap, o.Error)
	}
	return ""
}
