package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
)

// swell makes a large record of each.
func swell(size int) func(sandbox.Lane) sim.Guest {
	return func(sandbox.Lane) sim.Guest {
		return func(c sandbox.Call, emit sandbox.Emit) error {
			for i := range c.Records {
				v := append([]byte(nil), c.Records[i].Value...)
				v = append(v, strings.Repeat("x", size)...)
				if err := emit(&abi.Record{Value: v, Index: c.Records[i].Index}); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// TestTooMuchIsPlannedAnew: a transform that makes much of little gets smaller batches, without a word from anybody, and so
// does a batch that an earlier process has planned and died of. All of it is published once.
func TestTooMuchIsPlannedAnew(t *testing.T) {
	for name, die := range map[string]bool{"at once": false, "after a process died of it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.batch, w.outputs = 1000, 2
			w.in.Append(numbered("v", 400)...)
			w.guest = swell(100_000) // 40 MB in all
			if die {
				w.killAt("target.stage main")
			}
			w.maxHeld = 4 << 20
			rungs := w.rungs()
			w.mustRun()
			if rungs["amended"] == 0 {
				t.Errorf("recovery took %v", rungs)
			}
			got := w.stores["main"].Values("main")
			if len(got) != 400 {
				t.Fatalf("%d values", len(got))
			}
			for i, v := range numbered("v", 400) {
				if !strings.HasPrefix(got[i], v+"x") {
					t.Fatalf("value %d is %.10s, want %s", i, got[i], v)
				}
			}
			for _, b := range w.stores["main"].Batches() {
				if size := len(b.Rows) * 100_000; size > 6<<20 {
					t.Errorf("batch %d holds %d bytes", b.Batch, size)
				}
			}
			w.wantConsistent()
		})
	}
}

// TestTooMuchOfOneRecord: what cannot be made smaller stops the job with words; a decided batch is not bounded.
func TestTooMuchOfOneRecord(t *testing.T) {
	w := newWorld(t)
	w.in.Append("v0", "v1")
	w.guest, w.maxHeld = swell(5<<20), 4<<20
	err := w.run(&sim.Process{})
	if !isCode(err, engine.CodeTooMuch) {
		t.Fatalf("got %v", err)
	}
	w.maxHeld = 0
	w.killAt("target.publish main")
	w.stores["main"].DropStaged()
	w.maxHeld = 4 << 20
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTooMuch) || !strings.Contains(err.Error(), "batch 1") {
		t.Errorf("after what was decided: %v", err)
	}
	if n := len(w.stores["main"].Values("main")); n != 1 {
		t.Errorf("%d values", n)
	}
}

// brimming makes of each record one that is so much larger, "huge" ones still more, until a lane has put out as much as it
// may. Where late is set, all of it comes when the lane ends.
func brimming(size, most int, late bool) func(sandbox.Lane) sim.Guest {
	return func(sandbox.Lane) sim.Guest {
		used, held := 0, []string{}
		full := func(v string, at uint32, emit sandbox.Emit) error {
			n := size
			if strings.HasPrefix(v, "huge") {
				n = most + 1
			}
			if used += n; used > most {
				return &sandbox.Failure{Trap: abi.TrapQuota, Text: fmt.Sprintf("%s%d bytes", abi.LaneFull, most), Progress: at}
			}
			return emit(&abi.Record{Value: []byte(v + strings.Repeat("x", n-len(v))), Index: at})
		}
		return func(c sandbox.Call, emit sandbox.Emit) error {
			for i := range c.Records {
				r := &c.Records[i]
				if late {
					held = append(held, string(r.Value))
				} else if err := full(string(r.Value), r.Index, emit); err != nil {
					return err
				}
			}
			if c.Header.Flags&abi.FlagLast == 0 {
				return nil
			}
			for _, v := range held {
				if err := full(v, abi.NoIndex, emit); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// TestFullLaneIsPlannedAnew: when many records fill a lane together, the batch gets smaller and none of them is set aside;
// one that makes most of it by itself is, and the others are not. A replay comes to the same.
func TestFullLaneIsPlannedAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		late    bool
		huge    bool
		amended bool
	}{
		"together":    {amended: true},
		"at the end":  {late: true, amended: true},
		"one":         {huge: true},
		"one and all": {huge: true, amended: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.batch = 1000
			values := numbered("v", 400)
			size := 1000
			if !tt.amended {
				size = 10
			}
			if tt.huge {
				values[17] = "huge"
			}
			w.in.Append(values...)
			w.guest = brimming(size, 20_000, tt.late)
			rungs := w.rungs()
			w.mustRun()
			if amended := rungs["amended"] > 0; amended != tt.amended {
				t.Errorf("recovery took %v", rungs)
			}
			var got []string
			for _, v := range w.stores["main"].Values("main") {
				got = append(got, strings.TrimRight(v, "x"))
			}
			letters := w.stores["dead"].Values("dead")
			want := values
			if tt.huge {
				if len(letters) != 1 || !strings.Contains(letters[0], `"huge`) || !strings.Contains(letters[0], `"word":"quota"`) {
					t.Errorf("letters %.300q", letters)
				}
				want = values[:17:17]
				want = append(want, values[18:]...)
			} else if len(letters) != 0 {
				t.Errorf("%d letters: %.300q", len(letters), letters)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			w.wantConsistent()
		})
	}
}
