package sandbox

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/abi"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

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

func TestNoInstanceOfAClosedProgram(t *testing.T) {
	e := engines(t)["compiler"]
	m, err := e.Compile(t.Context(), Binary{Name: "test.wasm", Wasm: w.Transform(w.Const(0), w.Echo()).Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := p.New(t.Context(), Lane{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.New(t.Context(), Lane{}); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
	if err := call(t, in, discard); err != nil {
		t.Errorf("an instance that was there: %v", err)
	}
	if err := errors.Join(in.Close(t.Context()), in.Close(t.Context()), m.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
