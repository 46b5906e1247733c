package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

// A transaction hangs in a partition when its coordinator counts it as ended and the partition has not got the marker that
// says how. Kafka's coordinator leaves markers out for partitions without a leader, as if they were deleted ("Couldn't find
// leader endpoint for partitions .., these partitions are likely deleted already"); one that starts anew with a half-ended
// transaction may find partitions so (seen with 4.4, after a node that is broker and controller was killed). Readers wait
// before such records. Then the producer's next marker in that partition decides about them, whatever became of their
// transaction: what was committed would be lost, or what was aborted would come back.
//
// So a producer that may have been through such a start is given up before it writes anything (ending), and its successor
// looks for what hangs and writes the missing markers before anything else (beginWhole).

// ending is how far the end of a transaction is known to have got.
type ending struct {
	breaks int64       // connections that had broken when it was asked for
	whole  atomic.Bool // it is written everywhere
}

// breaks counts connections of a client that have broken.
type breaks struct{ atomic.Int64 }

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (b *breaks) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { b.Add(1) }

var _ kgo.HookBrokerDisconnect = (*breaks)(nil)

// confirm notes that the coordinator has taken a transaction for ended. After a connection broke that may be another
// coordinator's word, or that of the same one after a crash.
func (s *session) confirm(e *ending) {
	if s.breaks.Load() == e.breaks {
		e.whole.Store(true)
	}
}

// doubtful tells that the last transaction may hang: nothing may be written, nor aborted, before that is looked into.
func (s *session) doubtful() bool {
	return s.txn != "" && !s.last.whole.Load() && s.breaks.Load() != s.last.breaks
}

// inDoubt asks once more where that is not known yet: that the coordinator is another one shows in nothing else.
func (s *session) inDoubt(ctx context.Context) bool {
	if s.txn == "" || s.last.whole.Load() || s.doubtful() {
		return s.doubtful()
	}
	ctx, cancel := context.WithTimeout(ctx, longestRetry)
	defer cancel()
	s.look(ctx, s.last)
	return s.doubtful()
}

var errDoubt = fmt.Errorf("a connection broke before the last transaction was known to be written everywhere: %w", kerr.CoordinatorNotAvailable)

// How the last transaction of an id ended, as far as its coordinator tells.
type fate int

const (
	notKnown fate = iota
	hasCommitted
	hasAborted // or will be, when the id is taken over
)

func fateOf(state string) fate {
	switch state {
	case "PrepareCommit", "CompleteCommit":
		return hasCommitted
	case "Ongoing", "PrepareAbort", "CompleteAbort", "PrepareEpochFence":
		return hasAborted
	}
	return notKnown // "Empty": the id was taken over since
}

// mendings is how often what hangs is mended before it is given up.
const mendings = 3

// beginWhole makes a new producer, with nothing of earlier ones left hanging. A process that ends while it mends leaves the
// rest to the next one, which may abort it: that window is a few milliseconds of a case that is rare already.
func (t *Target) beginWhole(ctx context.Context) (*session, error) {
	last, epoch, err := t.lastFate(ctx)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		s, err := t.begin(ctx, t.txnID())
		if err != nil {
			return nil, err
		}
		hangs, oldest, sure, err := t.hanging(ctx, s)
		if sure && oldest < epoch-1 { // of an earlier transaction: each has an epoch of its own, and its end may bring the next
			last = notKnown
		}
		if err == nil && (len(hangs) == 0 || !sure && (try > 0 || last == notKnown)) {
			return s, nil
		}
		s.close()
		switch {
		case err != nil:
			return nil, t.brokerFault("", fmt.Errorf("look for transactions that hang: %w", err))
		case last == notKnown || try == mendings:
			return nil, t.hangs(hangs)
		}
		if err := t.mend(ctx, hangs, last == hasCommitted); err != nil {
			return nil, t.brokerFault(t.txnID(), fmt.Errorf("write the markers that are missing in %s: %w", names(hangs), err))
		}
		if sure {
			t.mended(hangs, last)
		}
	}
}

// lastFate asks how the last transaction ended, and for the producer's epoch. Brokers that do not know the question (before
// Kafka 3.0) are not known to leave markers out.
func (t *Target) lastFate(ctx context.Context) (last fate, epoch int16, err error) {
	for {
		d, err := transactionOf(ctx, t.base, t.txnID())
		switch {
		case err == nil:
			return fateOf(d.State), d.ProducerEpoch, nil
		case errors.Is(err, kerr.TransactionalIDNotFound), errors.Is(err, kerr.UnsupportedVersion):
			return notKnown, 0, nil
		case !kerr.IsRetriable(err) || pause(ctx, retryPause) != nil:
			return notKnown, 0, t.brokerFault(t.txnID(), fmt.Errorf("ask how the last transaction ended: %w", err))
		}
	}
}

// hanging lists the partitions in which a transaction is open that this producer, which has just been made, cannot have
// begun, nor a later owner of its id, and the lowest epoch of those. Where we may not ask for that (it takes the right to
// read), it lists those that hold anything open, and is not sure.
func (t *Target) hanging(ctx context.Context, s *session) (hangs []place, oldest int16, sure bool, err error) {
	oldest = math.MaxInt16
	set := kadm.TopicsSet{}
	for topic, l := range t.at.topics {
		for p := range l.leaders {
			set.Add(topic, int32(p))
		}
	}
	all, err := kadm.NewClient(s.cl).DescribeProducers(ctx, set)
	if err != nil {
		hangs, err = t.undecided(ctx)
		return hangs, oldest, false, err
	}
	all.EachPartition(func(p kadm.DescribedProducersPartition) {
		if !isUnknownTopic(p.Err) {
			err = cmp.Or(err, p.Err)
		}
		if d, ok := p.ActiveProducers[s.who.id]; ok && d.CurrentTxnStartOffset >= 0 && d.ProducerEpoch < s.who.epoch {
			hangs, oldest = append(hangs, place{p.Topic, p.Partition}), min(oldest, d.ProducerEpoch)
		}
	})
	sortPlaces(hangs)
	return hangs, oldest, true, err
}

// undecided lists the partitions that hold records of open transactions, of whatever producer.
func (t *Target) undecided(ctx context.Context) (open []place, err error) {
	topics := t.at.names()
	stable, err := t.admin().ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	ends, err := t.admin().ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	ends.Each(func(end kadm.ListedOffset) {
		s, ok := stable.Lookup(end.Topic, end.Partition)
		if !isUnknownTopic(end.Err) && !isUnknownTopic(s.Err) {
			err = cmp.Or(err, end.Err, s.Err)
		}
		if ok && s.Offset < end.Offset {
			open = append(open, place{end.Topic, end.Partition})
		}
	})
	sortPlaces(open)
	return open, err
}

// mend writes markers into partitions by a transaction that has them and no records: the older form of the protocol, in
// which partitions are added by a request of its own, is understood by every broker.
func (t *Target) mend(ctx context.Context, places []place, commit bool) error {
	opts, err := t.cfg.options()
	if err != nil {
		return err
	}
	s, err := begin(ctx, opts, t.txnID(), false, t.cfg.TransactionTimeout)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.addPartitions(ctx, places); err != nil {
		return err
	}
	s.open = true
	return s.end(ctx, commit)
}

// mended tells that a cluster had not kept its word.
func (t *Target) mended(places []place, last fate) {
	word := map[fate]string{hasCommitted: "committed", hasAborted: "aborted"}[last]
	t.cfg.Warn(fault.New(CodeHanging, t.place(),
		fmt.Errorf("the cluster had not told %s that the last transaction of %s is %s: that is written now", names(places), t.txnID(), word),
		"other producers may have lost records so: let brokers and controllers be processes of their own, or have more replicas"))
}

func (t *Target) hangs(places []place) error {
	return fault.New(CodeHanging, t.place(),
		fmt.Errorf("records of an earlier transaction of %s are neither committed nor aborted in %s, and the cluster does not tell any more which it was",
			t.txnID(), names(places)),
		"see with `kafka-transactions.sh find-hanging` since when, compare these partitions with the batch that was published last, end the transaction by hand and start again")
}

func names(places []place) string {
	const most = 10
	var out []string
	for i, p := range places {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(places)-most))
			break
		}
		out = append(out, fmt.Sprintf("%s-%d", p.topic, p.partition))
	}
	return strings.Join(out, ", ")
}
