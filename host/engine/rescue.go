package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/sink"
)

// rescue finds the output of a decided batch again for targets that have lost what they had staged, by rungs (b) and (c)
// of the ladder. Each is tried once; nothing is published before publish.
type rescue struct {
	e       *Engine
	b       *batch
	looked  bool
	spooled map[string]sink.Output // by target
	ran     bool
	out     *outcome // of the batch run again; also when it differs
	why     error    // that out is not what was decided, or is not there
}

// find looks for the output of targets, and returns those for which there is none.
func (r *rescue) find(ctx context.Context, lost []sink.Target) (stuck []sink.Target, err error) {
	for _, t := range lost {
		if err := r.e.checkMoved(r.b, t); err != nil {
			return nil, err
		}
	}
	if len(lost) > 0 && !r.looked {
		r.spooled, r.looked = r.e.fromSpool(ctx, r.b, lost), true
	}
	for _, t := range lost {
		if _, kept := r.spooled[t.ID()]; !kept {
			stuck = append(stuck, t)
		}
	}
	if len(stuck) == 0 {
		return nil, nil
	}
	if !r.ran {
		r.out, r.why = r.e.rerun(ctx, r.b)
		r.ran = true
	}
	if r.why == nil {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, r.why
	}
	force, err := r.e.forced(ctx, r.b, stuck)
	if err != nil || force && r.out != nil {
		return nil, err
	}
	return stuck, nil
}

// publish publishes what was found. What the targets stage now carries the digest of the decision.
func (r *rescue) publish(ctx context.Context, lost []sink.Target) error {
	if r.out != nil {
		r.out.digest = r.b.decision.Digest
		r.b.out = r.out
	}
	for _, t := range lost {
		out, kept := r.spooled[t.ID()]
		rung, detail := "spool", "what was spooled"
		if !kept {
			// Also when a forced re-run has nothing for it: its marker must say that it has the batch.
			out, _ = r.e.outputFor(t, r.out, r.b.plan, r.b.attempt)
			rung, detail = "rerun", "run again"
			if r.why != nil {
				rung = "forced"
			}
		}
		staged, err := t.Stage(ctx, out)
		if errors.As(err, new(*sink.Refused)) {
			err = leads(err, wayOutDecided)
		}
		if err != nil {
			return fmt.Errorf("target %s: stage again: %w", t.ID(), err)
		}
		if err := r.e.publishTo(ctx, t, r.b.decision, staged); err != nil {
			return err
		}
		r.e.cfg.Events.recovered(Recovery{Batch: r.b.plan.Batch, Target: t.ID(), Rung: rung, Detail: detail})
	}
	return nil
}
