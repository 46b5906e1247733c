package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// atLeastOnce publishes without transactions. What is staged is kept in memory and produced by Publish, because a produced
// record is visible at once.
type atLeastOnce struct {
	producer *kgo.Client
	kept     bool
	out      sink.Output
	lanes    []*lane
	done     bool // the kept batch is published
}

func (a *atLeastOnce) open(t *Target) error {
	a.close()
	opts, err := t.cfg.producing()
	if err != nil {
		return err
	}
	if a.producer, err = kgo.NewClient(opts...); err != nil {
		return t.brokerFault("", fmt.Errorf("make a producer: %w", err))
	}
	return nil
}

func (a *atLeastOnce) close() {
	if a.producer != nil {
		a.producer.Close()
	}
	*a = atLeastOnce{}
}

func (a *atLeastOnce) keep(out sink.Output, lanes []*lane) {
	a.kept, a.done, a.out, a.lanes = true, false, out, a.lanes[:0]
	for _, l := range lanes {
		a.lanes = append(a.lanes, l.take())
	}
}

func (a *atLeastOnce) abort(batch checkpoint.BatchID) {
	if a.kept && a.out.Batch == batch {
		a.kept, a.lanes = false, nil
	}
}

func (a *atLeastOnce) publish(ctx context.Context, t *Target, d *checkpoint.Decision) error {
	if !a.kept || a.producer == nil || a.out.Batch != d.Batch {
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
	var f flight
	t.build(a.out, a.lanes)
	for i := range t.records {
		f.launch(ctx, a.producer, &t.records[i])
	}
	if r, err := f.land(ctx, a.producer); err != nil {
		t.records, t.heads = nil, nil
		a.close()
		return fmt.Errorf("publish batch %d: %w", d.Batch, t.dataFault(r, err))
	}
	a.done, a.lanes = true, nil
	return nil
}
