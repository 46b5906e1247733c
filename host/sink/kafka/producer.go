package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

// abortPatience bounds the abort of a transaction that is given up anyway: without it readers wait for its timeout.
const abortPatience = 3 * time.Second

// takeOver makes a new producer, which shuts out every earlier one of this id and waits until what they began is decided,
// and reads the marker.
func (t *Target) takeOver(ctx context.Context) error {
	t.drop(ctx)
	cl, err := t.newProducer()
	if err != nil {
		return err
	}
	end, err := t.barrier(ctx, cl)
	if err == nil {
		t.newest, err = t.readMarker(ctx, end, owned)
	}
	if err != nil {
		cl.Close()
		return err
	}
	t.producer, t.ended = cl, t.now()
	return nil
}

func (t *Target) newProducer() (*kgo.Client, error) {
	opts, err := t.cfg.producing()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(opts, kgo.TransactionalID(t.txnID()), kgo.TransactionTimeout(t.cfg.TransactionTimeout))...)
	if err != nil {
		return nil, t.brokerFault("", fmt.Errorf("make a producer: %w", err))
	}
	return cl, nil
}

// barrier shuts earlier owners out and returns an offset of the marker topic that all they committed lies before. It is the
// offset of a record that it writes and aborts: a broker that shows it cannot be one that has missed the newest
// marker, as a leader cut off from the others would be.
func (t *Target) barrier(ctx context.Context, cl *kgo.Client) (int64, error) {
	id, _, err := cl.ProducerID(ctx)
	switch {
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return 0, fault.New(CodeTimeout, t.place(), fmt.Errorf("a transaction timeout of %s: %w", t.cfg.TransactionTimeout, err),
			"lower the transaction timeout of the connection, or raise transaction.max.timeout.ms of the brokers")
	case err != nil:
		return 0, t.brokerFault(t.txnID(), fmt.Errorf("take the transactional id over: %w", err))
	case id < 0:
		return 0, t.brokerFault(t.txnID(), kerr.UnsupportedVersion)
	}
	if err := cl.BeginTransaction(); err != nil {
		return 0, t.brokerFault(t.txnID(), err)
	}
	var f flight
	f.launch(ctx, cl, &kgo.Record{Topic: t.markerTopic(), Key: []byte(t.ID() + "/probe"), Timestamp: t.now()})
	if r, err := f.land(ctx, cl); err != nil {
		return 0, t.flightFault(r, err)
	}
	if err := cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return 0, t.flightFault(nil, fmt.Errorf("end the first transaction: %w", err))
	}
	return f.last, nil
}

// flightFault is the fault for an error of a transaction.
func (t *Target) flightFault(r *kgo.Record, err error) error {
	if isFenced(err) {
		return t.fenced(err)
	}
	return t.dataFault(r, err)
}

// drop gives the producer up, and what it has staged with it.
func (t *Target) drop(ctx context.Context) {
	cl := t.producer
	t.producer, t.staged = nil, nil
	if cl == nil {
		return
	}
	if t.fencedBy == nil {
		t.abort(ctx, cl)
	}
	cl.Close()
}

// abort ends whatever transaction a producer has open. Nobody depends on its success but the readers' patience.
func (t *Target) abort(ctx context.Context, cl *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.abortPatience)
	defer cancel()
	if cl.AbortBufferedRecords(ctx) == nil {
		_ = cl.EndTransaction(ctx, kgo.TryAbort) //nolint:errcheck // the next owner ends it, or its timeout
	}
}

// abandon ends the open transaction without effect and keeps the producer, if that works.
func (t *Target) abandon(ctx context.Context) error {
	t.staged = nil
	cl := t.producer
	if cl == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.abortPatience)
	defer cancel()
	if err := cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.producer = nil
		cl.Close()
		return t.flightFault(nil, fmt.Errorf("abort: %w", err))
	}
	t.ended = t.now()
	return nil
}

// flight counts what becomes of records under way.
type flight struct {
	answer func(*kgo.Record, error) // done, made once
	mu     sync.Mutex
	err    error
	record *kgo.Record // that err is about
	last   int64       // offset of the record that was answered last
}

func (f *flight) launch(ctx context.Context, cl *kgo.Client, r *kgo.Record) {
	if f.answer == nil {
		f.answer = f.done
	}
	cl.Produce(ctx, r, f.answer)
}

func (f *flight) done(r *kgo.Record, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last = r.Offset; err == nil || f.err != nil && !incidental(f.err) {
		return
	}
	f.err, f.record = err, r
}

// incidental tells an error that only follows from another one.
func incidental(err error) bool {
	return errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, kgo.ErrAborting) || errors.Is(err, context.Canceled)
}

// land waits until every record is answered, and returns the first error with its record, if it is about one. A producer
// whose records do not land in time is of no use any more.
//
// A client learns of a topic's partitions while it sends the first records for it. It can be done with them before it
// has put the partitions where EndTransaction looks, which then takes the transaction for one without records, aborts it
// and returns nil. To abort what is buffered, and nothing is, waits for the lock under which that is done.
func (f *flight) land(ctx context.Context, cl *kgo.Client) (*kgo.Record, error) {
	err := cl.Flush(ctx)
	if err == nil {
		err = cl.AbortBufferedRecords(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.record, f.err
	}
	return nil, err
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
