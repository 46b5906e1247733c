// Package engine is the batch protocol: it plans a micro-batch, runs it through the transforms, and publishes it exactly
// once. batch.go is the life of a batch, top to bottom; recover.go is the same life found half-way.
//
// The engine sees sources, programs, targets, the checkpoint and a clock through their seams, and nothing else: no driver,
// no wall clock, no order of goroutines shows in what it does, so a simulator drives the same code. It must not open
// files, read the time by itself or know what a table or a topic is.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/statestore"
)

// Clock is the engine's only source of time.
type Clock interface {
	Now() time.Time
	// Wait returns after d, or when ctx ends with its error.
	Wait(ctx context.Context, d time.Duration) error
}

// Log is the checkpoint as the engine sees it: the pair of write-once logs, and what a replay needs beside them.
type Log interface {
	QueryID() string
	// Tail returns the last plan and, if there is one, the decision of that batch, verified and made durable again.
	Tail(ctx context.Context) (*checkpoint.Plan, *checkpoint.Decision, error)
	Plan(ctx context.Context, id checkpoint.BatchID) (*checkpoint.Plan, error)
	Decision(ctx context.Context, id checkpoint.BatchID) (*checkpoint.Decision, error)
	WritePlan(ctx context.Context, p checkpoint.Plan) error
	WriteDecision(ctx context.Context, d checkpoint.Decision) error
	Supersede(ctx context.Context, id checkpoint.BatchID, why checkpoint.Reason) error
	// Resolution is what a person decided about a batch's output on a target, or nil.
	Resolution(ctx context.Context, id checkpoint.BatchID, target string) (*checkpoint.ResolutionRecord, error)
	// NotePublished notes, without waiting for the disk, what the targets have published.
	NotePublished(ctx context.Context, targets map[string]checkpoint.PublishedMark) error
	// Published returns that note, as far as there is one.
	Published(ctx context.Context) (map[string]checkpoint.PublishedMark, error)
	Retain(ctx context.Context, upTo checkpoint.BatchID, p checkpoint.Policy) error
	// Oldest is the oldest batch that is kept.
	Oldest() checkpoint.BatchID
	// PutSpool keeps what a batch puts out durably, for the attempt that is about to be decided. Spool returns it, nil when
	// nothing was kept. DropSpool gives up what was kept for batches up to one.
	PutSpool(ctx context.Context, id checkpoint.BatchID, attempt, digest string, parts []checkpoint.Spooled) error
	Spool(ctx context.Context, d *checkpoint.Decision) ([]checkpoint.Spooled, error)
	DropSpool(ctx context.Context, upTo checkpoint.BatchID) error
}

// Config is a job, ready to run.
type Config struct {
	Job      string
	Graph    *Graph
	Revision string // sha256 of the revision; already durable in the checkpoint
	Log      Log
	Store    *statestore.Store // nil when no stage has keys
	Clock    Clock
	// NewAttempt returns 8 hex digits that no earlier attempt had.
	NewAttempt func() string
	Errors     ErrorPolicy
	Trigger    Trigger
	Retention  checkpoint.Policy
	Spool      SpoolPolicy
	Workers    int // lanes that run at a time; 0 means one a processor
	// MaxHeld is how many bytes of records an undecided batch may hold in memory before it is planned anew, smaller; 0 means
	// DefaultMaxHeld.
	MaxHeld int64
	Events  *Events
	// Host is who runs the batches. It is noted in decisions, for people and for the errors of a replay, and changes nothing.
	Host checkpoint.Host
	// Revive brings an earlier revision back from what the checkpoint keeps, for a batch that was decided under it. May be
	// nil.
	Revive func(ctx context.Context, revision string) (*Revived, error)
	// Verify has a share of the batches run once more on another engine. May be nil.
	Verify *Verify
}

// Revived is an earlier revision, ready to run.
type Revived struct {
	Graph  *Graph // its sinks are the same targets
	Errors ErrorPolicy
	// Changes are how it differs from what was decided.
	Changes Changes
}

// Engine is a job that owns its targets and its checkpoint. It is not safe for concurrent use.
type Engine struct {
	cfg     Config
	runner  *runner
	other   *runner // that verifies; nil when nothing is verified
	targets []sink.Target
	pace    pace
	// asking ends when the job is to stop: sources are asked for what there is under it, as nothing is planned yet. nil: they
	// are asked under the batch's own context.
	asking context.Context
	plan   *checkpoint.Plan     // of the last batch, nil before the first
	before *checkpoint.Plan     // of the batch before that
	last   *checkpoint.Decision // of the last sealed batch, nil before the first
	marks  map[string]checkpoint.PublishedMark
	noted  time.Time // when marks were written down
	// waiting is since when there is something to plan that is not enough for a batch; zero when there is not.
	waiting time.Time
	view    *statestore.View          // of the state before a batch that runs again though it is part of it; nil when none does
	pubs    map[string]sink.Published // what the targets had published when they were opened
}

// Open takes the targets over and brings the last batch to its end, if it was left half-way. After an error the Engine is
// of no use; the caller closes targets and checkpoint and may open them again.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.Graph.check(); err != nil {
		return nil, err
	}
	cfg.MaxHeld = cmp.Or(cfg.MaxHeld, DefaultMaxHeld)
	r, err := newRunner(cfg.Graph, cfg.Errors, cfg.Workers, cfg.Spool.sinks(cfg.Graph))
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, runner: r, targets: cfg.Graph.targets(), pace: newPace(cfg.Trigger)}
	if e.other, err = cfg.Verify.runner(&cfg); err != nil {
		return nil, err
	}
	cfg.Events.opened(cfg.Log.QueryID())
	if err := e.recover(ctx); err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	return e, nil
}

// LastBatch is the last sealed batch, or checkpoint.NoBatch.
func (e *Engine) LastBatch() checkpoint.BatchID {
	if e.last == nil {
		return checkpoint.NoBatch
	}
	return e.last.Batch
}

// target returns the target with that id, or nil.
func (e *Engine) target(id string) sink.Target {
	for _, t := range e.targets {
		if t.ID() == id {
			return t
		}
	}
	return nil
}

// inOrder returns the targets for staging (durable first, volatile last) or publishing (what may come twice last).
func (e *Engine) inOrder(late func(sink.Traits) bool) []sink.Target {
	var first, last []sink.Target
	for _, t := range e.targets {
		if late(t.Traits()) {
			last = append(last, t)
		} else {
			first = append(first, t)
		}
	}
	return append(first, last...)
}

func volatileTarget(t sink.Traits) bool { return t.Volatile }

func mayRepeat(t sink.Traits) bool { return t.Guarantee != sink.ExactlyOnce }

// outputFor selects what an outcome holds for one target. ok is false when it holds nothing.
func (e *Engine) outputFor(t sink.Target, o *outcome, p *checkpoint.Plan, attempt string) (out sink.Output, ok bool) {
	out = sink.Output{Batch: p.Batch, TimeMS: p.TimeMS, Digest: o.digest, Attempt: attempt}
	for i := range e.cfg.Graph.Sinks {
		s := &e.cfg.Graph.Sinks[i]
		if s.Target.ID() != t.ID() {
			continue
		}
		lanes := o.of(s.Name)
		out.Sinks = append(out.Sinks, sink.SinkOutput{Name: s.Name, Lanes: lanes})
		ok = ok || len(lanes) > 0
	}
	return out, ok
}

// sinksFor names the sinks whose records an outcome holds for a target.
func (e *Engine) sinksFor(target string, o *outcome) []string {
	var names []string
	for i := range e.cfg.Graph.Sinks {
		if s := &e.cfg.Graph.Sinks[i]; s.Target.ID() == target && len(o.of(s.Name)) > 0 {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// errNothing says that there is nothing to plan, errStopped that the job is to stop before there is.
var (
	errNothing = errors.New("nothing new")
	errStopped = errors.New("stopped before anything was planned")
)
