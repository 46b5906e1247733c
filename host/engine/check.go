package engine

import (
	"context"
	"errors"
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
		return advise(done)
	}
	was, err := standingOf(ctx, r, before, id)
	if err != nil {
		return err
	}
	if sameAs(id, p, was) == nil {
		return nil // the start publishes it
	}
	return advise(done)
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

// waysOut are what a start accepts after a target and its checkpoint have come apart. A new directory alone is no way out:
// it is behind.
var waysOut = map[string]string{
	CodeTargetAhead:   "put the checkpoint back that belongs to this output; or " + beginAnew,
	CodeTargetBehind:  "put the output back where it was, or its path in the job file; or " + beginAnew,
	CodeTargetDiffers: "put the checkpoint and the output back that belong together; or " + beginAnew,
}

const beginAnew = "go on from here into new places: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file and a new directory for each sink"

// advise gives a difference between a target and its checkpoint its way out.
func advise(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && waysOut[f.ErrCode] != "" {
		f.WayOut = waysOut[f.ErrCode]
	}
	return err
}
