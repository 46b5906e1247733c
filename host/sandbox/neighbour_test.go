package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
)

// attackers are guests that do the worst that a limit ends, over and over.
var attackers = []string{"end-loop", "grow-until", "log-million", "log-flood", "output-quota", "output-record-over-16m", "end-unreachable", "end-depth", "stdio-flood", "batch-alloc-loop"}

// batches runs one lane after the other until it is told to stop, each with a fresh instance and a frame, and counts them.
func batches(ctx context.Context, p Program, recs []abi.Record) (n int) {
	for ctx.Err() == nil {
		in, err := p.New(ctx, Lane{Seed: [2]uint64{uint64(n), 1}})
		if err != nil {
			return n
		}
		_ = in.Call(ctx, Call{Records: recs}, discard) // that the attackers fail is what they are there for
		_ = in.Close(context.WithoutCancel(ctx))
		n++
	}
	return n
}

// resident is how many bytes the process has in memory.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the system does not tell what is resident: ", err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(text)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// kitPrograms starts cases of the kit on an engine.
func kitPrograms(t *testing.T, e Engine, names []string) []Program {
	t.Helper()
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	var programs []Program
	for _, name := range names {
		i := slices.IndexFunc(cases, func(c kit.Case) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("the kit has no case %s", name)
		}
		m, err := e.Compile(t.Context(), Binary{Name: name, Wasm: cases[i].Wasm, Sidecar: cases[i].Sidecar})
		if err != nil {
			t.Fatal(err)
		}
		config, err := abi.CanonicalJSON(cases[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Start(t.Context(), Options{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = p.Close(context.Background())
			_ = m.Close(context.Background())
		})
		programs = append(programs, p)
	}
	return programs
}

// TestNeighbour runs an engine with guests that do their worst beside one with an orderly guest. The orderly one goes on,
// and the process comes back to the memory that it had. WASMILL_ATTACK=10m makes it a measurement of how much the orderly
// one loses; it wants two idle processors. What two processors of one core share, any neighbour takes: so the loss is that
// against a neighbour that only counts.
func TestNeighbour(t *testing.T) {
	slice, rounds := 300*time.Millisecond, 3
	if text := os.Getenv("WASMILL_ATTACK"); text != "" {
		whole, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		slice = 5 * time.Second
		rounds = max(int(whole/(3*slice)), 1)
	}
	ours, theirs := newEngine(t), newEngine(t)
	orderly := kitPrograms(t, ours, []string{"echo"})[0]
	hostile := kitPrograms(t, theirs, attackers)
	recs := records(1000)
	const (
		nobody = iota
		counter
		attacker
	)
	var count atomic.Int64
	during := func(neighbour int) int {
		ctx, cancel := context.WithTimeout(t.Context(), slice)
		defer cancel()
		var beside sync.WaitGroup
		switch neighbour {
		case counter:
			beside.Go(func() {
				x := int64(1)
				for n := 0; n&0xffff != 0 || ctx.Err() == nil; n++ {
					x = x*6364136223846793005 + 1442695040888963407
				}
				count.Store(x)
			})
		case attacker:
			beside.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					turn, end := context.WithTimeout(ctx, slice/20)
					batches(turn, hostile[i%len(hostile)], recs[:3])
					end()
				}
			})
		}
		n := batches(ctx, orderly, recs)
		beside.Wait()
		return n
	}
	during(attacker)
	before := resident(t)
	alone, counting, beside := 0, 0, 0
	for range rounds {
		alone += during(nobody)
		counting += during(counter)
		beside += during(attacker)
	}
	after := resident(t)
	t.Logf("batches of 1,000 records: %d alone, %d beside a counter, %d beside attackers in as much time: %.1f %% less than beside a counter; resident %d MB before, %d MB after",
		alone, counting, beside, 100*(1-float64(beside)/float64(counting)), before>>20, after>>20)
	if beside == 0 {
		t.Error("beside attackers nothing went on")
	}
	if after > before+32<<20 {
		t.Errorf("the process keeps %d MB more than before", (after-before)>>20)
	}
}

// newEngine is an engine that the test closes.
func newEngine(t *testing.T) Engine {
	t.Helper()
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(fmt.Errorf("close: %w", err))
		}
	})
	return e
}
