package engine

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// expect checks that every target stands where the decision says; nil stands for before the first batch.
func (e *Engine) expect(ctx context.Context, pubs map[string]sink.Published, d *checkpoint.Decision) error {
	for _, t := range e.targets {
		if mayRepeat(t.Traits()) {
			continue
		}
		o, err := e.standing(ctx, d, t.ID())
		if err != nil {
			return err
		}
		if err := sameAs(t.ID(), pubs[t.ID()], o); err != nil {
			return err
		}
	}
	return nil
}

func outcomeOf(d *checkpoint.Decision, target string) checkpoint.TargetOutcome {
	if d != nil {
		if o, ok := d.Targets[target]; ok {
			return o
		}
	}
	return checkpoint.TargetOutcome{Last: checkpoint.NoBatch}
}

// standing is the last batch that a target must have published after a decision: the last that it was called for, less
// what a person said to skip.
func (e *Engine) standing(ctx context.Context, d *checkpoint.Decision, target string) (checkpoint.TargetOutcome, error) {
	for {
		o := outcomeOf(d, target)
		if o.Last < 0 {
			return o, nil
		}
		res, err := e.cfg.Log.Resolution(ctx, o.Last, target)
		if err != nil || !chose(res, checkpoint.Skip) {
			return o, err
		}
		if o.Last == 0 {
			return outcomeOf(nil, target), nil
		}
		if d, err = e.cfg.Log.Decision(ctx, o.Last-1); err != nil {
			return o, err
		}
	}
}

// sameAs compares what a target has published with what the checkpoint says it has.
func sameAs(id string, p sink.Published, o checkpoint.TargetOutcome) error {
	const forkHint = "look at both with `wasmill checkpoint show` and `verify`; continue from here with `wasmill checkpoint fork`"
	switch {
	case p.Batch > o.Last:
		return fault.New(CodeTargetAhead, "target "+id,
			fmt.Errorf("it has published batch %d, the checkpoint knows of %d: was an older copy of the checkpoint restored?", p.Batch, o.Last), forkHint)
	case p.Batch < o.Last:
		return fault.New(CodeTargetBehind, "target "+id,
			fmt.Errorf("it has published batch %d, the checkpoint says %d: was the output removed or an older copy restored?", p.Batch, o.Last), forkHint)
	case p.Digest != o.Digest:
		return fault.New(CodeTargetDiffers, "target "+id,
			fmt.Errorf("its batch %d has digest %s, the checkpoint says %s: do two checkpoints write to it?", p.Batch, p.Digest, o.Digest), forkHint)
	}
	return nil
}

// pending lists the targets that were called for the batch and have not published it. Every skip of published output is
// proven by an equal digest, or was chosen by a person.
func (e *Engine) pending(ctx context.Context, b *batch, pubs map[string]sink.Published) ([]sink.Target, error) {
	if err := e.checkGone(ctx, b.decision); err != nil {
		return nil, err
	}
	n := b.decision.Batch
	var pending []sink.Target
	for _, t := range e.inOrder(mayRepeat) {
		o, err := e.standing(ctx, b.decision, t.ID())
		if err != nil {
			return nil, err
		}
		if o.Last != n && outcomeOf(b.decision, t.ID()).Last == n {
			e.cfg.Events.recovered(Recovery{Batch: n, Target: t.ID(), Rung: "skipped", Detail: "by `checkpoint resolve --skip`"})
		}
		if mayRepeat(t.Traits()) {
			if mark, noted := e.marks[t.ID()]; o.Last == n && (!noted || mark.Batch < n) {
				pending = append(pending, t)
			}
			continue
		}
		p := pubs[t.ID()]
		done := sameAs(t.ID(), p, o)
		if done == nil {
			continue
		}
		before, err := e.standing(ctx, b.before, t.ID())
		if err != nil {
			return nil, err
		}
		if o.Last != n || sameAs(t.ID(), p, before) != nil {
			return nil, done
		}
		pending = append(pending, t)
	}
	return pending, nil
}

// checkGone stops for a target that is no longer in the job and is not known to have the decided batch.
func (e *Engine) checkGone(ctx context.Context, d *checkpoint.Decision) error {
	for id, o := range d.Targets {
		if o.Last != d.Batch || e.target(id) != nil {
			continue
		}
		if mark, noted := e.marks[id]; noted && mark.Batch == d.Batch && mark.Digest == d.Digest {
			continue
		}
		res, err := e.cfg.Log.Resolution(ctx, d.Batch, id)
		if err != nil {
			return err
		}
		if !chose(res, checkpoint.Skip) {
			return fault.New(CodeUnresolved, "target "+id,
				fmt.Errorf("batch %d is decided for it and not known to be published, but it is no longer in the job", d.Batch),
				fmt.Sprintf("put it back for one start, or `wasmill checkpoint resolve %d --sink %s --skip`", d.Batch, id))
		}
	}
	return nil
}
