package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// Inspect reads the marker without taking the id over. A commit whose outcome is decided but not yet visible is waited for;
// a transaction that is open is not.
func (t *Target) Inspect(ctx context.Context, o sink.Owner) (sink.Published, error) {
	nothing := sink.Published{Batch: checkpoint.NoBatch}
	if o.Query == "" || !t.exact() {
		return nothing, nil
	}
	look := &Target{cfg: t.cfg, query: o.Query}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	if err := look.reach(); err != nil {
		return nothing, err
	}
	defer look.base.Close()
	topic := look.markerTopic()
	meta, err := look.admin().Metadata(ctx, topic)
	if err != nil {
		return nothing, look.brokerFault("topic "+topic, err)
	}
	d := meta.Topics[topic]
	if errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
		return nothing, nil
	}
	if d.Err != nil {
		return nothing, look.brokerFault("topic "+topic, d.Err)
	}
	if err := look.checkMarkerTopic(ctx, d); err != nil {
		return nothing, err
	}
	for {
		d, err := transactionOf(ctx, look.base, look.txnID())
		switch {
		case err == nil && unfinished(d.State):
			if err := pause(ctx, retryPause); err != nil {
				return nothing, look.brokerFault(look.txnID(), fmt.Errorf("wait for the end of a transaction: %w", err))
			}
			continue
		case err == nil && fateOf(d.State) == hasCommitted: // its marker counts also where it hangs
			return look.inspect(ctx, look.admin().ListEndOffsets, owned)
		}
		return look.inspect(ctx, look.admin().ListCommittedOffsets, seen)
	}
}

// inspect reads the newest marker before an end of the marker topic.
func (t *Target) inspect(ctx context.Context, ends func(context.Context, ...string) (kadm.ListedOffsets, error), way int) (sink.Published, error) {
	topic := t.markerTopic()
	all, err := ends(ctx, topic)
	end, err := offsetOf(all, topic, err)
	if err != nil {
		return sink.Published{Batch: checkpoint.NoBatch}, t.brokerFault("topic "+topic, err)
	}
	m, err := t.readMarker(ctx, end, way)
	return m.published(), err
}
