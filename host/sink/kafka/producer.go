package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/host/fault"
)

// abortPatience bounds the abort of a transaction that is given up anyway: without it readers wait for its timeout.
const abortPatience = 3 * time.Second

// takeOver makes a new producer, which shuts out every earlier one of this id and waits until what they began is decided,
// and reads the marker.
func (t *Target) takeOver(ctx context.Context) error {
	t.drop(ctx)
	s, err := t.beginWhole(ctx)
	if err != nil {
		return err
	}
	end, err := t.barrier(ctx, s)
	if err == nil {
		t.newest, err = t.readMarker(ctx, end, owned)
	}
	if err != nil {
		s.close()
		return err
	}
	t.session = s
	return nil
}

// begin makes a producer, with a transactional.id or without one.
func (t *Target) begin(ctx context.Context, txn string) (*session, error) {
	opts, err := t.cfg.options()
	if err != nil {
		return nil, err
	}
	implicit, err := t.implicit(ctx)
	if err != nil {
		return nil, t.brokerFault("", fmt.Errorf("ask for the brokers' versions: %w", err))
	}
	s, err := begin(ctx, opts, txn, implicit, t.cfg.TransactionTimeout)
	switch {
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return nil, fault.New(CodeTimeout, t.place(), fmt.Errorf("a transaction timeout of %s: %w", t.cfg.TransactionTimeout, err),
			"lower the transaction timeout of the connection, or raise transaction.max.timeout.ms of the brokers")
	case err != nil && isFenced(err):
		return nil, t.fenced(err)
	case err != nil:
		return nil, t.brokerFault(txn, fmt.Errorf("take the transactional id over: %w", err))
	}
	if err := t.at.renew(ctx, s.cl); err != nil { // the new client learns who the brokers are
		s.close()
		return nil, t.brokerFault("", fmt.Errorf("ask for topics: %w", err))
	}
	return s, nil
}

// implicit tells whether records add their partitions to a transaction.
func (t *Target) implicit(ctx context.Context) (bool, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, t.base)
	if err != nil {
		return false, err
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == featureTransactions {
			return f.MaxVersionLevel >= implicitVersion, nil
		}
	}
	return false, nil
}

// barrier returns an offset of the marker topic that all that earlier owners committed lies before. It is the offset of a
// record that it writes and aborts: a broker that shows it cannot be one that has missed the newest marker, as a leader cut
// off from the others would be.
func (t *Target) barrier(ctx context.Context, s *session) (int64, error) {
	since := t.wall()
	q, g := t.markerCargo(t.now().UnixMilli(), []byte(t.ID()+"/probe"), nil)
	if err := s.send(ctx, g, &t.at); err != nil {
		return 0, t.sendFault(err, t.wall().Sub(since))
	}
	if q.offset < 0 {
		return 0, t.brokerFault("topic "+t.markerTopic(), errors.New("a record was written at an offset that the broker does not tell"))
	}
	if err := s.end(ctx, false); err != nil {
		return 0, t.sendFault(fmt.Errorf("end the first transaction: %w", err), t.wall().Sub(since))
	}
	if s.spent {
		return 0, t.brokerFault(t.txnID(), kerr.UnknownProducerID)
	}
	return q.offset, nil
}

// drop gives the producer up, and what it has staged with it.
func (t *Target) drop(ctx context.Context) {
	t.unstage()
	s := t.session
	t.session = nil
	if s == nil {
		return
	}
	if t.fencedBy == nil && !s.doubtful() { // the state of the transaction in doubt is what tells how it ended
		t.abort(ctx, s)
	}
	s.close()
}

// unstage forgets what is staged.
func (t *Target) unstage() {
	if t.staged != nil {
		t.staged.alarm.Stop()
		t.staged = nil
	}
}

// abort ends whatever transaction a producer has open. Nobody depends on its success but the readers' patience.
func (t *Target) abort(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.abortPatience)
	defer cancel()
	_ = s.giveUp(ctx) //nolint:errcheck // the next owner ends it, or its timeout
}

// abandon ends the open transaction without effect and keeps the producer, if that works.
func (t *Target) abandon(ctx context.Context) error {
	age := time.Duration(0)
	if t.staged != nil {
		age = t.wall().Sub(t.staged.since)
	}
	t.unstage()
	s := t.session
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.abortPatience)
	defer cancel()
	if err := s.end(ctx, false); err != nil {
		t.session = nil
		s.close()
		return t.sendFault(fmt.Errorf("abort: %w", err), age)
	}
	return nil
}

func offsetOf(all kadm.ListedOffsets, topic string, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	o, ok := all.Lookup(topic, 0)
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return o.Offset, o.Err
}
