package engine

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// Records is what CheckTarget reads of a checkpoint. A Log and a Reader have it.
type Records interface {
	Decision(ctx context.Context, id checkpoint.BatchID) (*checkpoint.Decision, error)
	Resolution(ctx context.Context, id checkpoint.BatchID, target string) (*checkpoint.ResolutionRecord, error)
}

// CheckTarget holds what a target has published against the checkpoint, by the rule that a start goes by: the decision of
// the last planned batch, nil when it has none, and the decision before it. A target that may repeat is never wrong.
func CheckTarget(ctx context.Context, r Records, t sink.Target, p sink.Published, decision, before *checkpoint.Decision) error {
	if mayRepeat(t.Traits()) {
		return nil
	}
	id := t.ID()
	last := decision
	if last == nil {
		last = before
	}
	o, err := standingOf(ctx, r, last, id)
	if err != nil {
		return err
	}
	done := sameAs(id, p, o)
	if done == nil || decision == nil || o.Last != decision.Batch {
		return done
	}
	was, err := standingOf(ctx, r, before, id)
	if err != nil {
		return err
	}
	if sameAs(id, p, was) == nil {
		return nil // the start publishes it
	}
	return done
}

// standingOf is the last batch that a target must have published after a decision: the last that it was called for, less
// what a person said to skip.
func standingOf(ctx context.Context, r Records, d *checkpoint.Decision, target string) (checkpoint.TargetOutcome, error) {
	for {
		o := outcomeOf(d, target)
		if o.Last < 0 {
			return o, nil
		}
		res, err := r.Resolution(ctx, o.Last, target)
		if err != nil || !chose(res, checkpoint.Skip) {
			return o, err
		}
		if o.Last == 0 {
			return outcomeOf(nil, target), nil
		}
		if d, err = r.Decision(ctx, o.Last-1); err != nil {
			return o, err
		}
	}
}

// CheckTorn refuses a torn last record of the checkpoint that a target knows to be whole.
func CheckTorn(t sink.Target, p sink.Published, torn *checkpoint.TornError) error {
	if p.Batch < torn.Batch {
		return nil
	}
	return fault.New(CodeTornTailVisible, torn.File,
		fmt.Errorf("the record is torn, but target %s has published batch %d", t.ID(), p.Batch),
		"restore the file from a backup, or `wasmill checkpoint fork` from the batch before")
}
