package engine

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// A target whose job asked for no more than at least once knows of nothing that it has published. When the job asks for exactly
// once, it is told, by a batch without records that carries the number and the digest of the last one: what a person has
// agreed to, as nothing but the checkpoint says that the target has it.

// Raised reports whether a target that promises exactly once was to promise less when a decision was made; the last one counts.
func Raised(t sink.Target, last *checkpoint.Decision) bool {
	return t.Traits().Chosen && !mayRepeat(t.Traits()) && outcomeOf(last, t.ID()).Guarantee == string(sink.AtLeastOnce)
}

// chosenGuarantee is what a decision notes of a target's guarantee.
func chosenGuarantee(t sink.Traits) string {
	if !t.Chosen {
		return ""
	}
	return string(t.Guarantee)
}

// raise tells the targets that are raised what they have published. A batch that is decided and not noted to be published may
// be there or not: the target stands before it, so that it is published, maybe for the second time, as it was promised when
// it was decided. A target that knows of more than the checkpoint is left as it is, and refused later.
func (e *Engine) raise(ctx context.Context, pubs map[string]sink.Published, dec, before *checkpoint.Decision) error {
	last := dec
	if last == nil {
		last = before
	}
	for _, t := range e.targets {
		if !Raised(t, last) {
			continue
		}
		o, err := e.standing(ctx, last, t.ID())
		if err != nil {
			return err
		}
		if dec != nil && o.Last == dec.Batch && e.marks[t.ID()] != (checkpoint.PublishedMark{Batch: o.Last, Digest: o.Digest}) {
			if o, err = e.standing(ctx, before, t.ID()); err != nil {
				return err
			}
		}
		if pubs[t.ID()].Batch >= o.Last {
			continue
		}
		if err := e.tell(ctx, t, o); err != nil {
			return fmt.Errorf("target %s: take up what is published: %w", t.ID(), err)
		}
		pubs[t.ID()] = sink.Published{Batch: o.Last, Digest: o.Digest}
		e.cfg.Events.recovered(Recovery{Batch: o.Last, Target: t.ID(), Rung: "raised", Detail: "at-least-once became exactly-once: the checkpoint's word is taken for what is published"})
	}
	return nil
}

// tell publishes a batch without records.
func (e *Engine) tell(ctx context.Context, t sink.Target, o checkpoint.TargetOutcome) error {
	staged, err := t.Stage(ctx, sink.Output{Batch: o.Last, Digest: o.Digest, Attempt: e.cfg.NewAttempt()})
	if err != nil {
		return err
	}
	return t.Publish(ctx, &checkpoint.Decision{Batch: o.Last, Digest: o.Digest}, staged)
}
