package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
)

// die runs a process that is killed at the n-th call of that name.
func (w *world) die(call string, n int) {
	w.t.Helper()
	p := &sim.Process{}
	seen := 0
	p.Hook = func(_ int, c string) error {
		if c == call {
			if seen++; seen == n {
				p.Hook = nil
				return sim.ErrKilled
			}
		}
		return nil
	}
	if err := w.run(p); !errors.Is(err, sim.ErrKilled) {
		w.t.Fatalf("the process was to die at %s: %v", call, err)
	}
}

func (w *world) resolve(batch checkpoint.BatchID, target string, a checkpoint.Action) {
	w.t.Helper()
	files := w.disk.Process()
	defer files.Kill()
	err := checkpoint.Resolve(context.Background(), files, w.dir, batch, target, a, checkpoint.Options{
		Job: "sim", Holder: "resolve", Clock: func() int64 { return 1 },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestSkippedOutputStaysSkipped: a batch that a person chose to leave out of a target must not come up again, whether the
// next batch has rows for that target or not, and whether it is cut off or not.
func TestSkippedOutputStaysSkipped(t *testing.T) {
	for _, next := range []string{"v", "odd"} {
		for _, call := range []string{"program.call", "target.stage main", "target.publish main", ""} {
			w := newWorld(t)
			for i := range 5 {
				w.in.Append(fmt.Sprintf("odd%d", i), fmt.Sprintf("v%d", i))
			}
			w.die("target.publish side", 1)
			w.stores["side"].DropStaged()
			w.in.Replace(2, "odd-changed")
			if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
				t.Fatalf("got %v", err)
			}
			w.resolve(0, "side", checkpoint.Skip)
			w.mustRun()
			for i := range 8 {
				w.in.Append(fmt.Sprintf("%s-next%d", next, i), fmt.Sprintf("v-next%d", i))
			}
			if call != "" {
				w.die(call, 1)
			}
			w.mustRun()
			w.mustRun()
			w.wantConsistent()
			want := 0
			if next == "odd" {
				want = 8
			}
			if got := len(w.stores["side"].Values("side")); got != want {
				t.Errorf("next %s, killed at %q: side holds %d values, want %d", next, call, got, want)
			}
		}
	}
}

// TestForcedOutput: a person may publish what comes now.
func TestForcedOutput(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.in.Append(fmt.Sprintf("odd%d", i), fmt.Sprintf("v%d", i))
	}
	w.die("target.publish side", 1)
	w.stores["side"].DropStaged()
	w.in.Replace(2, "odd-changed")
	w.resolve(0, "side", checkpoint.Force)
	w.mustRun()
	w.wantValues("side", "odd0", "odd-changed", "odd2", "odd3", "odd4")
	w.wantConsistent()
}

// TestASinkThatGoesAndComesBack goes on where it was.
func TestASinkThatGoesAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.in.Append("v0", "odd0")
	w.mustRun()
	w.noSide = true
	w.in.Append("v1", "odd1")
	w.mustRun()
	w.noSide = false
	w.in.Append("v2", "odd2")
	w.mustRun()
	w.wantValues("main", "v0", "v1", "v2")
	w.wantValues("side", "odd0", "odd2")
	w.wantConsistent()
}

// TestASinkTakenAwayTooEarly: what is decided for it is not silently dropped.
func TestASinkTakenAwayTooEarly(t *testing.T) {
	w := newWorld(t)
	w.in.Append("v0", "odd0")
	w.die("target.publish side", 1)
	w.noSide = true
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
		t.Fatalf("got %v", err)
	}
	w.noSide = false
	w.mustRun()
	w.wantValues("side", "odd0")
}

// TestASourceThatGoesOverAPlannedBatch is read from where it was when it comes back: nothing it had is lost.
func TestASourceThatGoesOverAPlannedBatch(t *testing.T) {
	w := newWorld(t)
	w.in2 = &sim.Input{}
	w.in.Append("v0")
	w.in2.Append("v-other0")
	w.mustRun()
	w.in.Append("v1")
	w.in2.Append("v-other1")
	w.die("target.stage main", 1)
	other := w.in2
	w.in2 = nil
	w.mustRun()
	w.in2 = other
	w.in.Append("v2")
	w.mustRun()
	w.wantValues("main", "v0", "v-other0", "v1", "v2", "v-other1")
	w.wantConsistent()
}

// TestASkippedBatchThatWasThere: a person chose to skip what the target had in truth published, as the advice for a sink
// that is gone may lead to. The sink must be able to come back.
func TestASkippedBatchThatWasThere(t *testing.T) {
	for _, back := range []bool{true, false} {
		w := newWorld(t)
		w.in.Append("v0", "odd0")
		w.die("target.published side", 1) // it is there, and not noted
		w.resolve(0, "side", checkpoint.Skip)
		w.noSide = !back
		w.mustRun()
		w.noSide = false
		w.in.Append("v1", "odd1")
		w.mustRun()
		w.in.Append("v2")
		w.mustRun()
		w.mustRun()
		w.wantValues("main", "v0", "v1", "v2")
		w.wantValues("side", "odd0", "odd1")
		w.wantConsistent()
	}
}

// TestAForceThatComesToNothing can still become a skip.
func TestAForceThatComesToNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.in.Append(fmt.Sprintf("odd%d", i), fmt.Sprintf("v%d", i))
	}
	w.die("target.publish side", 1)
	w.stores["side"].DropStaged()
	w.in.Truncate(9)
	w.resolve(0, "side", checkpoint.Force)
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
		t.Fatalf("got %v", err)
	}
	w.resolve(0, "side", checkpoint.Skip)
	w.mustRun()
	if got := w.stores["side"].Values("side"); len(got) != 0 {
		t.Errorf("side holds %q", got)
	}
}

// TestAForceWithNothingToPublish still marks the batch, so that the job goes on.
func TestAForceWithNothingToPublish(t *testing.T) {
	w := newWorld(t)
	w.in.Append("v0", "odd1", "v2")
	w.die("target.publish side", 1)
	w.stores["side"].DropStaged()
	w.in.Replace(1, "drop1")
	w.resolve(0, "side", checkpoint.Force)
	w.mustRun()
	w.in.Append("v3", "odd4")
	w.mustRun()
	w.mustRun()
	w.wantValues("side", "odd4")
	w.wantConsistent()
}
