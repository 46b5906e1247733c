package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

var (
	durableTraits  = sink.Traits{Guarantee: sink.ExactlyOnce}
	volatileTraits = sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}
	repeatTraits   = sink.Traits{Guarantee: sink.AtLeastOnce, Volatile: true}
)

// world is what outlives the processes of one job: a source "in", a transform "words" with ports even, odd and end, and
// targets "main" (port even), "side" (port odd) and "dead" (the dead letters).
type world struct {
	t        *testing.T
	disk     *faulty.FS
	dir      string
	in       sim.Input
	clock    *sim.Clock
	stores   map[string]*sim.Store
	traits   map[string]sink.Traits
	misfit   string
	deadMost int                                // bytes of a dead letter
	refuse   map[string]func(value string) bool // by target: what it refuses when it is staged
	atOnce   int
	curt     bool
	revision string
	progress bool
	outputs  int
	policy   engine.Policy
	max      int
	batch    int64
	workers  int
	skipLost bool
	review   func(source.Range) // what the source is asked to review
	spool    engine.SpoolPolicy
	// mutateSpool changes what is about to be spooled.
	mutateSpool func([]checkpoint.Spooled)
	alone       bool // the sink "main" is the only one
	wrapLog     func(engine.Log) engine.Log
	maxHeld     int64
	sideOn      string     // the target of the sink "side", "" for its own
	in2         *sim.Input // a second source "other", read by the same stage
	noSide      bool
	guest       func(sandbox.Lane) sim.Guest // nil: sim.Words
	events      *engine.Events
	reads       string // the mark of the source's settings
	attempts    int
	revive      func(context.Context, string) (*engine.Revived, error)
	verify      func(p *sim.Process) *engine.Verify // nil: nothing is verified
	host        checkpoint.Host

	// Of a keyed world, see state_test.go.
	keyed     bool
	lanes     int
	step      time.Duration // of event time, from value to value
	eventTime engine.EventTime
	tallies   int // how many inputs "tally" has
	tally     func(sandbox.Lane) sim.Guest
	direct    bool // "tally" reads the source alone
	keyBy     *engine.KeyBy
	behindBy  *engine.KeyBy // of the stage behind
	behind    bool          // a keyed transform reads the windows of "tally" and puts out its watermarks
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, disk: faulty.New(), dir: "ck", clock: sim.NewClock(time.UnixMilli(1_700_000_000_000)),
		stores: map[string]*sim.Store{}, revision: fmt.Sprintf("%064d", 1), outputs: 2, policy: engine.DeadLetter, max: 1000,
		batch: 10, workers: 1, lanes: 4, step: time.Second, tallies: 1, tally: sim.Tally,
		traits: map[string]sink.Traits{"main": durableTraits, "side": durableTraits, "dead": durableTraits},
	}
	for name := range w.traits {
		w.stores[name] = &sim.Store{}
	}
	return w
}

func (w *world) graph(p *sim.Process) (*engine.Graph, engine.ErrorPolicy) {
	target := func(name string) sink.Target {
		return &sim.Target{Proc: p, Store: w.stores[name], Name: name, Trait: w.traits[name], Misfit: map[string]string{"main": w.misfit}[name], Most: map[string]int{"dead": w.deadMost}[name], Refuse: w.refuse[name], AtOnce: w.atOnce, Curt: w.curt}
	}
	if w.keyed {
		return w.keyedGraph(p, target), engine.ErrorPolicy{Policy: w.policy, Sink: 3, Max: w.max}
	}
	main, side := target("main"), target("side")
	if w.sideOn == "main" {
		side = main
	}
	names := []string{"even", "odd", "end"}[:w.outputs]
	g := &engine.Graph{
		Lanes:   4,
		Sources: []engine.SourceNode{{Name: "in", Source: &sim.Source{Proc: p, In: &w.in, SplitSize: 3}, Limit: source.Limit{Records: w.batch}, SkipLost: w.skipLost, Reads: w.reads}},
		Stages: []engine.StageNode{{
			Name: "words", Module: "m", Inputs: []engine.Edge{engine.FromSource(0)},
			Program: &sim.Program{Proc: p, Outputs: names, NewGuest: sim.Words(w.outputs, w.progress)},
		}},
		Sinks: []engine.SinkNode{
			{Name: "main", Target: main, Inputs: []engine.Edge{engine.FromPort(0, 0)}},
			{Name: "side", Target: side, Inputs: []engine.Edge{engine.FromPort(0, 1)}},
			{Name: "dead", Target: target("dead")},
		},
	}
	if w.review != nil {
		g.Sources[0].Source = &reviewedSource{Source: g.Sources[0].Source.(*sim.Source), review: w.review}
	}
	if w.guest != nil {
		g.Stages[0].Program.(*sim.Program).NewGuest = w.guest
	}
	if w.in2 != nil {
		g.Sources = append(g.Sources, engine.SourceNode{
			Name: "other", Source: &sim.Source{Proc: p, In: w.in2, SplitSize: 3}, Limit: source.Limit{Records: w.batch},
		})
		g.Stages[0].Inputs = append(g.Stages[0].Inputs, engine.FromSource(1))
	}
	dead := 2
	if w.alone {
		g.Sinks = g.Sinks[:1]
		return g, engine.ErrorPolicy{Policy: w.policy}
	}
	if w.noSide {
		g.Sinks, dead = slices.Delete(g.Sinks, 1, 2), 1
	}
	return g, engine.ErrorPolicy{Policy: w.policy, Sink: dead, Max: w.max}
}

// run opens a process on the world and runs what is available; its error is the process's.
func (w *world) run(p *sim.Process) error {
	w.t.Helper()
	ctx := context.Background()
	files := w.disk.Process()
	defer files.Kill()
	log, err := checkpoint.Open(ctx, files, w.dir, checkpoint.Options{
		Job: "sim", Holder: "test", NewID: func() string { return "11111111-2222-3333-4444-555555555555" },
		Clock: func() int64 { return w.clock.Now().UnixMilli() },
	})
	if err != nil {
		return err
	}
	g, policy := w.graph(p)
	store, err := w.openState(ctx, files)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	var verify *engine.Verify
	if w.verify != nil {
		verify = w.verify(p)
	}
	e, err := engine.Open(ctx, engine.Config{
		Host: w.host, Verify: verify, Job: "sim", Graph: g, Revision: w.revision, Log: w.logOf(log), Clock: w.clock, Errors: policy, Workers: w.workers,
		NewAttempt: func() string { w.attempts++; return fmt.Sprintf("%08x", w.attempts) },
		Trigger:    engine.Trigger{AvailableNow: true}, Events: w.events, Spool: w.spool, MaxHeld: w.maxHeld, Retention: checkpoint.DefaultPolicy(), Revive: w.revive, Store: store,
	})
	if err != nil {
		return err
	}
	return e.Run(ctx, nil)
}

func (w *world) logOf(log engine.Log) engine.Log {
	log = spoolChanger{log, w.mutateSpool}
	if w.wrapLog != nil {
		return w.wrapLog(log)
	}
	return log
}

// spoolChanger changes what is spooled.
type spoolChanger struct {
	engine.Log
	change func([]checkpoint.Spooled)
}

func (s spoolChanger) PutSpool(ctx context.Context, id checkpoint.BatchID, attempt, digest string, parts []checkpoint.Spooled) error {
	if s.change != nil {
		s.change(parts)
	}
	return s.Log.PutSpool(ctx, id, attempt, digest, parts)
}

// mustRun runs a healthy process to the end.
func (w *world) mustRun() {
	w.t.Helper()
	if err := w.run(&sim.Process{}); err != nil {
		w.t.Fatal(err)
	}
}

// wantValues compares a sink's published values with want, in order.
func (w *world) wantValues(name string, want ...string) {
	w.t.Helper()
	got := w.stores[name].Values(name)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s holds %d values %q, want %d %q", name, len(got), got, len(want), want)
	}
}

// wantConsistent checks that each store took each batch once, in order of the ids.
func (w *world) wantConsistent() {
	w.t.Helper()
	for name, s := range w.stores {
		last := checkpoint.NoBatch
		for _, b := range s.Batches() {
			if b.Batch <= last {
				w.t.Errorf("%s took batch %d after %d", name, b.Batch, last)
			}
			last = b.Batch
		}
	}
}

func numbered(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%03d", prefix, i))
	}
	return out
}

func isCode(err error, code string) bool {
	var c interface{ Code() string }
	return errors.As(err, &c) && c.Code() == code
}

// reviewedSource tells what it is asked to review.
type reviewedSource struct {
	*sim.Source
	review func(source.Range)
}

func (s *reviewedSource) Review(_ context.Context, r source.Range) { s.review(r) }
