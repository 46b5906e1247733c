package kafka

import (
	"context"
	"errors"
	"fmt"

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
	for unfinished(ctx, look.base, look.txnID()) {
		if err := pause(ctx, retryPause); err != nil {
			return nothing, look.brokerFault(look.txnID(), fmt.Errorf("wait for the end of a transaction: %w", err))
		}
	}
	end, err := look.decidedBeyond(ctx, -1)
	if err != nil {
		return nothing, err
	}
	m, err := look.readMarker(ctx, end, seen)
	return m.published(), err
}
