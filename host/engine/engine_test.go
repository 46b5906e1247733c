package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

func TestOutputOrderIsInputOrder(t *testing.T) {
	for _, workers := range []int{1, 3} {
		w := newWorld(t)
		w.workers = workers
		w.in.Append(numbered("v", 47)...)
		w.mustRun()
		w.wantValues("main", numbered("v", 47)...)
		w.wantConsistent()
		if n := len(w.stores["main"].Batches()); n != 5 {
			t.Errorf("%d batches, want 5 of 10 records each", n)
		}
	}
}

func TestNothingNewPlansNoBatch(t *testing.T) {
	w := newWorld(t)
	w.mustRun()
	w.in.Append("a")
	w.mustRun()
	w.mustRun()
	if n := len(w.stores["main"].Batches()); n != 1 {
		t.Errorf("%d batches, want 1", n)
	}
}

func TestPortsAndDeadLetters(t *testing.T) {
	for _, progress := range []bool{true, false} {
		t.Run(fmt.Sprintf("progress=%v", progress), func(t *testing.T) {
			w := newWorld(t)
			w.progress = progress
			w.batch = 100
			w.misfit = "misfit"
			w.in.Append("a", "odd1", "trap1", "twice1", "letter1", "status1", "b", "fail1", "drop1", "misfit1", "reject:1", "trap2", "odd2", "c")
			w.mustRun()
			w.wantValues("main", "a", "twice1", "twice1", "b", "c")
			w.wantValues("side", "odd1", "odd2")
			letters := map[string]string{}
			for _, v := range w.stores["dead"].Values("dead") {
				var l struct{ Value, Word, Reason, Source, Stage string }
				if err := json.Unmarshal([]byte(v), &l); err != nil {
					t.Fatal(err)
				}
				letters[l.Value] = l.Word
			}
			want := map[string]string{
				"trap1": "unreachable", "trap2": "unreachable", "status1": "bad_status", "fail1": "fail",
				"letter1": "guest", "misfit1": "type", "reject:1": "broken",
			}
			if fmt.Sprint(letters) != fmt.Sprint(want) {
				t.Errorf("dead letters %v, want %v", letters, want)
			}
		})
	}
}

func TestPolicyStopNamesTheRecord(t *testing.T) {
	for _, bad := range []string{"trap1", "status1", "fail1", "letter1", "misfit1", "reject:1"} {
		w := newWorld(t)
		w.policy, w.misfit = engine.Stop, "misfit"
		w.in.Append("a", "b", bad, "c")
		err := w.run(&sim.Process{})
		if !isCode(err, engine.CodeRecordStopped) {
			t.Errorf("%s: %v", bad, err)
			continue
		}
		if !strings.Contains(err.Error(), "in part-0 record 2") {
			t.Errorf("%s: the error does not name the record: %v", bad, err)
		}
		if n := len(w.stores["main"].Batches()); n != 0 {
			t.Errorf("%s: %d batches were published", bad, n)
		}
	}
}

// TestWhichErrorDoesNotDependOnScheduling: of several bad records the first in the order of the input stops the job.
func TestWhichErrorDoesNotDependOnScheduling(t *testing.T) {
	for range 30 {
		w := newWorld(t)
		w.policy, w.workers, w.batch = engine.Stop, 4, 100
		w.in.Append(append(append(numbered("v", 7), "trap1"), append(numbered("v", 9), "fail2", "letter3")...)...)
		err := w.run(&sim.Process{})
		if err == nil || !strings.Contains(err.Error(), "record 7") {
			t.Fatalf("got %v, want record 7", err)
		}
	}
}

func TestPolicySkipCounts(t *testing.T) {
	w := newWorld(t)
	w.policy, w.misfit = engine.Skip, "misfit"
	var skipped, poison int64
	w.events = &engine.Events{Batch: func(s engine.BatchStats) { skipped += s.Skipped; poison += s.Restarts }}
	w.in.Append("a", "trap1", "misfit1", "letter1", "reject:1", "b")
	w.mustRun()
	w.wantValues("main", "a", "b")
	w.wantValues("dead")
	if skipped != 4 || poison != 1 {
		t.Errorf("skipped %d, restarts %d, want 4 and 1", skipped, poison)
	}
}

// TestTooManySetAside: the error says once which batch it is, and which reason is the most frequent, how often it is given and
// for which record first: where one list of a lane is over the bound, and where only all together are.
func TestTooManySetAside(t *testing.T) {
	const over = "batch 0: run: %s6 records set aside, errors.max is 5; the most frequent reason, %d times, is %s"
	for name, c := range map[string]struct {
		in   []string
		lane string // that is over the bound by itself
		n    int
		want string
	}{
		"a guest's letters":     {numbered("letter", 24), "stage words: lane 0: ", 6, "guest 3, as of in part-0 record 0, transform words: will not"},
		"a column that misfits": {append([]string{"a", "letter1"}, numbered("misfit", 24)...), "stage words: lane 0: ", 5, "type, as of in part-0 record 2: sink main: c: does not fit"},
		"no records":            {append([]string{"b"}, numbered("reject:", 24)...), "", 6, "broken, as of in part-0 record 1: the value says so"},
		"several of all lanes": {
			append(append([]string{"letter1", "letter2"}, numbered("v", 9)...), "misfit1", "misfit2", "letter3", "letter4"), "", 4,
			"guest 3, as of in part-0 record 0, transform words: will not",
		},
	} {
		for _, policy := range []engine.Policy{engine.DeadLetter, engine.Skip} {
			w := newWorld(t)
			w.policy, w.misfit = policy, "misfit"
			w.max, w.batch = 5, 100
			w.in.Append(c.in...)
			err := w.run(&sim.Process{})
			if !isCode(err, engine.CodeTooManyLetters) {
				t.Errorf("%s: got %v", name, err)
				continue
			}
			if want := fmt.Sprintf(over, c.lane, c.n, c.want); !strings.Contains(err.Error(), want) {
				t.Errorf("%s, policy %s:\n%v, want\n%s", name, policy, err, want)
			}
		}
	}
}

// TestPoisonIsNotCountedAsSetAside: it has a bound of its own, under both policies.
func TestPoisonIsNotCountedAsSetAside(t *testing.T) {
	for _, policy := range []engine.Policy{engine.DeadLetter, engine.Skip} {
		w := newWorld(t)
		w.policy, w.max, w.progress = policy, 1, true
		w.in.Append("trap1", "trap2", "letter3", "v4")
		w.mustRun()
		w.wantValues("main", "v4")
		w.in.Append("letter5", "letter6")
		if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTooManyLetters) {
			t.Errorf("policy %s: got %v", policy, err)
		}
	}
}

func TestTooMuchPoison(t *testing.T) {
	w := newWorld(t)
	w.batch = 1000
	w.progress = true
	w.in.Append(numbered("trap", 3*4*17)...)
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTooMuchPoison) {
		t.Errorf("got %v", err)
	}
}

// TestKilledAtEveryCall ends a process at its n-th call of anything outside, for every n, starts another, and compares
// with the oracle. Volatile and durable targets, alone and mixed; poison on the way.
func TestKilledAtEveryCall(t *testing.T) {
	input := append(numbered("v", 25), "trap1", "odd1", "letter1", "odd2")
	kinds := map[string]map[string]sink.Traits{
		"durable":  {"main": durableTraits, "side": durableTraits, "dead": durableTraits},
		"volatile": {"main": volatileTraits, "side": volatileTraits, "dead": volatileTraits},
		"mixed":    {"main": durableTraits, "side": volatileTraits, "dead": durableTraits},
	}
	for name, traits := range kinds {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for n := 1; ; n++ {
				w := newWorld(t)
				w.traits = traits
				w.in.Append(input...)
				p := &sim.Process{KillAt: n}
				err := w.run(p)
				if !p.Dead() {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				kills++
				if err != nil && !errors.Is(err, sim.ErrKilled) {
					t.Fatalf("kill %d: %v", n, err)
				}
				w.mustRun()
				w.wantValues("main", numbered("v", 25)...)
				w.wantValues("side", "odd1", "odd2")
				if dead := w.stores["dead"].Values("dead"); len(dead) != 2 {
					t.Errorf("kill %d: dead letters %q", n, dead)
				}
				w.wantConsistent()
				if t.Failed() {
					t.Fatalf("kill at call %d", n)
				}
			}
			t.Logf("%d kills", kills)
			if kills < 40 {
				t.Errorf("only %d kills: the run is too short to prove anything", kills)
			}
		})
	}
}

func TestKilledTwice(t *testing.T) {
	for n := 20; n < 60; n += 3 {
		for m := 1; m < 30; m += 4 {
			w := newWorld(t)
			w.traits = map[string]sink.Traits{"main": durableTraits, "side": volatileTraits, "dead": durableTraits}
			w.in.Append(append(numbered("v", 15), "odd1")...)
			for _, at := range []int{n, m} {
				if err := w.run(&sim.Process{KillAt: at}); err != nil && !errors.Is(err, sim.ErrKilled) {
					t.Fatal(err)
				}
			}
			w.mustRun()
			w.wantValues("main", numbered("v", 15)...)
			w.wantValues("side", "odd1")
			w.wantConsistent()
		}
	}
}

// killAtPublish leaves batch 1 decided and published nowhere.
func killAtPublish(t *testing.T, w *world) {
	t.Helper()
	seen := 0
	p := &sim.Process{}
	p.Hook = func(_ int, call string) error {
		if strings.HasPrefix(call, "target.publish main") {
			if seen++; seen == 2 {
				return sim.ErrKilled
			}
		}
		return nil
	}
	if err := w.run(p); !errors.Is(err, sim.ErrKilled) {
		t.Fatalf("the process was to die: %v", err)
	}
}

func TestLadder(t *testing.T) {
	cases := []struct {
		name   string
		before func(w *world)
		code   string
		main   []string
	}{
		{name: "a: what is staged", before: func(*world) {}, main: numbered("v", 20)},
		{name: "c: run again", before: func(w *world) { w.stores["main"].DropStaged() }, main: numbered("v", 20)},
		{name: "d: un-decided", before: func(w *world) {
			w.stores["main"].DropStaged()
			w.in.Replace(12, "changed")
		}, main: append(append(numbered("v", 12), "changed"), numbered("v", 20)[13:]...)},
		{name: "d: a newer revision runs it", before: func(w *world) {
			w.stores["main"].DropStaged()
			w.revision = fmt.Sprintf("%064d", 2)
		}, main: numbered("v", 20)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.in.Append(numbered("v", 20)...)
			killAtPublish(t, w)
			c.before(w)
			w.mustRun()
			w.wantValues("main", c.main...)
			w.wantConsistent()
		})
	}
}

// TestLadderStops: one target has the batch, the other lost it, and the input changed. Nothing may be guessed.
func TestLadderStops(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.in.Append(fmt.Sprintf("odd%d", i), fmt.Sprintf("v%d", i))
	}
	p := &sim.Process{}
	seen := 0
	p.Hook = func(_ int, call string) error {
		if call == "target.publish side" {
			if seen++; seen == 2 {
				return sim.ErrKilled
			}
		}
		return nil
	}
	if err := w.run(p); !errors.Is(err, sim.ErrKilled) {
		t.Fatal(err)
	}
	w.stores["side"].DropStaged()
	w.in.Replace(12, "odd-changed")
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
		t.Fatalf("got %v", err)
	}
	w.in.Replace(12, "odd6")
	w.mustRun()
	w.wantConsistent()
	if n := len(w.stores["side"].Values("side")); n != 10 {
		t.Errorf("side holds %d values, want 10", n)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	run := func(t *testing.T, change func(w *world), code string) {
		w := newWorld(t)
		w.in.Append(numbered("v", 30)...)
		w.mustRun()
		change(w)
		if err := w.run(&sim.Process{}); !isCode(err, code) {
			t.Errorf("got %v, want code %s", err, code)
		}
	}
	t.Run("a new checkpoint over an old output", func(t *testing.T) {
		run(t, func(w *world) { w.dir = "other" }, engine.CodeTargetAhead)
	})
	t.Run("an output that was removed", func(t *testing.T) {
		run(t, func(w *world) { w.stores["main"] = &sim.Store{} }, engine.CodeTargetBehind)
	})
}

func TestAtLeastOnceIsPublishedAgainOnlyWhenUnsure(t *testing.T) {
	w := newWorld(t)
	w.traits["main"] = repeatTraits
	w.in.Append(numbered("v", 20)...)
	w.mustRun()
	w.mustRun()
	w.wantValues("main", numbered("v", 20)...)
}

func TestReplayOfEveryBatchProvesItself(t *testing.T) {
	w := newWorld(t)
	w.in.Append(append(numbered("v", 30), "trap1", "odd1")...)
	var digests []string
	w.events = &engine.Events{Batch: func(s engine.BatchStats) { digests = append(digests, s.Digest) }}
	w.mustRun()
	if len(digests) != 4 {
		t.Fatalf("%d batches, want 4", len(digests))
	}
	for i := range digests {
		for _, workers := range []int{1, 2, 4} {
			got := replay(t, w, i, workers)
			if got != digests[i] {
				t.Errorf("batch %d with %d workers: digest %s, want %s", i, workers, got, digests[i])
			}
		}
	}
}

// TestLostInput: input that is gone after it was planned stops the job, or is left out by an amended plan.
func TestLostInput(t *testing.T) {
	for _, skip := range []bool{false, true} {
		w := newWorld(t)
		w.skipLost = skip
		var reviewed []source.Range
		w.review = func(r source.Range) { reviewed = append(reviewed, r) }
		w.in.Append(numbered("v", 16)...)
		p := &sim.Process{}
		p.Hook = func(_ int, call string) error {
			if call == "program.new" && len(w.stores["main"].Batches()) == 1 {
				w.in.Truncate(13)
				p.Hook = nil
			}
			return nil
		}
		err := w.run(p)
		if !skip {
			if lost := (*source.ChangedError)(nil); !errors.As(err, &lost) {
				t.Errorf("got %v", err)
			}
			if reviewed != nil {
				t.Errorf("reviewed %v, and nothing is left out", reviewed)
			}
			continue
		}
		if len(reviewed) == 0 || reviewed[0].From == reviewed[0].To {
			t.Errorf("what was planned and is planned anew was reviewed as %v", reviewed)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.in.Append("later")
		w.mustRun()
		w.wantValues("main", append(numbered("v", 13), "later")...)
		w.wantConsistent()
	}
}

// TestVerdictsAtTheEnd: a guest that holds records back may fail one, or write one off, in the lane's last frame. Its
// record has long gone with its chunk; it is found again by reading the lane once more.
func TestVerdictsAtTheEnd(t *testing.T) {
	for kind, word := range map[abi.Kind]string{abi.KindFail: "fail", abi.KindDeadLetter: "guest"} {
		w := newWorld(t)
		w.batch = 8000
		w.in.Append(numbered("v", 6000)...) // two chunks in a lane
		w.guest = func(sandbox.Lane) sim.Guest {
			var held []abi.Record
			return func(c sandbox.Call, emit sandbox.Emit) error {
				for i := range c.Records {
					held = append(held, abi.Record{Value: append([]byte(nil), c.Records[i].Value...), Index: c.Records[i].Index})
				}
				if c.Header.Flags&abi.FlagLast == 0 {
					return nil
				}
				for i := range held {
					if string(held[i].Value) == "v007" {
						held[i] = abi.Record{Kind: kind, Index: held[i].Index, Partition: 4, Value: []byte("too late")}
					}
					if err := emit(&held[i]); err != nil {
						return err
					}
				}
				return nil
			}
		}
		w.mustRun()
		want := numbered("v", 6000)
		w.wantValues("main", append(want[:7:7], want[8:]...)...)
		dead := w.stores["dead"].Values("dead")
		if len(dead) != 1 || !strings.Contains(dead[0], `"value":"v007"`) || !strings.Contains(dead[0], `"word":"`+word+`"`) || !strings.Contains(dead[0], `"offset":7`) {
			t.Errorf("%s: dead letters %q", word, dead)
		}
	}
}
