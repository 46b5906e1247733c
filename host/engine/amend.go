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

// amend plans an undecided batch again, from where the batch before ended, over what is there now. The old plan is kept
// aside; the batch's time and watermark stay.
func (e *Engine) amend(ctx context.Context, b *batch, why error) error {
	e.cfg.Events.warning(fmt.Sprintf("amend the plan of batch %d: input is lost", b.plan.Batch), why)
	ends, _, err := e.ends(ctx, b.prev)
	if err != nil {
		return err
	}
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
