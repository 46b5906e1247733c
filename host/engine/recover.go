package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// recover is the only way into a running engine, at every start and after every error between plan and seal: it finds out
// how far the last batch came and takes it to its end.
//
//	no plan N                nothing happened
//	plan N, no decision      drop what was staged, run N again from the same plan
//	plan N and decision N    each target that has not published N gets it, by the rungs of ladder
func (e *Engine) recover(ctx context.Context) error {
	var err error
	if e.marks, err = e.cfg.Log.Published(ctx); err != nil {
		return err
	}
	if e.marks == nil {
		e.marks = map[string]checkpoint.PublishedMark{}
	}
	plan, dec, err := e.cfg.Log.Tail(ctx)
	if torn := (*checkpoint.TornError)(nil); errors.As(err, &torn) {
		plan, dec, err = e.dropTorn(ctx, torn)
	}
	if err != nil {
		return err
	}
	if plan == nil {
		if len(e.targets) > 1 { // what one makes is left behind when another is refused
			if err := e.lookFirst(ctx, 0, nil, nil); err != nil {
				return err
			}
		}
		pubs, err := e.openTargets(ctx, 0)
		if err != nil {
			return err
		}
		return errors.Join(e.expect(ctx, pubs, nil), e.restoreState(ctx, nil, nil))
	}
	b, err := e.found(ctx, plan)
	if err != nil {
		return err
	}
	if err := e.lookFirst(ctx, plan.Batch, dec, b.before); err != nil {
		return err
	}
	pubs, err := e.openTargets(ctx, plan.Batch)
	if err != nil {
		return err
	}
	if err := e.checkOrigin(ctx, pubs); err != nil {
		return err
	}
	if err := e.raise(ctx, pubs, dec, b.before); err != nil {
		return err
	}
	if err := e.restoreState(ctx, b.before, dec); err != nil {
		return err
	}
	if dec == nil {
		if err := e.expect(ctx, pubs, b.before); err != nil {
			return err
		}
		return e.runAgain(ctx, b, "planned, not decided")
	}
	b.decision = dec
	return e.settle(ctx, b, pubs)
}

// dropTorn sets a torn last record aside: it never happened, provided that no target, asked after fencing, knows of it.
func (e *Engine) dropTorn(ctx context.Context, torn *checkpoint.TornError) (*checkpoint.Plan, *checkpoint.Decision, error) {
	pubs, err := e.openTargets(ctx, torn.Batch)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range e.targets {
		if err := CheckTorn(t, pubs[t.ID()], torn); err != nil {
			return nil, nil, err
		}
	}
	if err := e.cfg.Log.Supersede(ctx, torn.Batch, checkpoint.Torn); err != nil {
		return nil, nil, err
	}
	e.cfg.Events.recovered(Recovery{Batch: torn.Batch, Rung: "none", Detail: "set a torn record aside: " + torn.File})
	return e.cfg.Log.Tail(ctx)
}

// found makes a batch of a plan from the log, with what came before it.
func (e *Engine) found(ctx context.Context, plan *checkpoint.Plan) (*batch, error) {
	b := e.newBatch()
	b.plan, b.replayed = plan, true
	if plan.Batch == 0 {
		return b, nil
	}
	var err error
	if b.prev, err = e.cfg.Log.Plan(ctx, plan.Batch-1); err != nil {
		return nil, err
	}
	if b.before, err = e.cfg.Log.Decision(ctx, plan.Batch-1); err != nil {
		return nil, err
	}
	e.plan, e.last = b.prev, b.before
	return b, nil
}

// lookFirst refuses what would be refused anyway before a target is taken over: opening one makes its directory or its
// database, which would stand in the way of putting the right one back, or of the next start after a mistake. One that is away is
// waited for when it is opened. Of several that are refused the first in the job file is told of. next is the batch that comes, dec
// its decision, before the one before.
func (e *Engine) lookFirst(ctx context.Context, next checkpoint.BatchID, dec, before *checkpoint.Decision) error {
	pubs := map[string]sink.Published{}
	var refused []error
	for i, t := range e.targets {
		look, ok := t.(sink.Inspector)
		if !ok {
			continue
		}
		p, err := look.Inspect(ctx, sink.Owner{Query: e.cfg.Log.QueryID(), Job: e.cfg.Job, Next: next})
		if fault.IsPassing(err) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("open target %s: %w", t.ID(), err)
		}
		err = CheckLook(ctx, e.cfg.Log, t, p, err, dec, before, e.marks)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if clash := CheckNeighbours(t, e.targets[:i]); err == nil && clash != nil {
			err = fmt.Errorf("open target %s: %w", t.ID(), clash)
		}
		if err != nil {
			refused = append(refused, err)
			continue
		}
		pubs[t.ID()] = p
	}
	switch len(refused) {
	case 0:
		return e.checkOrigin(ctx, pubs)
	case 1:
		return refused[0]
	}
	return fmt.Errorf("%w (the start is refused for %d targets: `wasmill plan` names them all)", refused[0], len(refused))
}

func (e *Engine) openTargets(ctx context.Context, next checkpoint.BatchID) (map[string]sink.Published, error) {
	pubs := map[string]sink.Published{}
	for _, t := range e.targets {
		p, err := t.Open(ctx, sink.Owner{Query: e.cfg.Log.QueryID(), Job: e.cfg.Job, Next: next})
		if err != nil {
			return nil, fmt.Errorf("open target %s: %w", t.ID(), err)
		}
		pubs[t.ID()] = p
	}
	e.pubs = pubs
	return pubs, nil
}

// runAgain takes a planned batch from the start. A newer revision may run it, so that a fix can be deployed.
func (e *Engine) runAgain(ctx context.Context, b *batch, why string) error {
	for _, t := range e.targets {
		e.cfg.Events.warning("drop what target "+t.ID()+" staged", t.Abort(ctx, b.plan.Batch))
	}
	e.cfg.Events.warning("remove what was spooled", e.cfg.Log.DropSpool(ctx, b.plan.Batch))
	e.cfg.Events.recovered(Recovery{Batch: b.plan.Batch, Rung: "rerun", Detail: why})
	if err := e.renewed(ctx, b); err != nil { // first: a plan that is written has the marks of all settings as they are
		return err
	}
	if err := e.withoutGone(ctx, b); err != nil {
		return err
	}
	return e.finish(ctx, b)
}

// settle brings a decided batch to every target that does not have it yet.
func (e *Engine) settle(ctx context.Context, b *batch, pubs map[string]sink.Published) error {
	pending, err := e.pending(ctx, b, pubs)
	if err != nil {
		return err
	}
	if len(pending) == 0 {
		if err := e.sealState(ctx, b); err != nil {
			return err
		}
		e.before, e.plan, e.last = b.prev, b.plan, b.decision
		e.cfg.Events.warning("remove what was spooled", e.cfg.Log.DropSpool(ctx, b.plan.Batch))
		e.cfg.Events.recovered(Recovery{Batch: b.plan.Batch, Rung: "done", Detail: "published everywhere"})
		return nil
	}
	undecided, err := e.ladder(ctx, b, pending)
	if err != nil {
		return err
	}
	if undecided {
		b.decision = nil
		return e.runAgain(ctx, b, "un-decided")
	}
	e.note(ctx)
	return e.do(ctx, b, StepSeal, e.sealBatch)
}

// ladder publishes a decided batch on the pending targets:
//
//	(a) what is staged
//	(b) what a spool kept
//	(c) the batch run again, if all digests are equal
//	(d) un-decide, if nobody can have seen it
//	(e) stop, and let a person choose
//
// Where something is lost, (b) and (c) are tried before (a) publishes the rest: until the first target has the batch it can
// still be taken back as a whole. undecided tells that (d) was taken and the batch must run again.
func (e *Engine) ladder(ctx context.Context, b *batch, pending []sink.Target) (undecided bool, err error) {
	var staged, lost []sink.Target
	for _, t := range pending {
		if t.Traits().Volatile {
			lost = append(lost, t)
		} else {
			staged = append(staged, t)
		}
	}
	seen := len(pending) < e.called(b) || e.anyMayRepeat(b)
	r := &rescue{e: e, b: b}
	for {
		stuck, err := r.find(ctx, lost)
		if err != nil {
			return false, err
		}
		if len(stuck) > 0 {
			return e.stuck(ctx, r, stuck, seen)
		}
		if len(staged) == 0 {
			return false, r.publish(ctx, lost)
		}
		gone, err := e.publishStaged(ctx, b, staged)
		if err != nil {
			return false, err
		}
		seen = seen || len(gone) < len(staged)
		staged, lost = nil, append(gone, lost...) // what may come twice stays last
	}
}

// stuck takes rung (d) or (e).
func (e *Engine) stuck(ctx context.Context, r *rescue, lost []sink.Target, seen bool) (undecided bool, err error) {
	n := r.b.plan.Batch
	if seen {
		return false, unresolved(n, lost, r.why, r.out != nil)
	}
	if r.out != nil {
		(&batch{out: r.out}).close()
	}
	if err := e.cfg.Log.Supersede(ctx, n, checkpoint.Undone); err != nil {
		return false, err
	}
	e.cfg.Events.recovered(Recovery{Batch: n, Rung: "undecided", Detail: r.why.Error()})
	return true, nil
}

// publishStaged is rung (a). It returns the targets whose staged output is gone.
func (e *Engine) publishStaged(ctx context.Context, b *batch, staged []sink.Target) (lost []sink.Target, err error) {
	for _, t := range staged {
		err = e.publishTo(ctx, t, b.decision, b.decision.Targets[t.ID()].Staged)
		if errors.Is(err, sink.ErrLost) {
			lost = append(lost, t)
			continue
		}
		if err != nil {
			return nil, err
		}
		e.cfg.Events.recovered(Recovery{Batch: b.decision.Batch, Target: t.ID(), Rung: "published", Detail: "what was staged"})
	}
	return lost, nil
}

// rerun is the first half of rung (c): the batch once more, under the revision that decided it, compared digest by digest.
// The outcome is returned also when it differs, for a forced resolution.
func (e *Engine) rerun(ctx context.Context, b *batch) (*outcome, error) {
	d := b.decision
	if d.Semantics != Semantics {
		return nil, fault.New(CodeNewerSemantics, fmt.Sprintf("batch %d", d.Batch),
			fmt.Errorf("it was decided under semantics %d, by %s; this program has %d", d.Semantics, HostText(d.Host), Semantics),
			"finish the batch with the version that decided it")
	}
	r, changes := e.runner, Changes{}
	if d.Revision != e.cfg.Revision {
		if e.cfg.Revive == nil {
			return nil, fmt.Errorf("batch %d was decided under revision %.12s, this is %.12s", d.Batch, d.Revision, e.cfg.Revision)
		}
		was, err := e.cfg.Revive(ctx, d.Revision)
		if err != nil {
			return nil, fmt.Errorf("bring back revision %.12s: %w", d.Revision, err)
		}
		changes = was.Changes
		if r, err = newRunner(was.Graph, was.Errors, e.cfg.Workers, nil); err != nil {
			return nil, err
		}
	}
	past := Past{Query: e.cfg.Log.QueryID(), Plan: b.plan, Prev: b.prev, Decision: d, Begin: e.stateBefore(d.Batch)}
	o, err := r.run(ctx, past.input(d.Revision))
	if err != nil {
		return nil, fmt.Errorf("run batch %d again: %w", d.Batch, err)
	}
	return o, Compare(&past, o.replayed(), e.cfg.Host, changes)
}

// forced reports whether a person said to publish the re-run on every lost target although it differs.
func (e *Engine) forced(ctx context.Context, b *batch, lost []sink.Target) (bool, error) {
	for _, t := range lost {
		res, err := e.cfg.Log.Resolution(ctx, b.plan.Batch, t.ID())
		if err != nil || !chose(res, checkpoint.Force) {
			return false, err
		}
	}
	return true, nil
}

// chose reports whether a person made that choice.
func chose(r *checkpoint.ResolutionRecord, a checkpoint.Action) bool {
	return r != nil && r.Action == a
}

// called counts the targets that the decision holds output for.
func (e *Engine) called(b *batch) int {
	n := 0
	for _, o := range b.decision.Targets {
		if o.Last == b.decision.Batch {
			n++
		}
	}
	return n
}

func (e *Engine) anyMayRepeat(b *batch) bool {
	for _, t := range e.targets {
		if (mayRepeat(t.Traits()) || Raised(t, b.decision)) && outcomeOf(b.decision, t.ID()).Last == b.decision.Batch {
			return true
		}
	}
	return false
}

func unresolved(n checkpoint.BatchID, lost []sink.Target, why error, ran bool) error {
	id := lost[0].ID()
	choice := fmt.Sprintf("`wasmill checkpoint resolve %d --sink %s --skip` (leave its output out)", n, id)
	if ran {
		choice += " or `--force` (publish what comes now)"
	}
	return fault.New(CodeUnresolved, "target "+id,
		fmt.Errorf("batch %d is decided, its staged output is lost, and running it again does not give the same: %w", n, why),
		"start once with the module and input that decided it, or choose: "+choice)
}
