package kafka

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// atLeastOnce publishes without transactions. What is staged is kept in memory and produced by Publish, because a produced
// record is visible at once.
type atLeastOnce struct {
	kept  bool
	out   sink.Output
	lanes []*lane
	done  bool // the kept batch is published
}

// beginPlain makes a producer without a transactional.id: it repeats safely, but nobody is shut out.
func (t *Target) beginPlain(ctx context.Context) error {
	t.partial = atLeastOnce{}
	s, err := t.begin(ctx, "")
	t.session = s
	return err
}

// readyPlain sees to it that there is a producer: the one before may have been given up.
func (t *Target) readyPlain(ctx context.Context) error {
	if t.base == nil {
		return fmt.Errorf("stage: target %s is not open", t.ID())
	}
	if t.session != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	return t.beginPlain(ctx)
}

func (a *atLeastOnce) keep(out sink.Output, lanes []*lane) {
	*a = atLeastOnce{kept: true, out: out}
	for _, l := range lanes {
		a.lanes = append(a.lanes, l.take())
	}
}

func (a *atLeastOnce) abort(batch checkpoint.BatchID) {
	if a.kept && a.out.Batch == batch {
		*a = atLeastOnce{}
	}
}

func (a *atLeastOnce) publish(ctx context.Context, t *Target, d *checkpoint.Decision) error {
	if !a.kept || t.session == nil || a.out.Batch != d.Batch {
		return fmt.Errorf("publish batch %d: %w", d.Batch, sink.ErrLost)
	}
	if a.done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.TransactionTimeout)
	defer cancel()
	if err := t.checkTopics(ctx, a.lanes); err != nil {
		return err
	}
	g := &cargo{batchMS: a.out.TimeMS, queues: map[place]*queue{}}
	g.load(uint64(a.out.Batch), a.lanes, &t.at)
	g.close(t.press)
	if err := t.session.send(ctx, g, &t.at); err != nil {
		*a = atLeastOnce{}
		f := t.dataFault(err)
		t.drop(ctx)
		return fmt.Errorf("publish batch %d: %w", d.Batch, f)
	}
	a.done, a.lanes = true, nil
	return nil
}
