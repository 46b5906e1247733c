package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// session is one producer, from the broker's word who it is until the first doubt about what the brokers have of it: then
// it is given up, with its connections, and never used again.
//
// A batch of records carries the producer's id, epoch, and a sequence number that counts the records per partition. The
// brokers refuse a gap, and take the same batch sent again for the same batch, which makes repetition safe. One batch per
// partition is under way at a time, so what is repeated is always the last one.
//
// Where the cluster's transaction.version is 2 (KIP-890), a record adds its partition to the transaction, and each end of a
// transaction returns a new epoch, under which sequences begin anew. Before that, partitions are added first, and epoch and
// sequences go on. Both go by the versions of the requests.
type session struct {
	cl        *kgo.Client
	txn       string // transactional.id; "" for a producer without transactions
	who       producerID
	implicit  bool
	sequences map[place]int32
	timeout   int32 // transaction.timeout.ms
	open      bool  // a transaction may have begun
	spent     bool  // the brokers did not say who this producer is from now on
	breaks    *breaks
	last      *ending // of the transaction before, or of what earlier producers had begun

	settle    context.CancelFunc
	settling  sync.WaitGroup
	hurry     chan struct{} // closed when somebody waits
	isSettled chan struct{} // closed when the last transaction is written everywhere; nil: not looked at
}

// The versions of requests that a cluster takes whose transaction.version is below 2. Later ones of AddPartitionsToTxn are
// for brokers alone.
const (
	keyProduce       = 0
	keyAddPartitions = 24
	keyEndTxn        = 26

	lastProduce       = 11
	lastAddPartitions = 3
	lastEndTxn        = 4

	featureTransactions = "transaction.version"
	implicitVersion     = 2
)

// begin asks the brokers for a producer. With a transactional.id that shuts out every earlier producer of it, and waits
// until what they began is decided.
func begin(ctx context.Context, opts []kgo.Opt, txn string, implicit bool, timeout time.Duration) (*session, error) {
	if !implicit {
		v := kversion.Stable()
		v.SetMaxKeyVersion(keyProduce, lastProduce)
		v.SetMaxKeyVersion(keyAddPartitions, lastAddPartitions)
		v.SetMaxKeyVersion(keyEndTxn, lastEndTxn)
		opts = append(opts, kgo.MaxVersions(v))
	}
	s := &session{txn: txn, implicit: implicit, sequences: map[place]int32{}, breaks: &breaks{}, last: &ending{}}
	s.last.whole.Store(true)
	cl, err := kgo.NewClient(append(opts, kgo.WithHooks(s.breaks))...)
	if err != nil {
		return nil, fmt.Errorf("make a producer: %w", err)
	}
	s.cl = cl
	if err := s.identify(ctx, timeout); err != nil {
		cl.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) identify(ctx context.Context, timeout time.Duration) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	req.TransactionTimeoutMillis = math.MaxInt32
	if s.txn != "" {
		req.TransactionalID = &s.txn
		req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
		s.timeout = req.TransactionTimeoutMillis
	}
	resp, err := insist(ctx, func() (*kmsg.InitProducerIDResponse, error) {
		resp, err := req.RequestWith(ctx, s.cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		return resp, err
	})
	if err != nil {
		return err
	}
	if resp.ProducerID < 0 {
		return kerr.UnsupportedVersion
	}
	s.who = producerID{id: resp.ProducerID, epoch: resp.ProducerEpoch, transactional: s.txn != ""}
	return nil
}

// insist repeats a request to the coordinator while it is busy with the transaction before.
func insist[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for wait := firstPause; ; wait = min(2*wait, busyPause) {
		got, err := ask()
		if !errors.Is(err, kerr.ConcurrentTransactions) || pause(ctx, wait) != nil {
			return got, err
		}
	}
}

const (
	firstPause = 500 * time.Microsecond
	busyPause  = 10 * time.Millisecond
)

// addPartitions tells the coordinator where the transaction's records go, where records alone do not.
func (s *session) addPartitions(ctx context.Context, places []place) error {
	if s.txn == "" || s.implicit {
		return nil
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = s.txn, s.who.id, s.who.epoch
	for _, p := range places {
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == p.topic {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, p.partition)
			continue
		}
		topic := kmsg.NewAddPartitionsToTxnRequestTopic()
		topic.Topic, topic.Partitions = p.topic, []int32{p.partition}
		req.Topics = append(req.Topics, topic)
	}
	_, err := insist(ctx, func() (struct{}, error) {
		resp, err := req.RequestWith(ctx, s.cl)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, added(resp)
	})
	return err
}

// added is the first error of an answer that says more than that another partition's kept this one out.
func added(resp *kmsg.AddPartitionsToTxnResponse) error {
	var found error
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			err := kerr.ErrorForCode(p.ErrorCode)
			if err != nil && (found == nil || errors.Is(found, kerr.OperationNotAttempted)) {
				found = &placeError{place{t.Topic, p.Partition}, "", err}
			}
		}
	}
	return found
}

// end commits or aborts the transaction. After an error nothing is known of the outcome, and the session is of no use.
func (s *session) end(ctx context.Context, commit bool) error {
	if !s.open {
		return nil
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = s.txn, s.who.id, s.who.epoch, commit
	s.last = &ending{breaks: s.breaks.Load()}
	resp, err := insist(ctx, func() (*kmsg.EndTxnResponse, error) {
		resp, err := req.RequestWith(ctx, s.cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		return resp, err
	})
	if err != nil {
		return err
	}
	s.open = false
	if s.implicit {
		if s.spent = resp.ProducerID < 0 || resp.ProducerEpoch < 0; !s.spent {
			s.who.id, s.who.epoch = resp.ProducerID, resp.ProducerEpoch
		}
		clear(s.sequences)
	}
	s.watch()
	return nil
}

// giveUp ends a transaction of which something may still be under way to the brokers: under the same epoch, a request that
// comes after the end would begin a transaction that nobody ends. Where an end does not bring a new epoch, one is asked
// for, in the name of the present one: that shuts out nobody else, and fails when another process has the id.
func (s *session) giveUp(ctx context.Context) error {
	if s.implicit || !s.open {
		return s.end(ctx, false)
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &s.txn, s.timeout
	req.ProducerID, req.ProducerEpoch = s.who.id, s.who.epoch
	resp, err := req.RequestWith(ctx, s.cl)
	if err != nil {
		return err
	}
	s.open = false
	return kerr.ErrorForCode(resp.ErrorCode)
}

// The brokers finish a transaction after the answer to its end, which we must know of (ending). Where a record adds its
// partition, one for the next transaction that comes before is turned away and tried again only after
// add.partitions.to.txn.retry.backoff.ms, 20 by default. So we ask whether they are done, for about that long, beside
// whatever else there is to do: seldom, and often as soon as somebody waits for it.
const (
	settleTime  = 25 * time.Millisecond
	settleFirst = 500 * time.Microsecond
	settleShort = 150 * time.Microsecond
	settleLong  = 2 * time.Millisecond
)

func (s *session) watch() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	hurry, done, last := make(chan struct{}), make(chan struct{}), s.last
	s.settle, s.hurry, s.isSettled = cancel, hurry, done
	s.settling.Go(func() {
		defer close(done)
		defer cancel()
		if pause(ctx, settleFirst) != nil {
			return
		}
		for !s.look(ctx, last) && ctx.Err() == nil {
			wait, stop := context.WithTimeout(ctx, settleLong)
			select {
			case <-hurry:
				_ = pause(ctx, settleShort) //nolint:errcheck // the loop ends with the context
			case <-wait.Done():
			}
			stop()
		}
	})
}

// settled waits until the last transaction is written everywhere, or long enough. It is only about time.
func (s *session) settled(ctx context.Context) {
	if s.isSettled == nil {
		return
	}
	close(s.hurry)
	defer func() { s.isSettled = nil }()
	select {
	case <-s.isSettled:
	case <-ctx.Done():
	}
}

// look asks whether a transaction is written everywhere; it says no more than that where there is no answer.
func (s *session) look(ctx context.Context, e *ending) (over bool) {
	d, err := transactionOf(ctx, s.cl, s.txn)
	if err == nil && !unfinished(d.State) {
		s.confirm(e)
	}
	return err != nil || !unfinished(d.State)
}

// transactionOf asks the coordinator for the last transaction of an id.
func transactionOf(ctx context.Context, cl *kgo.Client, txn string) (kadm.DescribedTransaction, error) {
	all, err := kadm.NewClient(cl).DescribeTransactions(ctx, txn)
	if err == nil {
		err = all[txn].Err
	}
	return all[txn], err
}

// unfinished tells that a transaction's outcome is decided but not yet written everywhere.
func unfinished(state string) bool {
	switch state {
	case "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
		return true
	}
	return false
}

// close gives the producer up, with its connections: what it still has under way is not waited for.
func (s *session) close() {
	if s.settle != nil {
		s.settle()
	}
	s.settling.Wait()
	s.cl.Close()
}
