package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// maxAmended bounds how often the plan of one batch is amended: input that keeps vanishing is a fault of its own.
const maxAmended = 8

// maySkip reports whether an error is the loss of planned input of a source that may leave such input out.
func (e *Engine) maySkip(err error) bool {
	var read *readError
	var changed *source.ChangedError
	return errors.As(err, &read) && errors.As(err, &changed) && e.cfg.Graph.Sources[read.source].SkipLost
}

// amend plans an undecided batch again, from where the batch before ended, over what is there now. The
// batch's time and watermark stay.
func (e *Engine) amend(ctx context.Context, b *batch, why error) error {
	e.cfg.Events.warning(fmt.Sprintf("amend the plan of batch %d: input is lost", b.plan.Batch), why)
	ends, _, err := e.ends(ctx, b.prev)
	if err != nil {
		return err
	}
	return e.replan(ctx, b, ends)
}

// withoutGone amends the plan of an undecided batch that reads a source which is no longer in the job: the source stays
// where the batch before left it, so that it goes on there if it comes back.
func (e *Engine) withoutGone(ctx context.Context, b *batch) error {
	known := map[string]bool{}
	for i := range e.cfg.Graph.Sources {
		known[e.cfg.Graph.Sources[i].Name] = true
	}
	changed := false
	ends := make([]checkpoint.SourcePosition, 0, len(b.plan.Sources))
	for _, s := range b.plan.Sources {
		if before := b.prev.Position(s.Name); !known[s.Name] && s.End != before {
			s.End, changed = before, true
		}
		ends = append(ends, s)
	}
	if !changed {
		return nil
	}
	e.cfg.Events.recovered(Recovery{Batch: b.plan.Batch, Rung: "amended", Detail: "a source that it reads is no longer in the job"})
	return e.replan(ctx, b, ends)
}

// replan replaces the plan of an undecided batch by one with other ends. The old plan is kept aside.
func (e *Engine) replan(ctx context.Context, b *batch, ends []checkpoint.SourcePosition) error {
	if err := e.cfg.Log.Supersede(ctx, b.plan.Batch, checkpoint.Amended); err != nil {
		return err
	}
	p := *b.plan
	p.Sources = ends
	if err := e.cfg.Log.WritePlan(ctx, p); err != nil {
		return err
	}
	b.plan = &p
	return nil
}
