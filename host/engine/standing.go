package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
		differs, err := stands(ctx, e.cfg.Log, t, pubs[t.ID()], d)
		if err != nil || differs != nil {
			return errors.Join(err, differs)
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

// standing is standingOf over the engine's own log.
func (e *Engine) standing(ctx context.Context, d *checkpoint.Decision, target string) (checkpoint.TargetOutcome, error) {
	return standingOf(ctx, e.cfg.Log, d, target)
}

// The ways out after a target and its checkpoint have come apart. A new directory alone is none: it is behind.
const (
	beginAnew   = "go on from here into new places: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file and a directory, table or topic of its own for each sink"
	wayOutAhead = "put the checkpoint back that belongs to this output; or " + beginAnew
	wayOutOther = "put the checkpoint and the output back that belong together; or " + beginAnew
)

// is reports whether a target has published what the checkpoint says it has.
func is(p sink.Published, o checkpoint.TargetOutcome) bool {
	return p.Batch == o.Last && p.Digest == o.Digest
}

// sameAs says how what a target has published differs from what the checkpoint says it has, or nil.
func sameAs(t sink.Target, p sink.Published, o checkpoint.TargetOutcome) error {
	id := t.ID()
	switch {
	case p.Batch > o.Last:
		return fault.New(CodeTargetAhead, "target "+id,
			fmt.Errorf("it has published %s, the checkpoint knows of %s: was an older copy of the checkpoint restored?", batchText(p.Batch), batchText(o.Last)), wayOutAhead)
	case p.Batch < o.Last:
		return behind(t, p, o)
	case p.Digest != o.Digest:
		return fault.New(CodeTargetDiffers, "target "+id,
			fmt.Errorf("its batch %d has digest %s, the checkpoint says %s: do two checkpoints write to it?", p.Batch, p.Digest, o.Digest), wayOutOther)
	}
	return nil
}

// behind is the fault of a target that knows of less than the checkpoint says it has published.
func behind(t sink.Target, p sink.Published, o checkpoint.TargetOutcome) error {
	if f, ok := t.(sink.Forgetful); ok {
		if err := f.Forgot(o.Last); err != nil {
			return err
		}
	}
	putBack := cmp.Or(t.Traits().PutBack, "put the output back where it was, or its path in the job file")
	return fault.New(CodeTargetBehind, "target "+t.ID(),
		fmt.Errorf("it has published %s, the checkpoint says %s: was the output removed or an older copy restored?", batchText(p.Batch), batchText(o.Last)),
		putBack+"; or "+beginAnew)
}

func batchText(id checkpoint.BatchID) string {
	if id < 0 {
		return "nothing"
	}
	return fmt.Sprintf("batch %d", id)
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
		differs, err := stands(ctx, e.cfg.Log, t, p, b.decision)
		if err != nil {
			return nil, err
		}
		if differs == nil {
			continue
		}
		before, err := stands(ctx, e.cfg.Log, t, p, b.before)
		if err != nil {
			return nil, err
		}
		if o.Last != n || before != nil || e.forgot(t, b.decision) {
			return nil, differs
		}
		pending = append(pending, t)
	}
	return pending, nil
}

// forgot tells that a target is noted to have had a batch of which it knows nothing.
func (e *Engine) forgot(t sink.Target, d *checkpoint.Decision) bool {
	mark, noted := e.marks[t.ID()]
	return noted && hadIt(t, d, mark)
}

// hadIt tells that a target is noted to have had a batch, where what it publishes and what says so can be lost one without the other, or its
// name can come to stand for another place: publishing again may be the second time.
func hadIt(t sink.Target, d *checkpoint.Decision, mark checkpoint.PublishedMark) bool {
	_, forgets := t.(sink.Forgetful)
	return (forgets || t.Traits().Volatile) && mark.Batch == d.Batch && mark.Digest == d.Digest
}

// checkMoved stops for a sink that the decided batch has records of for a target, and that is on another target by now, or
// not in the job: what is found again for the target would come without them.
func (e *Engine) checkMoved(b *batch, t sink.Target) error {
	n := b.decision.Batch
	for _, name := range b.decision.Targets[t.ID()].Sinks {
		i := slices.IndexFunc(e.cfg.Graph.Sinks, func(s SinkNode) bool { return s.Name == name })
		if i >= 0 && e.cfg.Graph.Sinks[i].Target.ID() == t.ID() {
			continue
		}
		where := "is no longer in the job"
		if i >= 0 {
			where = "publishes to " + e.cfg.Graph.Sinks[i].Target.ID() + " now"
		}
		return fault.New(CodeUnresolved, "target "+t.ID(),
			fmt.Errorf("batch %d is decided with records of sink %s for it and not published, and the sink %s", n, name, where),
			fmt.Sprintf("put the sink back for one start, or `wasmill checkpoint resolve %d --sink %s --skip` (leave out all that the batch has for %s)", n, t.ID(), t.ID()))
	}
	return nil
}

// checkGone stops for a target that is no longer in the job and is not known to have the decided batch.
func (e *Engine) checkGone(ctx context.Context, d *checkpoint.Decision) error {
	for _, id := range slices.Sorted(maps.Keys(d.Targets)) {
		o := d.Targets[id]
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
