package engine_test

import (
	"strings"
	"testing"

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
