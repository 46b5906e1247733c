package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
)

// verifies has the world verify a share of its batches with a guest that may be another one than the job's.
func (w *world) verifies(share float64, other func(sandbox.Lane) sim.Guest) (verified *[]error) {
	verified = new([]error)
	w.host = checkpoint.Host{Version: "1", Engine: "compiler", Arch: "amd64"}
	w.verify = func(p *sim.Process) *engine.Verify {
		g, _ := w.graph(p)
		if other != nil {
			g.Stages[0].Program.(*sim.Program).NewGuest = other
		}
		return &engine.Verify{Share: share, Graph: g, Engine: "interpreter"}
	}
	if w.events == nil {
		w.events = &engine.Events{}
	}
	w.events.Verified = func(_ checkpoint.BatchID, differs error) { *verified = append(*verified, differs) }
	return verified
}

// bent is a guest of Words with what it emits changed on the way.
func bent(outputs int, bend func(r *abi.Record, emit sandbox.Emit) error) func(sandbox.Lane) sim.Guest {
	words := sim.Words(outputs, true)
	return func(l sandbox.Lane) sim.Guest {
		guest := words(l)
		return func(c sandbox.Call, emit sandbox.Emit) error {
			return guest(c, func(r *abi.Record) error { return bend(r, emit) })
		}
	}
}

func TestVerifyAgrees(t *testing.T) {
	w := newWorld(t)
	verified := w.verifies(1, nil)
	w.progress = true
	w.in.Append("a", "odd1", "trap2", "letter3", "b", "reject:4", "fail5", "drop6", "c", "d", "e", "f")
	w.mustRun()
	if len(*verified) != 2 || errors.Join(*verified...) != nil {
		t.Errorf("%d batches are verified, want 2: %v", len(*verified), *verified)
	}
	w.wantValues("main", "a", "b", "c", "d", "e", "f")
}

// TestVerifyStopsBeforeAnythingIsStaged has engines that do not agree, each in its own way: the batch ends, nothing of it
// is staged or decided, and the next start without the check runs it from the same plan.
func TestVerifyStopsBeforeAnythingIsStaged(t *testing.T) {
	pass := func(r *abi.Record, emit sandbox.Emit) error { return emit(r) }
	for _, tt := range []struct {
		name   string
		bend   func(r *abi.Record, emit sandbox.Emit) error
		words  []string
		policy engine.Policy
	}{
		{name: "a value", words: []string{
			"transform words, lane 1: ", "on the interpreter main has 11 records ", ", on the compiler they are 11 records ",
			"first in batch 0, record 1 that it emits: port 0 value v04, made of record 1 of the lane on the compiler, " +
				"port 0 value w04, made of record 1 of the lane on the interpreter; nothing of the batch is staged",
		}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			c := *r
			c.Value = bytes.Replace(c.Value, []byte("v04"), []byte("w04"), 1)
			return emit(&c)
		}},
		{name: "a record less", words: []string{"main has 10 records", "value v11, made of record 2 of the lane on the compiler, there is none on the interpreter"}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			if string(r.Value) == "v11" {
				return nil
			}
			return emit(r)
		}},
		{name: "another port", words: []string{"side has 1 records", "port 0 value v02", "port 1 value v02"}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			c := *r
			if string(r.Value) == "v02" {
				c.Port = 1
			}
			return emit(&c)
		}},
		{name: "a verdict", words: []string{"dead has 2 records", "port 0 value v00", "kind 16 code 5 no"}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			if string(r.Value) == "v00" {
				return emit(&abi.Record{Kind: abi.KindDeadLetter, Index: r.Index, Partition: 5, Value: []byte("no")})
			}
			return emit(r)
		}},
		{name: "a trap", policy: engine.DeadLetter, words: []string{"dead has 2 records", "value v05, made of record 2 of the lane on the compiler, there is none on the interpreter"}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			if string(r.Value) == "v05" {
				return &sandbox.Failure{Trap: abi.TrapDepth, Text: "too deep", Progress: r.Index}
			}
			return emit(r)
		}},
		{name: "a trap under stop", policy: engine.Stop, words: []string{"the compiler came through, the interpreter failed: in part-3 record 5, transform words: depth: trap depth: too deep"}, bend: func(r *abi.Record, emit sandbox.Emit) error {
			if string(r.Value) == "v05" {
				return &sandbox.Failure{Trap: abi.TrapDepth, Text: "too deep", Progress: r.Index}
			}
			return emit(r)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.batch = 12
			if w.policy = tt.policy; w.policy == "" {
				w.policy = engine.DeadLetter
			}
			values := numberedTwo("v", 12)
			values[7] = "trap"
			if w.policy == engine.Stop {
				values[7] = "v07"
			}
			w.in.Append(values...)
			verified := w.verifies(1, bent(2, tt.bend))
			w.progress = true
			err := w.run(&sim.Process{})
			if !isCode(err, engine.CodeEnginesDiffer) || len(*verified) != 1 || (*verified)[0] == nil {
				t.Fatalf("verified %v, error %v", *verified, err)
			}
			for _, word := range tt.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error is\n%v\nwithout\n%s", err, word)
				}
			}
			for name, s := range w.stores {
				if len(s.Batches()) != 0 {
					t.Errorf("%s has published %v", name, s.Batches())
				}
				if n := s.Staged(); n != 0 {
					t.Errorf("%s holds %d staged batches", name, n)
				}
			}
			*verified = nil
			w.verifies(1, bent(2, pass))
			w.mustRun()
			if got := len(w.stores["main"].Values("main")); got < 11 {
				t.Errorf("main holds %d values after the next start", got)
			}
		})
	}
}

func numberedTwo(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%02d", prefix, i))
	}
	return out
}

// TestVerifyLeavesTheHostsTroubleAlone: what the machine does wrong in the second run says nothing about the engines.
func TestVerifyLeavesTheHostsTroubleAlone(t *testing.T) {
	w := newWorld(t)
	w.in.Append(numberedTwo("v", 3)...)
	trouble := errors.New("no room for an instance")
	verified := w.verifies(1, func(sandbox.Lane) sim.Guest {
		return func(sandbox.Call, sandbox.Emit) error { return trouble }
	})
	err := w.run(&sim.Process{})
	if !errors.Is(err, trouble) || isCode(err, engine.CodeEnginesDiffer) || len(*verified) != 0 {
		t.Errorf("verified %v, error %v", *verified, err)
	}
}

// TestVerifyWithoutABend has guests that differ in one run alone, so that the search finds nothing.
func TestVerifyWithoutABend(t *testing.T) {
	w := newWorld(t)
	w.in.Append("a")
	first := true
	w.verifies(1, bent(2, func(r *abi.Record, emit sandbox.Emit) error {
		if first {
			first = false
			return nil
		}
		return emit(r)
	}))
	if err := w.run(&sim.Process{}); !isCode(err, engine.CodeEnginesDiffer) || !strings.Contains(err.Error(), "batch 0: the compiler and the interpreter come to different results") ||
		!strings.Contains(err.Error(), "a further run of both finds no transform that emits anything else") {
		t.Errorf("the error is %v", err)
	}
}

func TestVerifyPicks(t *testing.T) {
	const n = 100_000
	for _, share := range []float64{0, 0.0001, 0.05, 0.5, 1} {
		v, again, picked := engine.Verify{Share: share}, engine.Verify{Share: share}, 0
		for id := range checkpoint.BatchID(n) {
			if v.Picks(id) != again.Picks(id) {
				t.Fatalf("batch %d is picked and is not", id)
			}
			if v.Picks(id) {
				picked++
			}
		}
		if want := share * n; math.Abs(float64(picked)-want) > 5*math.Sqrt(n*share*(1-share))+0.5 {
			t.Errorf("a share of %v picks %d of %d", share, picked, n)
		}
	}
	var first []checkpoint.BatchID
	for id := range checkpoint.BatchID(100) {
		if (&engine.Verify{Share: 0.05}).Picks(id) {
			first = append(first, id)
		}
	}
	if want := "[9 16 18 58 66]"; fmt.Sprint(first) != want {
		t.Errorf("of the first hundred: %v, on other machines %s", first, want)
	}
}

// TestVerifyOnlyAShare verifies the batches that are picked and no others.
func TestVerifyOnlyAShare(t *testing.T) {
	w := newWorld(t)
	w.batch = 1
	verified := w.verifies(0.3, nil)
	var picked []checkpoint.BatchID
	w.events.Verified = func(id checkpoint.BatchID, differs error) {
		picked = append(picked, id)
		*verified = append(*verified, differs)
	}
	w.in.Append(numberedTwo("v", 30)...)
	w.mustRun()
	var want []checkpoint.BatchID
	for id := range checkpoint.BatchID(30) {
		if (&engine.Verify{Share: 0.3}).Picks(id) {
			want = append(want, id)
		}
	}
	if fmt.Sprint(picked) != fmt.Sprint(want) || len(want) == 0 || len(want) == 30 || errors.Join(*verified...) != nil {
		t.Errorf("verified %v, want %v: %v", picked, want, *verified)
	}
}
