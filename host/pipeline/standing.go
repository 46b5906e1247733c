package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sink"
)

// CheckTargets looks at a job's targets and says which of them the next start would refuse, beside the job's checkpoint as
// it stands. One that is away is a note: what it would say is not known, and a start waits for it. It needs Files, Clock and
// Stdout of env alone, takes nothing over and writes nothing.
func CheckTargets(ctx context.Context, j *job.Job, env Env) ([]checkpoint.Finding, error) {
	p := &Program{Job: j, env: env}
	_, found, err := p.standing(ctx)
	return found, err
}

// looks is how often the checkpoint may move while the targets are looked at.
const looks = 5

// standing reads the end of the checkpoint and holds the targets against it. A checkpoint that moves meanwhile is that of
// a running job, which has its targets: there is then nothing to be found.
func (p *Program) standing(ctx context.Context) (*tail, []checkpoint.Finding, error) {
	t, err := p.lookAtTail(ctx)
	if err != nil {
		return nil, nil, err
	}
	for range looks {
		found, err := p.inspect(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		if len(found) == 0 {
			return t, nil, nil
		}
		now, err := p.lookAtTail(ctx)
		if err != nil {
			return nil, nil, err
		}
		if now.stage() == t.stage() {
			return t, found, nil
		}
		t = now
	}
	return t, nil, nil
}

// stage names a standing of a checkpoint: it changes with every plan and decision.
func (t *tail) stage() string {
	if t.plan == nil {
		return t.query
	}
	return fmt.Sprintf("%s %d %t %t", t.query, t.plan.Batch, t.decision != nil, t.torn != nil)
}

// withColumns is the job with the columns that sinks without a schema had in the last decision. Before there is one nothing is
// published, and such sinks are left out.
func (p *Program) withColumns(ctx context.Context, t *tail) (*job.Job, error) {
	var canonical []byte
	if t.before != nil && t.before.Revision != "" {
		var err error
		if canonical, err = t.reader.Revision(ctx, t.before.Revision); err != nil && !missing(err) {
			return nil, err
		}
	}
	j, err := p.Job.WithColumns(canonical)
	if err != nil {
		return nil, fmt.Errorf("the columns of sinks without a schema: %w", err)
	}
	return j, nil
}

// inspect looks at every target that can be looked at.
func (p *Program) inspect(ctx context.Context, t *tail) ([]checkpoint.Finding, error) {
	j, err := p.withColumns(ctx, t)
	if err != nil {
		return nil, err
	}
	targets, err := p.targets(j)
	if err != nil {
		return nil, err
	}
	owner := sink.Owner{Query: t.query, Job: p.Job.Name}
	before := t.before
	if t.plan != nil {
		owner.Next = t.plan.Batch
	}
	if t.decision != nil && t.decision.Batch == 0 {
		before = nil
	}
	if t.decision != nil && t.decision.Batch > 0 {
		if before, err = t.reader.Decision(ctx, t.decision.Batch-1); err != nil {
			return nil, err
		}
	}
	var origins []checkpoint.Origin
	if t.plan != nil {
		if origins, err = engine.OriginsOf(ctx, t.reader); err != nil {
			return nil, err
		}
	}
	var found []checkpoint.Finding
	all := distinct(targets)
	for i, one := range all {
		target, ok := one.(interface {
			sink.Target
			sink.Inspector
		})
		if !ok {
			continue
		}
		published, err := target.Inspect(ctx, owner)
		if err == nil && t.torn != nil {
			err = engine.CheckTorn(target, published, t.torn)
		}
		err = engine.CheckLook(ctx, t.reader, target, published, err, t.decision, before, t.marks)
		if err == nil {
			err = engine.CheckOrigin(ctx, origins, target, published)
		}
		if err == nil {
			err = engine.CheckNeighbours(target, all[:i])
		}
		f, ok := errors.AsType[*fault.Error](err)
		switch {
		case ok:
			found = append(found, checkpoint.Finding{Code: f.ErrCode, File: f.Place, Message: f.Err.Error(), WayOut: f.WayOut, Note: f.Passes})
		case err != nil:
			return nil, fmt.Errorf("look at target %s: %w", target.ID(), err)
		}
	}
	return found, nil
}
