package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sink"
)

var (
	chosenExact  = sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true, Chosen: true}
	chosenRepeat = sink.Traits{Guarantee: sink.AtLeastOnce, Volatile: true, Chosen: true}
)

// promise gives the world's targets a guarantee that the job chooses.
func (w *world) promise(traits sink.Traits) {
	w.traits = map[string]sink.Traits{"main": traits, "side": traits, "dead": traits}
}

// wantOnce checks that main holds every value, and twice at most those of one batch; none when exact.
func (w *world) wantOnce(n int, exact bool) {
	w.t.Helper()
	counts := map[string]int{}
	for _, v := range w.stores["main"].Values("main") {
		counts[v]++
	}
	twice := 0
	for _, v := range numbered("v", n) {
		switch counts[v] {
		case 0:
			w.t.Errorf("%s is lost", v)
		case 1:
		default:
			twice++
		}
		if counts[v] > 2 {
			w.t.Errorf("%s is there %d times", v, counts[v])
		}
	}
	if len(counts) != n || exact && twice > 0 || twice > int(w.batch) {
		w.t.Errorf("%d values, %d of them twice", len(counts), twice)
	}
}

// TestRaised: a job goes from at least once to exactly once. Killed at every call before the switch, then at every seventh call of the
// first start after it, nothing is lost, and twice is at most what may be so under at least once: the batch that was cut off.
func TestRaised(t *testing.T) {
	kills := 0
	for n := 1; ; n++ {
		alive := false
		for m := 1 + n%7; ; m += 7 {
			w := newWorld(t)
			w.promise(chosenRepeat)
			w.in.Append(numbered("v", 25)...)
			p := &sim.Process{KillAt: n}
			if err := w.run(p); err != nil && !errors.Is(err, sim.ErrKilled) {
				t.Fatal(err)
			}
			alive = !p.Dead()
			w.promise(chosenExact)
			w.in.Append(numbered("v", 35)[25:]...)
			q := &sim.Process{KillAt: m}
			if err := w.run(q); err != nil && !errors.Is(err, sim.ErrKilled) {
				t.Fatalf("kills at %d and %d: %v", n, m, err)
			}
			w.mustRun()
			w.wantOnce(35, alive)
			if t.Failed() {
				t.Fatalf("kills at %d and %d", n, m)
			}
			if !q.Dead() {
				break
			}
			kills++
		}
		if alive {
			break
		}
	}
	if t.Logf("%d kills", kills); kills < 500 {
		t.Errorf("only %d kills", kills)
	}
}

// TestGuaranteeToAndFro: after exactly once, at least once and exactly once again the target is behind by what it was not told.
func TestGuaranteeToAndFro(t *testing.T) {
	w := newWorld(t)
	n := 0
	var rungs []string
	w.events = &engine.Events{Recovered: func(r engine.Recovery) {
		if r.Rung == "raised" {
			rungs = append(rungs, fmt.Sprintf("%s %d", r.Target, r.Batch))
		}
	}}
	for _, traits := range []sink.Traits{chosenExact, chosenRepeat, chosenExact, chosenRepeat, chosenExact} {
		w.promise(traits)
		w.in.Append(numbered("v", n+15)[n:]...)
		n += 15
		w.mustRun()
		w.mustRun()
	}
	w.wantOnce(n, true)
	if len(rungs) != 2 || rungs[0] != "main 3" || rungs[1] != "main 7" {
		t.Errorf("raised %q", rungs)
	}
}

// TestBehindIsNotRaised: a target that lost what it knew was exactly once all the time, or knows of more than the checkpoint.
func TestBehindIsNotRaised(t *testing.T) {
	w := newWorld(t)
	w.promise(chosenExact)
	w.in.Append(numbered("v", 25)...)
	w.mustRun()
	w.stores["main"].Forget()
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTargetBehind) {
		t.Errorf("exactly once all the time: %v", err)
	}

	w = newWorld(t)
	w.promise(sink.Traits{Guarantee: sink.AtLeastOnce, Volatile: true})
	w.in.Append(numbered("v", 25)...)
	w.mustRun()
	w.promise(chosenExact)
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTargetBehind) {
		t.Errorf("the decision does not say what was promised: %v", err)
	}
}

// TestRaisedUnrepeatable: a batch that may have been seen under at least once is not taken back when it cannot be made again.
func TestRaisedUnrepeatable(t *testing.T) {
	w := newWorld(t)
	w.alone = true // nothing is spooled
	w.promise(chosenRepeat)
	w.in.Append(numbered("v", 20)...)
	killAtPublish(t, w)
	w.promise(chosenExact)
	w.in.Replace(12, "changed")
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
		t.Errorf("got %v", err)
	}
	if last := w.stores["main"].Batches(); last[len(last)-1].Batch != checkpoint.BatchID(0) {
		t.Errorf("published %v", last)
	}
}
