package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

// mutantSeeds is within how many seeds each seeded bug must show.
const mutantSeeds = 1000

// TestSimulationCatchesSeededBugs breaks one rule of the protocol at a time. A simulation that does not notice proves nothing.
func TestSimulationCatchesSeededBugs(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= mutantSeeds; seed++ {
				if err := newLife(seed, m).run(); err != nil {
					t.Logf("caught by seed %d: %.200v", seed, err)
					return
				}
			}
			t.Errorf("not caught within %d seeds", mutantSeeds)
		})
	}
}

func mutants() []mutant {
	return []mutant{
		{name: "no directory is synced", files: func(f durable.Files) durable.Files { return noDirSync{f} }},
		{name: "no file is synced", files: func(f durable.Files) durable.Files { return brokenSync{f, false} }},
		{name: "a failed sync is taken for done", files: func(f durable.Files) durable.Files { return brokenSync{f, true} }},
		{name: "records are renamed over each other", files: func(f durable.Files) durable.Files { return renameForLink{f} }},
		{name: "published before decided", target: func(p *sim.Process, t sink.Target) sink.Target { return publishEarly{t} }},
		{name: "published again without asking", target: func(_ *sim.Process, t sink.Target) sink.Target {
			t.(*sim.Target).Trait.Guarantee = sink.AtLeastOnce
			return t
		}},
		{name: "a lost stage is taken for published", target: func(_ *sim.Process, t sink.Target) sink.Target { return lossIgnored{t} }},
		{name: "what a target has published is not looked at", target: func(_ *sim.Process, t sink.Target) sink.Target { return blindOpen{t} }},
		{name: "swept too eagerly", target: func(_ *sim.Process, t sink.Target) sink.Target { return eagerSweep{t} }},
		{name: "decided in memory only", log: func(l engine.Log) engine.Log { return &lazyDecision{Log: l} }},
		{name: "a decision undone although it is published", log: func(l engine.Log) engine.Log { return &alwaysUndone{Log: l} }},
		{name: "a plan remade on recovery", log: func(l engine.Log) engine.Log { return &replan{Log: l} }},
		{name: "a short read goes unnoticed", source: func(s source.Source) source.Source { return &shortRead{Source: s} }},
		{name: "the output depends on the attempt", source: func(s source.Source) source.Source { return &unstable{Source: s} }},
	}
}

type noDirSync struct{ durable.Files }

func (noDirSync) SyncDir(string) error { return nil }

// brokenSync does not sync, or syncs and does not tell when that fails.
type brokenSync struct {
	durable.Files
	try bool
}

func (b brokenSync) Create(name string) (durable.File, error) {
	f, err := b.Files.Create(name)
	if err != nil {
		return nil, err
	}
	return brokenFile{f, b.try}, nil
}

type brokenFile struct {
	durable.File
	try bool
}

func (f brokenFile) Sync() error {
	if f.try {
		_ = f.File.Sync()
	}
	return nil
}

type renameForLink struct{ durable.Files }

func (r renameForLink) Link(oldname, newname string) error {
	if !strings.Contains(newname, "offsets/") && !strings.Contains(newname, "commits/") {
		return r.Files.Link(oldname, newname)
	}
	f, err := r.Files.Create(newname) // not atomic: the name is there before its content
	if err != nil {
		return err
	}
	from, err := r.Files.Open(oldname)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	buf := make([]byte, 1<<16)
	n, _ := from.Read(buf)
	_, err = f.Write(buf[:n])
	return errors.Join(err, f.Close(), from.Close())
}

// publishEarly makes the rows visible in Stage.
type publishEarly struct{ sink.Target }

func (p publishEarly) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	st, err := p.Target.Stage(ctx, out)
	if err != nil {
		return nil, err
	}
	return st, p.Target.Publish(ctx, &checkpoint.Decision{Batch: out.Batch, Digest: out.Digest}, st)
}

type lossIgnored struct{ sink.Target }

func (l lossIgnored) Publish(ctx context.Context, d *checkpoint.Decision, st sink.Staged) error {
	err := l.Target.Publish(ctx, d, st)
	if errors.Is(err, sink.ErrLost) {
		return nil
	}
	return err
}

func (l lossIgnored) Traits() sink.Traits { return sink.Traits{Guarantee: sink.ExactlyOnce} }

type blindOpen struct{ sink.Target }

func (b blindOpen) Open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	_, err := b.Target.Open(ctx, o)
	return sink.Published{Batch: o.Next - 1}, err
}

type eagerSweep struct{ sink.Target }

func (e eagerSweep) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	if _, err := e.Target.Stage(ctx, out); err != nil {
		return nil, err
	}
	out.Sinks = nil // as if a part had been swept as an orphan
	return e.Target.Stage(ctx, out)
}

// lazyDecision tells the engine that a decision is durable and writes it with the next plan.
type lazyDecision struct {
	engine.Log
	held *checkpoint.Decision
}

func (l *lazyDecision) WriteDecision(_ context.Context, d checkpoint.Decision) error {
	l.held = &d
	return nil
}

func (l *lazyDecision) WritePlan(ctx context.Context, p checkpoint.Plan) error {
	if l.held != nil {
		if err := l.Log.WriteDecision(ctx, *l.held); err != nil {
			return err
		}
		l.held = nil
	}
	return l.Log.WritePlan(ctx, p)
}

// alwaysUndone takes the last decision back at every start.
type alwaysUndone struct{ engine.Log }

func (l *alwaysUndone) Tail(ctx context.Context) (*checkpoint.Plan, *checkpoint.Decision, error) {
	p, d, err := l.Log.Tail(ctx)
	if err != nil || d == nil {
		return p, d, err
	}
	if err := l.Supersede(ctx, d.Batch, checkpoint.Undone); err != nil {
		return nil, nil, err
	}
	return l.Log.Tail(ctx)
}

// replan finds another plan for a decided batch than the one that was decided.
type replan struct{ engine.Log }

func (l *replan) Tail(ctx context.Context) (*checkpoint.Plan, *checkpoint.Decision, error) {
	p, d, err := l.Log.Tail(ctx)
	if err != nil || p == nil || d == nil {
		return p, d, err
	}
	changed := *p
	changed.TimeMS++
	changed.Sources = append([]checkpoint.SourcePosition(nil), p.Sources...)
	changed.Sources[0].End.Line = `{"offset":0}`
	return &changed, d, nil
}

type shortRead struct {
	source.Source
	reads int
}

func (s *shortRead) Read(ctx context.Context, sp source.Split, to source.Writer) error {
	s.reads++
	if s.reads%7 == 0 {
		return nil
	}
	return s.Source.Read(ctx, sp, to)
}

// unstable gives a record another value each time it is read.
type unstable struct {
	source.Source
	n int
}

func (u *unstable) Read(ctx context.Context, sp source.Split, to source.Writer) error {
	return u.Source.Read(ctx, sp, &unstableWriter{to, u})
}

type unstableWriter struct {
	source.Writer
	u *unstable
}

func (w *unstableWriter) Write(r *abi.Record) error {
	w.u.n++
	c := *r
	c.Offset += int64(w.u.n)
	if w.u.n%50 == 0 {
		c.Value = append([]byte(nil), append(c.Value, '!')...)
	}
	return w.Writer.Write(&c)
}
