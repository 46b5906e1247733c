package trial

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// ticking is a clock that goes on by a microsecond whenever it is read.
func ticking() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Microsecond)
		return now
	}
}

func measure(t *testing.T, guest string, o BenchOptions) (*Bench, error) {
	t.Helper()
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].Name != guest {
			continue
		}
		compiler, _ := engines(t)
		o.Now, o.Config = ticking(), []byte("{}")
		return RunBench(t.Context(), compiler, sandbox.Binary{Name: guest, Wasm: cases[i].Wasm}, o)
	}
	t.Fatalf("the kit has no %s", guest)
	return nil, nil
}

func TestBench(t *testing.T) {
	lines := [][]byte{[]byte(`{"n":1}`), []byte(`{"n":12345}`)}
	for _, tt := range []struct {
		records, lanes int
		calls          uint64
	}{
		{1, 1, 2}, {1024, 1, 2}, {1025, 1, 3}, {laneRecords, 1, 26}, {laneRecords + 1, 2, 28}, {3 * laneRecords, 3, 78},
	} {
		b, err := measure(t, "echo", BenchOptions{Lines: lines, Records: tt.records})
		if err != nil {
			t.Fatal(err)
		}
		if b.Records != tt.records || b.Lanes != tt.lanes || b.Calls != tt.calls || b.Emitted != int64(tt.records) || b.Letters != 0 {
			t.Errorf("%d records: %+v", tt.records, b)
		}
		in := (float64(tt.records/2)*18 + float64(tt.records%2)*7) / float64(tt.records)
		if b.In != in || b.Frame <= in || b.Out < in || b.Fuel <= 0 {
			t.Errorf("%d records: bytes %+v, want %f in", tt.records, b, in)
		}
		// Each call and each instance takes one tick of the clock.
		if b.Instance != 1000 || b.InstanceBest != 1000 || b.Start != 1000 || b.RecordBest > b.RecordTime || b.RecordTime <= 0 {
			t.Errorf("%d records: times %+v", tt.records, b)
		}
		if b.MemoryMin <= 0 || b.MemoryMax < b.MemoryMin {
			t.Errorf("%d records: memory %+v", tt.records, b)
		}
	}
}

// TestBenchIsTheSameEverywhere but for its times.
func TestBenchIsTheSameEverywhere(t *testing.T) {
	a, err := measure(t, "fields", BenchOptions{Records: 5000})
	if err != nil {
		t.Fatal(err)
	}
	b, err := measure(t, "fields", BenchOptions{Records: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Errorf("%+v, %+v", a, b)
	}
}

// What keeps state goes on with it from lane to lane, and its timers fire on the way.
func TestBenchOfState(t *testing.T) {
	b, err := measure(t, "state-put", BenchOptions{Records: 2*laneRecords + 1})
	if err != nil {
		t.Fatal(err)
	}
	if b.Lanes != 3 || b.Emitted != 0 || b.Fuel <= 0 {
		t.Errorf("%+v", b)
	}
	same, err := measure(t, "state-put", BenchOptions{Records: 2*laneRecords + 1})
	if err != nil || fmt.Sprintf("%+v", same) != fmt.Sprintf("%+v", b) {
		t.Errorf("%+v, then %+v, %v", b, same, err)
	}
}

func TestBenchOfWhatFails(t *testing.T) {
	for _, guest := range []string{"status-7", "end-unreachable", "batch-alloc-0", "emit-port"} {
		var f *fault.Error
		if _, err := measure(t, guest, BenchOptions{Lines: [][]byte{bytes.Repeat([]byte("x"), 10)}, Records: 3000}); !errors.As(err, &f) || f.WayOut == "" || f.Place != guest {
			t.Errorf("%s: %v", guest, err)
		}
	}
	if _, err := measure(t, "end-unreachable", BenchOptions{Records: 1}); err == nil || !strings.HasSuffix(err.Error(), ", in wasmill_batch") {
		t.Errorf("it does not say where: %v", err)
	}
	if _, err := measure(t, "start-init-nonzero", BenchOptions{Records: 1}); err == nil {
		t.Error("a module that does not start is measured")
	}
}
