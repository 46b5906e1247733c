package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// batch is one micro-batch on its way.
type batch struct {
	plan     *checkpoint.Plan
	prev     *checkpoint.Plan // nil for batch 0
	before   *checkpoint.Decision
	attempt  string
	out      *outcome
	staged   map[string]sink.Staged
	decision *checkpoint.Decision
	replayed bool
	started  time.Time
	steps    map[Step]time.Duration
}

// Batch is the life of one batch. It returns false when there was nothing to plan. After an error the engine must be
// opened again: recovery finds out what became of the batch.
//
//	plan     offsets/N is durable before a record of N is processed
//	run      transforms, in memory; then the batch digest is known
//	stage    targets prepare, invisibly; from here the data cannot make publishing fail
//	decide   commits/N is durable before anything is visible
//	publish  targets make it visible, once
//	seal     only now may batch N+1 be planned
func (e *Engine) Batch(ctx context.Context) (bool, error) {
	b := e.newBatch()
	if err := e.do(ctx, b, StepPlan, e.planBatch); err != nil {
		if errors.Is(err, errNothing) {
			return false, nil
		}
		return false, err
	}
	return true, e.finish(ctx, b)
}

// finish takes a planned batch to its end.
func (e *Engine) finish(ctx context.Context, b *batch) error {
	for _, step := range []struct {
		name Step
		do   func(context.Context, *batch) error
	}{
		{StepRun, e.runBatch},
		{StepStage, e.stageBatch},
		{StepDecide, e.decideBatch},
		{StepPublish, e.publishBatch},
		{StepSeal, e.sealBatch},
	} {
		if err := e.do(ctx, b, step.name, step.do); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) newBatch() *batch {
	return &batch{
		attempt: e.cfg.NewAttempt(), started: e.cfg.Clock.Now(),
		staged: map[string]sink.Staged{}, steps: map[Step]time.Duration{},
	}
}

// do runs one step and tells the listener.
func (e *Engine) do(ctx context.Context, b *batch, s Step, f func(context.Context, *batch) error) error {
	id := checkpoint.BatchID(0)
	if e.plan != nil {
		id = e.plan.Batch + 1
	}
	if b.plan != nil {
		id = b.plan.Batch
	}
	start := e.cfg.Clock.Now()
	e.cfg.Events.step(id, s, false)
	if err := f(ctx, b); err != nil {
		if errors.Is(err, errNothing) {
			return err
		}
		return fmt.Errorf("batch %d: %s: %w", id, s, err)
	}
	b.steps[s] = e.cfg.Clock.Now().Sub(start)
	e.cfg.Events.step(id, s, true)
	return nil
}

// planBatch asks the sources how far they can go and writes that down.
func (e *Engine) planBatch(ctx context.Context, b *batch) error {
	p := &checkpoint.Plan{TimeMS: b.started.UnixMilli()}
	if e.plan != nil {
		p.Batch = e.plan.Batch + 1
		p.TimeMS = max(p.TimeMS, e.plan.TimeMS) // a clock set back must not make batch time run backwards
		p.WatermarkMS = e.plan.WatermarkMS
	}
	ends, news, err := e.ask(ctx)
	if err != nil {
		return err
	}
	if news {
		if news, err = e.gathered(ctx, ends); err != nil {
			return err
		}
	} else {
		e.waiting = time.Time{}
	}
	p.Sources, p.Reads = ends, e.reads()
	if e.last != nil {
		p.WatermarkMS = max(p.WatermarkMS, e.last.NextWatermarkMS, e.cfg.Graph.watermark(e.last.Sources, p, e.plan))
	}
	e.holdLate(p)
	if !news {
		if news, err = e.timersDue(p); err != nil {
			return err
		}
	}
	if !news {
		return errNothing
	}
	if err := e.cfg.Log.WritePlan(ctx, *p); err != nil {
		return err
	}
	e.waiting = time.Time{}
	b.plan, b.prev, b.before = p, e.plan, e.last
	return nil
}

// timersDue reports whether a batch without data is worth while: a timer is due under its watermark or at its time.
func (e *Engine) timersDue(p *checkpoint.Plan) (bool, error) {
	if e.cfg.Store == nil {
		return false, nil
	}
	due, err := e.cfg.Store.Due(p.TimeMS, e.cfg.Graph.watermarks(p.WatermarkMS))
	if err != nil {
		return false, fmt.Errorf("look for timers that are due: %w", err)
	}
	return due, nil
}

// ask asks the sources how far they can go, unless the job is to stop: nothing is planned yet, so nothing is to be finished.
func (e *Engine) ask(ctx context.Context) (ends []checkpoint.SourcePosition, news bool, err error) {
	if e.asking == nil {
		return e.ends(ctx, e.plan)
	}
	ends, news, err = e.ends(e.asking, e.plan)
	if err != nil && e.asking.Err() != nil && ctx.Err() == nil {
		err = errStopped
	}
	return ends, news, err
}

// ends asks each source how far a batch after prev can read.
func (e *Engine) ends(ctx context.Context, prev *checkpoint.Plan) (ends []checkpoint.SourcePosition, news bool, err error) {
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		from := prev.Position(s.Name)
		end, err := s.Source.Latest(ctx, from, e.pace.limit(s.Limit))
		if err != nil {
			return nil, false, fmt.Errorf("source %s: %w", s.Name, err)
		}
		news = news || end != from
		ends = append(ends, checkpoint.SourcePosition{Name: s.Name, End: end})
	}
	return ends, news, nil
}

// runBatch drives the planned records through the transforms; rows are made and misfits set aside here. Input that is gone
// since it was planned stops the batch, or is left out by an amended plan where the job says so; a batch that comes to more
// than memory should hold is planned anew, smaller. Where a share of batches
// is verified, it is here: an outcome that another engine does not confirm is never staged, let alone decided.
func (e *Engine) runBatch(ctx context.Context, b *batch) error {
	spare := true
	for amended := 0; ; amended++ {
		out, err := e.runner.run(ctx, input{
			query: e.cfg.Log.QueryID(), revision: e.cfg.Revision, plan: b.plan, prev: b.prev, begin: e.beginState(), most: e.cfg.MaxHeld,
			spare: spare,
		})
		switch {
		case err == nil:
			b.out = out
			return e.verify(ctx, b)
		case errors.Is(err, errTooMuch):
			err = e.shrink(ctx, b, amended, fmt.Sprintf("it held more than %d MiB", e.cfg.MaxHeld>>20))
		case errors.Is(err, errLaneFull):
			// Where no smaller one can be planned, the records at which the output is over the limit are set aside after all.
			err = e.shrink(ctx, b, amended, "the output of a lane was over `limits.output`")
			if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeTooMuch {
				spare, err = false, nil
			}
		case amended < maxAmended && e.maySkip(err):
			err = e.amend(ctx, b, err)
		}
		if err != nil {
			return err
		}
	}
}

// stageBatch hands the rows to the targets, what survives a crash first, and spools what will not. A target without
// records is not called. The changes of the state are written down beside it. Rows that a target refuses are set aside, as
// the job's error policy says: the batch is planned and run once more without them.
func (e *Engine) stageBatch(ctx context.Context, b *batch) error {
	for tries := 0; ; tries++ {
		written := e.writeState(ctx, b)
		err := e.stageOutput(ctx, b)
		err = cmp.Or(err, <-written)
		var refused *sink.Refused
		if !errors.As(err, &refused) {
			return err
		}
		if err := e.without(ctx, b, refused, err, tries); err != nil {
			return err
		}
	}
}

func (e *Engine) stageOutput(ctx context.Context, b *batch) error {
	spooled := len(b.out.spool) == 0
	for _, t := range e.inOrder(volatileTarget) {
		out, ok := e.outputFor(t, b.out, b.plan, b.attempt)
		if !ok {
			continue
		}
		if !spooled && t.Traits().Volatile {
			if err := e.cfg.Log.PutSpool(ctx, b.plan.Batch, b.attempt, b.out.digest, b.out.spool); err != nil {
				return err
			}
			spooled = true
		}
		staged, err := t.Stage(ctx, out)
		if err != nil {
			return fmt.Errorf("target %s: %w", t.ID(), err)
		}
		b.staged[t.ID()] = staged
	}
	return nil
}

// decideBatch settles the outcome: from here on the batch will be published, whatever happens.
func (e *Engine) decideBatch(ctx context.Context, b *batch) error {
	d := &checkpoint.Decision{
		Batch: b.plan.Batch, State: b.out.state.Digest, StateLast: stateLast(b), TimersLeft: b.out.left, Digest: b.out.digest, Revision: e.cfg.Revision,
		Semantics: Semantics, Inputs: b.out.inputs, Outputs: b.out.outputs, Attempt: b.attempt,
		Targets: map[string]checkpoint.TargetOutcome{}, Sources: map[string]checkpoint.SourceOutcome{}, Host: e.cfg.Host,
	}
	if err := e.carry(ctx, b.before, d); err != nil {
		return err
	}
	for id, staged := range b.staged {
		d.Targets[id] = checkpoint.TargetOutcome{
			Staged: staged, Last: d.Batch, Digest: d.Digest, Sinks: e.sinksFor(id, b.out), Guarantee: d.Targets[id].Guarantee,
		}
	}
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		var before checkpoint.SourceOutcome
		if b.before != nil {
			before = b.before.Sources[s.Name]
		}
		d.Sources[s.Name] = s.after(before, b.plan, b.prev, b.out.inputs[s.Name].Records, b.out.newest[s.Name])
	}
	d.NextWatermarkMS = max(b.plan.WatermarkMS, e.cfg.Graph.watermark(d.Sources, b.plan, b.prev))
	if err := e.cfg.Log.WriteDecision(ctx, *d); err != nil {
		return err
	}
	b.decision = d
	return nil
}

// carry takes over where the targets stand, also those that are no longer in the job: they may come back.
func (e *Engine) carry(ctx context.Context, before, d *checkpoint.Decision) error {
	ids := map[string]bool{}
	for _, t := range e.targets {
		ids[t.ID()] = true
	}
	if before != nil {
		for id := range before.Targets {
			ids[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		o := outcomeOf(before, id)
		if p, open := e.pubs[id]; !open || !is(p, o) {
			var err error
			if o, err = e.standing(ctx, before, id); err != nil {
				return err
			}
		}
		o.Guarantee = outcomeOf(before, id).Guarantee
		if t := e.target(id); t != nil {
			o.Guarantee = chosenGuarantee(t.Traits())
		}
		d.Targets[id] = checkpoint.TargetOutcome{Last: o.Last, Digest: o.Digest, Guarantee: o.Guarantee}
	}
	return nil
}

// publishBatch makes the batch visible, what may come twice last.
func (e *Engine) publishBatch(ctx context.Context, b *batch) error {
	repeats := false
	for _, t := range e.inOrder(mayRepeat) {
		o := b.decision.Targets[t.ID()]
		if o.Last != b.decision.Batch {
			continue
		}
		if err := e.publishTo(ctx, t, b.decision, b.staged[t.ID()]); err != nil {
			return err
		}
		repeats = repeats || mayRepeat(t.Traits())
	}
	if repeats || e.cfg.Clock.Now().Sub(e.noted) >= noteEvery {
		e.note(ctx)
	}
	return nil
}

func (e *Engine) publishTo(ctx context.Context, t sink.Target, d *checkpoint.Decision, staged sink.Staged) error {
	if err := t.Publish(ctx, d, staged); err != nil {
		return notPublished(t.ID(), err)
	}
	e.marks[t.ID()] = checkpoint.PublishedMark{Batch: d.Batch, Digest: d.Digest}
	return nil
}

// noteEvery is how often it is noted what is published, where that only serves people and checks. Only for what may come
// twice the note says whether it has come.
const noteEvery = time.Second

// note writes down what is published: a check for people and for recovery, not the truth.
func (e *Engine) note(ctx context.Context) {
	e.noted = e.cfg.Clock.Now()
	e.cfg.Events.warning("note what is published", e.cfg.Log.NotePublished(ctx, e.marks))
}

// sealBatch closes the batch: every target has it, so the next may be planned and what it needed may go.
func (e *Engine) sealBatch(ctx context.Context, b *batch) error {
	if err := e.sealState(ctx, b); err != nil {
		return err
	}
	e.before, e.plan, e.last = b.prev, b.plan, b.decision
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		e.cfg.Events.warning("release source "+s.Name, s.Source.Release(ctx, b.plan.Position(s.Name)))
	}
	for _, t := range e.targets {
		e.cfg.Events.warning("tidy target "+t.ID(), t.Sealed(ctx, b.plan.Batch))
	}
	e.cfg.Events.warning("remove what was spooled", e.cfg.Log.DropSpool(ctx, b.plan.Batch))
	e.cfg.Events.warning("apply retention", e.cfg.Log.Retain(ctx, e.unneeded(b.plan.Batch), e.cfg.Retention))
	if e.cfg.Store != nil {
		e.cfg.Events.warning("apply retention to the state", e.cfg.Store.Retain(ctx, int64(e.cfg.Log.Oldest())))
	}
	st := e.stats(b)
	e.pace.ran(st.largest(), st.Total)
	e.cfg.Events.batch(st)
	return nil
}

func (e *Engine) stats(b *batch) BatchStats {
	st := BatchStats{
		Batch: b.plan.Batch, TimeMS: b.plan.TimeMS, Replayed: b.replayed, Digest: b.decision.Digest,
		Steps: b.steps, Total: e.cfg.Clock.Now().Sub(b.started), WatermarkMS: b.plan.WatermarkMS,
	}
	if b.out != nil {
		rs := b.out.stats
		st.Stages = b.out.stages
		st.Skipped, st.Letters, st.Poison, st.Restarts = rs.skipped, rs.letters, rs.poison, rs.restarts
	}
	for i := range e.cfg.Graph.Sources {
		name := e.cfg.Graph.Sources[i].Name
		s := SourceStats{
			Name: name, Start: b.prev.Position(name), End: b.plan.Position(name), Records: b.decision.Inputs[name].Records,
			WatermarkMS: b.decision.Sources[name].WatermarkMS, Idle: b.decision.Sources[name].Idle,
		}
		if b.out != nil {
			for _, ms := range b.out.newest[name] {
				s.NewestMS = max(s.NewestMS, ms)
			}
		}
		st.Sources = append(st.Sources, s)
	}
	for i := range e.cfg.Graph.Sinks {
		name := e.cfg.Graph.Sinks[i].Name
		st.Sinks = append(st.Sinks, SinkStats{Name: name, Records: b.decision.Outputs[name].Records})
	}
	return st
}
