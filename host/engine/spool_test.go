package engine_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sink"
)

// mixes are the ways in which three targets can be durable or volatile.
func mixes() map[string]map[string]sink.Traits {
	out := map[string]map[string]sink.Traits{}
	for bits := range 8 {
		m, name := map[string]sink.Traits{}, ""
		for i, target := range []string{"main", "side", "dead"} {
			m[target] = durableTraits
			word := "durable"
			if bits>>i&1 == 1 {
				m[target], word = volatileTraits, "volatile"
			}
			name += " " + target + " " + word
		}
		out[strings.TrimSpace(name)] = m
	}
	return out
}

// spoolKinds is how many records of each kind the test below has: three batches in all.
const spoolKinds = 8

// rungs counts what recovery does.
func (w *world) rungs() map[string]int {
	n := map[string]int{}
	w.events = &engine.Events{Recovered: func(r engine.Recovery) { n[r.Rung]++ }}
	return n
}

// TestSpoolOutlivesTheInput kills a job at each of its calls and then takes away what its decided batches could be run
// again from: the input is other, the revision too. What is decided comes to every target all the same, or, where no
// target has it, to none; and never a part of it.
func TestSpoolOutlivesTheInput(t *testing.T) {
	for name, traits := range mixes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spooled := 0
			for n := 1; ; n++ {
				w := newWorld(t)
				w.traits, w.spool = traits, engine.SpoolAuto
				for i := range spoolKinds {
					w.in.Append(fmt.Sprintf("v%d", i), fmt.Sprintf("odd%d", i), fmt.Sprintf("letter%d", i))
				}
				p := &sim.Process{KillAt: n}
				if err := w.run(p); !p.Dead() {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				w.revision = fmt.Sprintf("%064d", 2)
				rungs := w.rungs()
				w.mustRun()
				spooled += rungs["spool"]
				for sinkName, prefix := range map[string]string{"main": "v", "side": "odd"} {
					var want []string
					for i := range spoolKinds {
						want = append(want, fmt.Sprintf("%s%d", prefix, i))
					}
					w.wantValues(sinkName, want...)
				}
				if dead := w.stores["dead"].Values("dead"); len(dead) != spoolKinds {
					t.Errorf("%d dead letters, want %d", len(dead), spoolKinds)
				}
				w.wantConsistent()
				w.wantNoSpool()
				if t.Failed() {
					t.Fatalf("killed at call %d; recovery took %v", n, rungs)
				}
			}
			if volatile := strings.Contains(name, "volatile"); volatile != (spooled > 0) {
				t.Errorf("%d targets took their batch from the spool", spooled)
			}
		})
	}
}

// wantNoSpool checks that nothing stays behind once all is published.
func (w *world) wantNoSpool() {
	w.t.Helper()
	left, err := w.disk.Process().List(path.Join(w.dir, "spool"))
	if err == nil && len(left) > 0 {
		w.t.Errorf("left in the spool: %v", left)
	}
}

// TestSpoolNever: with one volatile target and no spool a batch that cannot be run again stops the job, once another target
// has it, and is taken back as a whole before that, also where the other target could have published what it had staged.
func TestSpoolNever(t *testing.T) {
	for call, want := range map[string]string{"target.publish main": "", "target.publish side": engine.CodeUnresolved} {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t)
			w.traits = map[string]sink.Traits{"main": durableTraits, "side": volatileTraits, "dead": durableTraits}
			w.spool = engine.SpoolNever
			w.in.Append("v0", "odd0", "v1")
			w.killAt(call)
			w.revision = fmt.Sprintf("%064d", 2)
			rungs := w.rungs()
			err := w.run(&sim.Process{})
			if want != "" {
				if !isCode(err, want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || rungs["undecided"] != 1 || rungs["published"] != 0 {
				t.Errorf("%v, by %v", err, rungs)
			}
			w.wantValues("main", "v0", "v1")
			w.wantValues("side", "odd0")
			w.wantConsistent()
		})
	}
}

// killAt ends a process in its first call of that name.
func (w *world) killAt(call string) {
	w.t.Helper()
	p := &sim.Process{}
	p.Hook = func(_ int, name string) error {
		if name == call {
			p.KillAt = -1
			return sim.ErrKilled
		}
		return nil
	}
	if err := w.run(p); !errors.Is(err, sim.ErrKilled) {
		w.t.Fatalf("the process was to die at %s: %v", call, err)
	}
}

// TestSpoolThatDoesNotServe: a spool that is damaged or cut off is no reason to stop while the batch can be run again, and
// is never published.
func TestSpoolThatDoesNotServe(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"garbled":   func(b []byte) []byte { b[len(b)-12] ^= 1; return b },
		"cut":       func(b []byte) []byte { return b[:len(b)/2] },
		"empty":     func([]byte) []byte { return nil },
		"not there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.traits = map[string]sink.Traits{"main": durableTraits, "side": volatileTraits, "dead": durableTraits}
			w.in.Append("v0", "odd0", "v1", "odd1")
			w.killAt("target.publish side")
			w.harmSpool(harm)
			rungs := w.rungs()
			var warned []string
			w.events.Warning = func(op string, err error) { warned = append(warned, op+": "+err.Error()) }
			w.mustRun()
			if rungs["rerun"] != 1 || rungs["spool"] != 0 {
				t.Errorf("recovery took %v", rungs)
			}
			if (harm != nil) != (len(warned) == 1 && strings.Contains(warned[0], "spool/0-")) {
				t.Errorf("warned of %q", warned)
			}
			w.wantValues("side", "odd0", "odd1")
			w.wantConsistent()
		})
	}
}

func (w *world) harmSpool(harm func([]byte) []byte) {
	w.t.Helper()
	files := w.disk.Process()
	dir := path.Join(w.dir, "spool")
	all, err := files.List(dir)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("the spool holds %v, %v", all, err)
	}
	name := path.Join(dir, all[0].Name)
	content, err := durable.ReadFile(files, name, 1<<20)
	if err == nil {
		err = files.Remove(name)
	}
	if err == nil && harm != nil {
		err = durable.WriteFile(files, name, harm(content))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestSpoolOfOtherOutput: a spool whose records are not those of the decision is not published, however whole its file is.
func TestSpoolOfOtherOutput(t *testing.T) {
	w := newWorld(t)
	w.traits = map[string]sink.Traits{"main": durableTraits, "side": volatileTraits, "dead": durableTraits}
	w.in.Append("v0", "odd0")
	w.mutateSpool = func(parts []checkpoint.Spooled) {
		for i := range parts {
			parts[i].Data = [][]byte{[]byte(strings.Replace(string(parts[i].Data[0]), "odd0", "odd9", 1))}
		}
	}
	w.killAt("target.publish side")
	rungs := w.rungs()
	w.mustRun()
	if rungs["rerun"] != 1 {
		t.Errorf("recovery took %v", rungs)
	}
	w.wantValues("side", "odd0")
}

// TestSpoolOfALoneTarget: one target alone keeps no spool unless it is asked to.
func TestSpoolOfALoneTarget(t *testing.T) {
	for _, c := range []struct {
		policy engine.SpoolPolicy
		rung   string
	}{{"", "undecided"}, {engine.SpoolAuto, "undecided"}, {engine.SpoolNever, "undecided"}, {engine.SpoolAlways, "spool"}} {
		w := newWorld(t)
		w.traits = map[string]sink.Traits{"main": volatileTraits}
		w.alone, w.spool, w.policy = true, c.policy, engine.Stop
		w.in.Append("v0", "v1")
		w.killAt("target.publish main")
		w.revision = fmt.Sprintf("%064d", 2)
		rungs := w.rungs()
		w.mustRun()
		if rungs[c.rung] != 1 {
			t.Errorf("policy %q: recovery took %v, want %s", c.policy, rungs, c.rung)
		}
		w.wantValues("main", "v0", "v1")
	}
}

// TestSinkMovedWhileDecided: a sink that goes to another target between decision and publishing stops the job, whatever the
// batch is found again from: its records would be missing.
func TestSinkMovedWhileDecided(t *testing.T) {
	for _, spool := range []engine.SpoolPolicy{engine.SpoolAlways, engine.SpoolNever} {
		t.Run(string(spool), func(t *testing.T) {
			w := newWorld(t)
			w.traits = map[string]sink.Traits{"main": volatileTraits, "side": volatileTraits, "dead": durableTraits}
			w.spool, w.sideOn = spool, "main"
			w.in.Append("v0", "odd0", "v1", "odd1")
			w.killAt("target.publish main")
			w.sideOn = ""
			if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) || !strings.Contains(err.Error(), "sink side") {
				t.Fatalf("got %v", err)
			}
			w.noSide = true
			if err := w.run(&sim.Process{}); !isCode(err, engine.CodeUnresolved) {
				t.Fatalf("without the sink: %v", err)
			}
			w.noSide, w.sideOn = false, "main"
			w.mustRun()
			got := w.stores["main"].Values("side")
			if main := w.stores["main"].Values("main"); len(got) != 2 || len(main) != 2 {
				t.Errorf("the target holds %q and %q", main, got)
			}
			w.sideOn = "" // published everywhere: now it may
			w.in.Append("odd2")
			w.mustRun()
			w.wantValues("side", "odd2")
		})
	}
}

// TestTargetForgetsItsFirstBatch: a target that is noted to have a batch and does not know of it has lost its marker, also
// when it is the first one. Nothing is published twice.
func TestTargetForgetsItsFirstBatch(t *testing.T) {
	w := newWorld(t)
	w.traits["main"] = volatileTraits
	w.in.Append("v0", "v1")
	w.mustRun()
	w.stores["main"].Forget()
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeTargetBehind) {
		t.Errorf("got %v", err)
	}
	w.wantValues("main")
}

// TestSpoolsDoNotPileUp: attempts that fail leave one spool file at most, and none that could not be written.
func TestSpoolsDoNotPileUp(t *testing.T) {
	w := newWorld(t)
	w.traits = map[string]sink.Traits{"main": durableTraits, "side": volatileTraits, "dead": durableTraits}
	w.in.Append("v0", "odd0")
	for range 5 {
		w.killAt("target.stage side")
		left, err := w.disk.Process().List(path.Join(w.dir, "spool"))
		if err != nil || len(left) != 1 {
			t.Fatalf("the spool holds %v, %v", left, err)
		}
	}
	w.disk.SetFaults(func(op faulty.Op) faulty.Fault {
		if strings.Contains(op.Path, "spool/") && op.Kind == "sync" {
			return faulty.Fault{Err: syscall.ENOSPC}
		}
		return faulty.Fault{}
	})
	if err := w.run(&sim.Process{}); err == nil {
		t.Fatal("a spool that cannot be written was taken for written")
	}
	w.disk.SetFaults(nil)
	w.wantNoSpool()
	w.mustRun()
	w.wantValues("side", "odd0")
}
