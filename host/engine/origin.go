package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// CheckOrigin refuses a target of a forked checkpoint, as long as it has published nothing itself, whose place has later batches
// of a query that it came from than the fork stands for, as what the fork reads again would be there twice; or lacks one that was
// decided for it, which the fork would not bring.
func CheckOrigin(ctx context.Context, origins []checkpoint.Origin, t sink.Target, p sink.Published) error {
	heir, ok := t.(sink.Heir)
	if !ok || p.Batch >= 0 || mayRepeat(t.Traits()) {
		return nil
	}
	for i, origin := range origins {
		old, disown, err := heir.PublishedBy(ctx, origin.Query)
		if err != nil {
			return fmt.Errorf("what target %s has of the query that was forked: %w", t.ID(), err)
		}
		switch last := origin.Last[t.ID()]; {
		case old.Batch > origin.Batch:
			return forkedBefore(t, &origin, old, disown)
		case i == 0 && old.Batch >= 0 && old.Batch < last:
			return fault.New(CodeTargetBehind, "target "+t.ID(),
				fmt.Errorf("query %s has published batch %d there last, and this checkpoint was forked from it after batch %d, which is decided for it too and would be missing", origin.Query, old.Batch, last),
				"start the old job once, which publishes what is decided; or give its sinks places of their own")
		}
	}
	return nil
}

func forkedBefore(t sink.Target, origin *checkpoint.Origin, old sink.Published, disown string) error {
	wayOut := fmt.Sprintf("give its sinks places of their own; or fork the old checkpoint where that place is: `wasmill checkpoint fork --at %d`", old.Batch)
	if disown != "" {
		wayOut += fmt.Sprintf("; or, when what batch %d and later ones brought is out of it: %s", origin.Batch+1, disown)
	}
	return fault.New(CodeTargetAhead, "target "+t.ID(),
		fmt.Errorf("query %s has published batch %d there, and this checkpoint was forked from it after batch %d: what comes again would be there twice", origin.Query, old.Batch, origin.Batch), wayOut)
}

// Plans is what OriginsOf reads of a checkpoint. A Log and a Reader have it.
type Plans interface {
	Plan(ctx context.Context, id checkpoint.BatchID) (*checkpoint.Plan, error)
}

// OriginsOf says where a checkpoint was forked from; nil for one that is no fork, or whose plan 0 is not kept any more.
func OriginsOf(ctx context.Context, plans Plans) ([]checkpoint.Origin, error) {
	p, err := plans.Plan(ctx, 0)
	if coded, ok := errors.AsType[*checkpoint.Error](err); ok && coded.ErrCode == checkpoint.CodeMissing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.Origins(), nil
}

// checkOrigin asks the targets that are in pubs and have published nothing yet.
func (e *Engine) checkOrigin(ctx context.Context, pubs map[string]sink.Published) error {
	origins, err := OriginsOf(ctx, e.cfg.Log)
	if err != nil || origins == nil {
		return err
	}
	for _, t := range e.targets {
		p, known := pubs[t.ID()]
		if !known {
			continue
		}
		if err := CheckOrigin(ctx, origins, t, p); err != nil {
			return err
		}
	}
	return nil
}
