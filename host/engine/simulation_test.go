package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the simulation of this seed alone and print its trace")
	seedsFlag = flag.Int("seeds", 1000, "how many seeds to simulate")
)

// mutant is a seeded bug: it wraps parts of the world so that a rule of the protocol is broken.
type mutant struct {
	name   string
	files  func(durable.Files) durable.Files
	target func(*sim.Process, sink.Target) sink.Target
	log    func(engine.Log) engine.Log
	source func(source.Source) source.Source
}

// life is one simulated life of a job: processes that come and go over one disk, one input and some targets.
type life struct {
	rng      *rand.Rand
	disk     *faulty.FS
	clock    *sim.Clock
	in       sim.Input
	stores   map[string]*sim.Store
	traits   map[string]sink.Traits
	mutant   mutant
	batch    int64
	split    int
	attempts int
	trace    strings.Builder
	crashes  int
	batches  int
	keep     float64
	revision int
	keyed    bool               // "main" is read by a keyed stage too
	backend  statestore.Backend // of its state; outlives processes
}

const simQuery = "11111111-2222-3333-4444-555555555555"

func newLife(seed uint64, m mutant) *life {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	l := &life{
		rng: rng, disk: faulty.New(), clock: sim.NewClock(time.UnixMilli(1_700_000_000_000)), mutant: m,
		batch: 1 + rng.Int64N(8), split: 1 + rng.IntN(4), stores: map[string]*sim.Store{}, traits: map[string]sink.Traits{},
		keep: []float64{0, 0.1, 0.5, 0.9, 1}[rng.IntN(5)],
	}
	l.disk.SetClock(l.clock.Now)
	l.keyed = rng.IntN(2) == 0
	for _, name := range []string{"main", "side", "dead"} {
		l.stores[name] = &sim.Store{}
		l.traits[name] = durableTraits
		if rng.IntN(2) == 0 {
			l.traits[name] = volatileTraits
		}
	}
	return l
}

func (l *life) say(format string, args ...any) { fmt.Fprintf(&l.trace, format+"\n", args...) }

// grow adds input, a word of each kind now and then.
func (l *life) grow() {
	for range 1 + l.rng.IntN(12) {
		n := len(l.in.Values())
		kind := []string{"v", "v", "v", "v", "odd", "twice", "drop", "letter", "trap", "fail"}[l.rng.IntN(10)]
		l.in.Append(fmt.Sprintf("%s-%04d", kind, n))
	}
}

// process runs one process until it is done, fails or dies. It reports whether it came through.
func (l *life) process(hostile bool) error {
	ctx := context.Background()
	p := &sim.Process{}
	l.disk.SetFaults(nil)
	if hostile {
		l.plant(p)
	}
	proc := l.disk.Process()
	defer proc.Kill()
	files := durable.Files(proc)
	if l.mutant.files != nil {
		files = l.mutant.files(files)
	}
	err := l.live(ctx, p, files)
	l.say("process: %d calls, %v", p.Calls(), err)
	return err
}

// plant chooses how this process will suffer.
func (l *life) plant(p *sim.Process) {
	at := 1 + l.rng.IntN(120)
	switch l.rng.IntN(4) {
	case 0: // killed at a call
		p.KillAt = at
	case 1: // the power fails in a file operation
		stop, when := l.disk.Ops()+at, faulty.Moment(l.rng.IntN(3))
		l.disk.SetFaults(func(op faulty.Op) faulty.Fault {
			switch {
			case op.N == stop:
				p.Kill()
				return faulty.Fault{Err: faulty.ErrStopped, When: when}
			case op.N > stop:
				return faulty.Fault{Err: faulty.ErrStopped}
			}
			return faulty.Fault{}
		})
	case 2: // the disk fails now and then
		l.disk.FailAtRandom(l.rng, 0.01+l.rng.Float64()/20)
	case 3: // a target or the source fails once
		p.Hook = func(n int, _ string) error {
			if n == at {
				return errors.New("not today")
			}
			return nil
		}
	}
}

func (l *life) live(ctx context.Context, p *sim.Process, files durable.Files) error {
	real, err := checkpoint.Open(ctx, files, "ck", checkpoint.Options{
		Job: "sim", Holder: "sim", NewID: func() string { return simQuery }, Clock: func() int64 { return l.clock.Now().UnixMilli() },
		Unique: func() string { l.attempts++; return fmt.Sprintf("%08x", l.attempts) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = real.Close() }() // the lock goes with the process
	log := engine.Log(real)
	if l.mutant.log != nil {
		log = l.mutant.log(log)
	}
	store, err := l.openState(ctx, files)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	e, err := engine.Open(ctx, engine.Config{
		Store: store,
		Job:   "sim", Graph: l.graph(p), Revision: fmt.Sprintf("%064d", l.revision), Log: log, Clock: l.clock,
		Errors:     engine.ErrorPolicy{Policy: engine.DeadLetter, Sink: 2, Max: 1000},
		NewAttempt: func() string { l.attempts++; return fmt.Sprintf("%08x", l.attempts) },
		Trigger:    engine.Trigger{AvailableNow: true}, Workers: 1, Retention: checkpoint.Policy{Keep: 3, AgeMS: 1, Max: 5},
		Verify: l.verify(p),
		Revive: func(context.Context, string) (*engine.Revived, error) {
			return &engine.Revived{Graph: l.graph(p), Errors: engine.ErrorPolicy{Policy: engine.DeadLetter, Sink: 2, Max: 1000}}, nil
		},
		Events: &engine.Events{Batch: func(s engine.BatchStats) {
			l.batches++
			l.say("batch %d %s", s.Batch, s.Digest)
			for store != nil && store.Applied() < store.Last() {
				runtime.Gosched() // so that the same seed gives the same life
			}
		}},
	})
	if err != nil {
		return err
	}
	return e.Run(ctx, nil)
}

// verify has every other life run half of its batches twice, also while it suffers.
func (l *life) verify(p *sim.Process) *engine.Verify {
	if l.mutant.name != "" || l.batch%2 == 1 {
		return nil
	}
	return &engine.Verify{Share: 0.5, Graph: l.graph(p), Engine: "interpreter"}
}

func (l *life) graph(p *sim.Process) *engine.Graph {
	target := func(name string) sink.Target {
		t := &sim.Target{Proc: p, Store: l.stores[name], Name: name, Trait: l.traits[name]}
		if l.mutant.target != nil {
			return l.mutant.target(p, t)
		}
		return t
	}
	src := source.Source(&sim.Source{Proc: p, In: &l.in, SplitSize: l.split, Step: time.Second})
	if l.mutant.source != nil {
		src = l.mutant.source(src)
	}
	g := &engine.Graph{
		Lanes:   3,
		Sources: []engine.SourceNode{{Name: "in", Source: src, Limit: source.Limit{Records: l.batch}}},
		Stages: []engine.StageNode{{
			Name: "words", Module: "m", Inputs: []engine.Edge{engine.FromSource(0)},
			Program: &sim.Program{Proc: p, Outputs: []string{"even", "odd"}, NewGuest: sim.Words(2, l.split%2 == 0)},
		}},
		Sinks: []engine.SinkNode{
			{Name: "main", Target: target("main"), Inputs: []engine.Edge{engine.FromPort(0, 0)}},
			{Name: "side", Target: target("side"), Inputs: []engine.Edge{engine.FromPort(0, 1)}},
			{Name: "dead", Target: target("dead")},
		},
	}
	if l.keyed {
		l.addTally(g, p, target)
	}
	return g
}

// run lives through rounds of growth and suffering, then heals and finishes.
func (l *life) run() error {
	for range 2 + l.rng.IntN(5) {
		l.grow()
		err := l.process(true)
		l.crashes++
		if errors.Is(err, faulty.ErrStopped) || (err != nil && l.rng.IntN(3) == 0) {
			l.disk = l.disk.Crash(l.rng, l.keep)
			l.disk.SetClock(l.clock.Now)
			l.say("power cut, keep %v", l.keep)
			for name, s := range l.stores {
				if l.traits[name].Volatile || l.stagedLost(name) {
					s.DropStaged()
				}
			}
		}
		if l.rng.IntN(5) == 0 {
			l.clock.Move(time.Duration(l.rng.IntN(7200)-3600) * time.Second)
		}
		if l.rng.IntN(4) == 0 {
			l.revision++
		}
	}
	l.grow()
	if err := l.process(false); err != nil {
		return fmt.Errorf("a healthy process failed: %w", err)
	}
	return l.check()
}

// stagedLost decides, in an order that the seed fixes, whether a power cut takes what a durable target has staged.
func (l *life) stagedLost(name string) bool {
	return (l.crashes+len(name))%2 == 0
}

// check compares what the targets hold with the oracle.
func (l *life) check() error {
	want := map[string][]string{}
	for _, v := range l.in.Values() {
		kind, _, _ := strings.Cut(v, "-")
		switch kind {
		case "drop":
		case "odd":
			want["side"] = append(want["side"], v)
		case "twice":
			want["main"] = append(want["main"], v, v)
		case "letter", "trap", "fail":
			want["dead"] = append(want["dead"], v)
		default:
			want["main"] = append(want["main"], v)
		}
	}
	for _, name := range []string{"main", "side"} {
		if got := l.stores[name].Values(name); !slices.Equal(got, want[name]) {
			return fmt.Errorf("%s holds %d values, want %d:\n got %v\nwant %v", name, len(got), len(want[name]), got, want[name])
		}
	}
	if got := len(l.stores["dead"].Values("dead")); got != len(want["dead"]) {
		return fmt.Errorf("dead holds %d letters, want %d", got, len(want["dead"]))
	}
	if l.keyed {
		if err := l.checkTally(want["main"]); err != nil {
			return err
		}
	}
	return l.checkMarkers()
}

// checkMarkers: each target took each batch once, in order, and with the digest of the decision that is still there.
func (l *life) checkMarkers() error {
	ctx := context.Background()
	proc := l.disk.Process()
	defer proc.Kill()
	log, err := checkpoint.Open(ctx, proc, "ck", checkpoint.Options{
		Job: "sim", Holder: "check", NewID: func() string { return simQuery }, Clock: func() int64 { return 0 },
	})
	if err != nil {
		return fmt.Errorf("open the checkpoint at the end: %w", err)
	}
	_, last, err := log.Tail(ctx)
	if err != nil {
		return fmt.Errorf("read the tail at the end: %w", err)
	}
	for name, s := range l.stores {
		before := checkpoint.NoBatch
		for _, b := range s.Batches() {
			if b.Batch <= before {
				return fmt.Errorf("%s took batch %d after %d", name, b.Batch, before)
			}
			before = b.Batch
			if last != nil && b.Batch == last.Batch && b.Digest != last.Digest {
				return fmt.Errorf("%s has batch %d with digest %s, decided was %s", name, b.Batch, b.Digest, last.Digest)
			}
		}
		if last != nil && last.Targets[name].Last != before {
			return fmt.Errorf("%s ends with batch %d, decided was %d", name, before, last.Targets[name].Last)
		}
	}
	return nil
}

// TestSimulation lives through many seeds. Each is repeatable from its number: go test -run TestSimulation -seed N -v.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		l := newLife(*seedFlag, mutant{})
		err := l.run()
		t.Log(l.trace.String())
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	crashes, batches := 0, 0
	for seed := uint64(1); seed <= uint64(*seedsFlag); seed++ {
		l := newLife(seed, mutant{})
		if err := l.run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, l.trace.String())
		}
		crashes += l.crashes
		batches += l.batches
	}
	t.Logf("%d seeds, %d batches, %d hostile processes, 0 violations", *seedsFlag, batches, crashes)
	if batches < 3**seedsFlag {
		t.Errorf("only %d batches: the simulation does not get anywhere", batches)
	}
}

// TestSimulationRepeats: the same seed gives the same life, to the letter.
func TestSimulationRepeats(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := newLife(seed, mutant{}), newLife(seed, mutant{})
		errA, errB := a.run(), b.run()
		if a.trace.String() != b.trace.String() || (errA == nil) != (errB == nil) {
			t.Fatalf("seed %d gave two lives:\n%s\n---\n%s", seed, a.trace.String(), b.trace.String())
		}
	}
}

// TestFailEveryFileOperation fails the n-th file operation of a run, once and for ever after, in every way, for every n
// until a whole run passes without a fault; then the disk heals and a new process must finish the job.
func TestFailEveryFileOperation(t *testing.T) {
	faults := 0
	for _, forever := range []bool{false, true} {
		for _, when := range []faulty.Moment{faulty.Before, faulty.Half, faulty.After} {
			for n := 1; ; n++ {
				l := newLife(7, mutant{})
				l.in.Append("v-0", "odd-1", "trap-2", "twice-3", "letter-4", "v-5", "v-6", "odd-7", "v-8", "v-9", "v-10")
				l.batch = 4
				hit := false
				match := func(op faulty.Op) bool { return op.Writes() }
				seen := 0
				l.disk.SetFaults(func(op faulty.Op) faulty.Fault {
					if !match(op) {
						return faulty.Fault{}
					}
					if seen++; seen == n || (forever && seen > n) {
						hit = true
						return faulty.Fault{Err: []error{syscall.EIO, syscall.ENOSPC}[n%2], When: when}
					}
					return faulty.Fault{}
				})
				proc := l.disk.Process()
				err := l.live(context.Background(), &sim.Process{}, proc)
				proc.Kill()
				if !hit {
					if err != nil {
						t.Fatalf("operation %d: no fault, but %v", n, err)
					}
					break
				}
				faults++
				if err := l.process(false); err != nil {
					t.Fatalf("operation %d (forever %v, moment %d): a healthy process failed: %v", n, forever, when, err)
				}
				if err := l.check(); err != nil {
					t.Fatalf("operation %d (forever %v, moment %d): %v", n, forever, when, err)
				}
			}
		}
	}
	t.Logf("%d faults", faults)
	if faults < 300 {
		t.Errorf("only %d faults: the run is too short", faults)
	}
}
