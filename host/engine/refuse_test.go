package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// refusing is a world whose target "main" refuses, when they are staged, some of the values that its lanes take.
func refusing(t *testing.T, refused ...string) (w *world, input []string) {
	w = newWorld(t)
	input = numbered("v", 40)
	for _, i := range []int{3, 17, 18} {
		input[i] = "x" + input[i] // these do not even fit
	}
	w.misfit = "x"
	w.in.Append(input...)
	w.sideOn, w.batch = "main", 20
	w.refuse = map[string]func(string) bool{"main": func(v string) bool { return slices.Contains(refused, v) }}
	return w, input
}

// wantRefused checks that each value is published once, or is a dead letter, of which those that were refused say so.
func (w *world) wantRefused(input []string, refused ...string) {
	w.t.Helper()
	var good []string
	for _, v := range input {
		if !strings.HasPrefix(v, "x") && !slices.Contains(refused, v) {
			good = append(good, v)
		}
	}
	got := slices.Concat(w.stores["main"].Values("main"), w.stores["main"].Values("side"))
	slices.Sort(got)
	if !slices.Equal(got, good) {
		w.t.Errorf("published are %q, want %q", got, good)
	}
	letters := w.stores["dead"].Values("dead")
	if len(letters) != len(input)-len(good) {
		w.t.Errorf("%d dead letters, want %d: %q", len(letters), len(input)-len(good), letters)
	}
	for _, v := range refused {
		if !slices.ContainsFunc(letters, func(l string) bool {
			return strings.Contains(l, `"value":"`+v+`"`) && strings.Contains(l, `"word":"constraint"`) && strings.Contains(l, "c: no "+v)
		}) {
			w.t.Errorf("no letter says why %s was refused: %q", v, letters)
		}
	}
	w.wantConsistent()
}

// TestRefusedRowsAreSetAside: what a target refuses goes to the dead letters of the same batch, however many it names at a time.
func TestRefusedRowsAreSetAside(t *testing.T) {
	refused := []string{"v000", "v001", "v002", "v019", "v020", "v039"}
	for _, atOnce := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			w, input := refusing(t, refused...)
			w.atOnce = atOnce
			w.mustRun()
			w.wantRefused(input, refused...)
			if n := len(w.stores["main"].Batches()); n != 2 {
				t.Errorf("%d batches", n)
			}
		})
	}
}

// TestManyRefusals: rows are set aside as long as others are refused.
func TestManyRefusals(t *testing.T) {
	var refused []string
	for i := range 15 {
		refused = append(refused, fmt.Sprintf("v%03d", 20+i))
	}
	w, input := refusing(t, refused...)
	w.atOnce = 1
	w.mustRun()
	w.wantRefused(input, refused...)
}

// TestRefusedRowsStaySo: the plan says what was refused. A batch that runs again after a crash sets the same rows aside,
// whatever the target thinks by then.
func TestRefusedRowsStaySo(t *testing.T) {
	for name, die := range map[string]string{"before it is decided": "target.stage dead", "before it is published": "target.publish main"} {
		t.Run(name, func(t *testing.T) {
			w, input := refusing(t, "v001", "v002")
			was := w.refuse["main"]
			calls := 0
			w.refuse["main"] = func(v string) bool { // the first to be staged is "main", which refuses; then all is staged again
				calls++
				return was(v)
			}
			w.killAt(die)
			w.refuse = nil
			w.stores["main"].DropStaged()
			w.mustRun()
			want := []string{"v001", "v002"}
			if calls == 0 {
				want = nil // it died before "main" was asked
			}
			w.wantRefused(input, want...)
		})
	}
}

// TestRefusedAtEveryCall kills the process at each call that it makes: every value is published once or set aside once.
func TestRefusedAtEveryCall(t *testing.T) {
	refused := []string{"v000", "v019", "v020"}
	for at := 1; ; at++ {
		w, input := refusing(t, refused...)
		w.atOnce = 2
		p := &sim.Process{KillAt: at}
		err := w.run(p)
		if err == nil {
			if at < 20 {
				t.Errorf("only %d calls", at)
			}
			return
		}
		if !errors.Is(err, sim.ErrKilled) {
			t.Fatalf("killed at %d: %v", at, err)
		}
		w.stores["main"].DropStaged()
		w.mustRun()
		w.wantRefused(input, refused...)
	}
}

// TestRefusedRowStopsAtItsRecord: under stop a row that its target refuses without a word of its own is named as one that its
// lane does not take. What was refused is not remembered: the next start asks the target anew.
func TestRefusedRowStopsAtItsRecord(t *testing.T) {
	for v, record := range map[string]string{"v000": "record 0,", "v019": "record 19,", "v037": "record 37,"} {
		w := newWorld(t)
		w.in.Append(numbered("v", 40)...)
		w.policy, w.batch, w.curt = engine.Stop, 20, true
		w.refuse = map[string]func(string) bool{"main": func(x string) bool { return x >= v }}
		err := w.run(&sim.Process{})
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil || f.Code() != engine.CodeRecordStopped || f.Hint() == "" || !strings.Contains(f.Place+",", record) || !strings.Contains(err.Error(), "c: no "+v) {
			t.Errorf("%s: %v", v, err)
		}
		w.refuse = nil
		w.mustRun()
		if n := len(w.stores["main"].Values("main")) + len(w.stores["side"].Values("side")); n != 40 {
			t.Errorf("%s: %d values are published after all", v, n)
		}
	}
}

// TestRefusedUnderOtherPolicies: under stop the batch fails with what the target says, under skip rows are dropped; no more
// are set aside than the job allows, and a dead letter that is refused has nowhere to go.
func TestRefusedUnderOtherPolicies(t *testing.T) {
	isRefused := func(err error) bool {
		var r *sink.Refused
		return errors.As(err, &r)
	}
	w, _ := refusing(t, "v001")
	w.policy, w.misfit = engine.Stop, ""
	if err := w.run(&sim.Process{}); !isRefused(err) || !strings.Contains(err.Error(), "a constraint is broken") {
		t.Errorf("stop: %v", err)
	}
	w, _ = refusing(t, "v001")
	w.policy = engine.Skip
	w.mustRun()
	if n := len(w.stores["main"].Values("main")) + len(w.stores["main"].Values("side")); n != 36 {
		t.Errorf("skip: %d values", n)
	}
	w, _ = refusing(t, "v001", "v002", "v004")
	w.max = 4 // two of the first batch do not fit
	if err := w.run(&sim.Process{}); err == nil || len(w.stores["main"].Batches()) != 0 {
		t.Errorf("too many: %v, %d batches", err, len(w.stores["main"].Batches()))
	}
	w, _ = refusing(t)
	w.refuse["dead"] = func(string) bool { return true }
	err := w.run(&sim.Process{})
	if f, _ := errors.AsType[*fault.Error](err); !isRefused(err) || f == nil || f.Code() != engine.CodeLetterRefused || f.Place != "sink dead" {
		t.Errorf("letters: %v", err)
	}
	w, _ = refusing(t)
	w.refuse["main"] = func(v string) bool { return !strings.HasPrefix(v, "x") }
	w.atOnce = 1
	w.mustRun()
	if n := len(w.stores["dead"].Values("dead")); n != 40 {
		t.Errorf("all are refused: %d letters", n)
	}
}

// TestRefusedOnceDecided: a decided batch keeps its rows. What a place refuses that took them is the place's to mend, and after
// that the batch is published; what is left is said, and not that rows may be set aside.
func TestRefusedOnceDecided(t *testing.T) {
	for _, policy := range []engine.Policy{engine.DeadLetter, engine.Stop} {
		t.Run(string(policy), func(t *testing.T) {
			w, input := refusing(t)
			w.policy = policy
			if policy == engine.Stop {
				w.misfit = ""
			}
			w.killAt("target.publish main")
			w.stores["main"].DropStaged()
			w.refuse["main"] = func(v string) bool { return v == "v001" }
			err := w.run(&sim.Process{})
			f, _ := errors.AsType[*fault.Error](err)
			if f == nil || f.Code() != "sim.refused" || !strings.Contains(f.Hint(), "the batch is decided") || strings.Contains(f.Hint(), "set them aside") {
				t.Fatalf("%v: %+v", err, f)
			}
			w.refuse = nil
			w.mustRun()
			if policy == engine.DeadLetter {
				w.wantRefused(input)
			}
		})
	}
}

// TestRefusedTooOften: a batch of which rows are refused again and again ends the run, and goes on where it was at the next start.
func TestRefusedTooOften(t *testing.T) {
	w, _ := refusing(t)
	w.in.Append(numbered("y", 1100)...)
	w.batch, w.atOnce, w.max = 2000, 1, 2000
	w.refuse["main"] = func(v string) bool { return strings.HasPrefix(v, "y") }
	err := w.run(&sim.Process{})
	if f, _ := errors.AsType[*fault.Error](err); f == nil || f.Code() != "sim.refused" || !strings.HasPrefix(f.Hint(), "start again") {
		t.Fatalf("%v: %+v", err, f)
	}
	w.mustRun()
	if n := len(w.stores["dead"].Values("dead")); n != 1103 {
		t.Errorf("%d letters", n)
	}
}
