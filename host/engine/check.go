package engine

import (
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// CheckTarget holds what a target has published against the checkpoint, by the rule that a start goes by: the decision of
// the last planned batch, nil when it has none, and the decision before it. A target that may repeat is never wrong.
func CheckTarget(t sink.Target, p sink.Published, decision, before *checkpoint.Decision) error {
	if mayRepeat(t.Traits()) {
		return nil
	}
	id := t.ID()
	if decision == nil {
		return advise(sameAs(id, p, outcomeOf(before, id)))
	}
	o := outcomeOf(decision, id)
	done := sameAs(id, p, o)
	if done != nil && o.Last == decision.Batch && sameAs(id, p, outcomeOf(before, id)) == nil {
		return nil // the start publishes it
	}
	return advise(done)
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
