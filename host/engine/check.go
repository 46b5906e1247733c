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
// the last planned batch, nil when it has none, and the decision before it. A target that may repeat is never wrong, and one
// that did until now may know of less.
func CheckTarget(ctx context.Context, r Records, t sink.Target, p sink.Published, decision, before *checkpoint.Decision) error {
	if mayRepeat(t.Traits()) {
		return nil
	}
	last := decision
	if last == nil {
		last = before
	}
	if Raised(t, last) && p.Batch < outcomeOf(last, t.ID()).Last {
		return nil // the start tells it
	}
	differs, err := stands(ctx, r, t, p, last)
	if err != nil || differs == nil || decision == nil {
		return errors.Join(err, differs)
	}
	o, err := standingOf(ctx, r, decision, t.ID())
	if err != nil || o.Last != decision.Batch {
		return errors.Join(err, differs)
	}
	was, err := stands(ctx, r, t, p, before)
	if err != nil || was == nil {
		return err // the start publishes it
	}
	return differs
}

// CheckLook judges a look at a target: by CheckTarget and CheckNoted what it found to be published or, where it was refused, whether
// that comes from a target that has lost what is published. That is to be mended first, and may be all there is to mend.
func CheckLook(ctx context.Context, r Records, t sink.Target, p sink.Published, refused error, decision, before *checkpoint.Decision, marks map[string]checkpoint.PublishedMark) error {
	unfit, known := errors.AsType[*sink.UnfitError](refused)
	switch {
	case known:
		p = unfit.Published
	case refused != nil:
		return refused
	}
	err := CheckTarget(ctx, r, t, p, decision, before)
	if mark, noted := marks[t.ID()]; err == nil && noted {
		err = CheckNoted(ctx, r, t, p, decision, mark)
	}
	if !known {
		return err
	}
	lost, ok := errors.AsType[*fault.Error](err)
	if !ok || lost.ErrCode != CodeTargetBehind {
		return refused
	}
	lost.Err = fmt.Errorf("%w and %w", lost.Err, unfit.Err)
	if f, ok := errors.AsType[*fault.Error](unfit.Err); ok {
		lost.WayOut += "; after that, and not before: " + f.WayOut
	}
	return lost
}

// CheckNoted holds what a target has published against the note of it: one that is noted to have had the last decided batch
// and does not know of it is refused at the start.
func CheckNoted(ctx context.Context, r Records, t sink.Target, p sink.Published, decision *checkpoint.Decision, mark checkpoint.PublishedMark) error {
	if decision == nil || mayRepeat(t.Traits()) || Raised(t, decision) || !hadIt(t, decision, mark) {
		return nil
	}
	differs, err := stands(ctx, r, t, p, decision)
	return errors.Join(err, differs)
}

// stands says how a target differs from where a decision has it, or nil. Where a person chose to skip a batch, the target
// may stand before it, and at it too: it may have had it all along.
func stands(ctx context.Context, r Records, t sink.Target, p sink.Published, d *checkpoint.Decision) (differs, err error) {
	target := t.ID()
	if is(p, outcomeOf(d, target)) {
		return nil, nil
	}
	o, err := standingOf(ctx, r, d, target)
	if err != nil {
		return nil, err
	}
	if differs = sameAs(t, p, o); differs == nil || p.Batch < 0 {
		return differs, nil
	}
	res, err := r.Resolution(ctx, p.Batch, target)
	if err != nil || !chose(res, checkpoint.Skip) {
		return differs, err
	}
	skipped, err := r.Decision(ctx, p.Batch)
	if err != nil {
		return nil, err
	}
	if is(p, outcomeOf(skipped, target)) {
		return nil, nil
	}
	return differs, nil
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
