package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/host/kafkaconn"
)

const (
	requestBytes   = 8 << 20 // of one produce request, unless a single record has more
	produceTimeout = 10 * time.Second
	// unknownRetries is how often a topic may be unknown while records for it wait: it was there before.
	unknownRetries = 3
	longestRetry   = time.Second
)

// placeError is what a broker says about the records for a partition.
type placeError struct {
	place
	text string // the broker's own words
	err  error
}

func (e *placeError) Error() string {
	s := fmt.Sprintf("topic %s, partition %d: %s", e.topic, e.partition, e.err)
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

func (e *placeError) Unwrap() error { return e.err }

// within is an error for a place that names the topic already: without the topic where it says nothing else.
func (e *placeError) within(err error) error {
	if a := (*again)(nil); errors.As(err, &a) && err == error(a) {
		err = a.err
	}
	if err != error(e) {
		return err
	}
	return &partitionError{e}
}

// partitionError is a placeError without its topic.
type partitionError struct{ at *placeError }

func (e *partitionError) Error() string {
	s := fmt.Sprintf("partition %d: %s", e.at.partition, e.at.err)
	if e.at.text != "" {
		s += ": " + e.at.text
	}
	return s
}

func (e *partitionError) Unwrap() error { return e.at.err }

// again is an error after which the same batches are sent once more.
type again struct{ err error }

func (e *again) Error() string { return e.err.Error() }
func (e *again) Unwrap() error { return e.err }

// send sends a cargo and returns when every record is acknowledged by all replicas in sync, or one cannot be. After an
// error the session is of no use: what the brokers have of the cargo is not known.
func (s *session) send(ctx context.Context, g *cargo, at *layout) error {
	if s.inDoubt(ctx) {
		return errDoubt
	}
	for _, q := range g.order {
		q.sequence = s.sequences[q.place]
	}
	s.open = s.txn != ""
	if err := s.addPartitions(ctx, g.places()); err != nil {
		return err
	}
	if s.txn != "" && !s.implicit {
		s.confirm(s.last)
	}
	// Brokers add partitions to a transaction one after another. Those that do it at the same time get in each other's way,
	// and try again after 20 ms: so each has its first records before the next gets some.
	oneByOne := s.implicit && s.txn != ""
	for wait := firstPause; ; wait = min(2*wait, longestRetry) {
		err := s.round(ctx, g, at, oneByOne)
		if err == nil {
			s.confirm(s.last)
			oneByOne = false
			if wait = firstPause; g.done() {
				break
			}
			continue
		}
		if retry := (*again)(nil); !errors.As(err, &retry) || pause(ctx, wait) != nil {
			return late(ctx, err)
		}
		if s.inDoubt(ctx) {
			return fmt.Errorf("%w; %v", errDoubt, err) //nolint:errorlint // what is wrong with the records does not count
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			if err := at.refresh(ctx, s.cl); err != nil {
				return err
			}
		}
	}
	for _, q := range g.order {
		s.sequences[q.place] = q.sequence
	}
	return nil
}

// late adds to an error that there was no time to try again, or that nobody waits any more.
func late(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}

// round sends to each leader: once and one after another, or until all is acknowledged and side by side.
func (s *session) round(ctx context.Context, g *cargo, at *layout, oneByOne bool) error {
	groups := map[int32][]*queue{}
	for _, q := range g.order {
		if q.next < len(q.chunks) {
			leader := at.leader(q.place)
			groups[leader] = append(groups[leader], q)
		}
	}
	leaders := slices.Sorted(maps.Keys(groups))
	if oneByOne && len(leaders) > 1 {
		for _, l := range leaders {
			if _, err := s.request(ctx, l, groups[l], g.batchMS); err != nil {
				return err
			}
		}
		return nil
	}
	return s.drive(ctx, leaders, groups, g.batchMS)
}

func (s *session) drive(ctx context.Context, leaders []int32, groups map[int32][]*queue, batchMS int64) error {
	if len(leaders) == 1 {
		return s.drain(ctx, leaders[0], groups[leaders[0]], batchMS)
	}
	errs := make([]error, len(leaders))
	var wg sync.WaitGroup
	for i, l := range leaders {
		wg.Go(func() { errs[i] = s.drain(ctx, l, groups[l], batchMS) })
	}
	wg.Wait()
	var found error
	for _, err := range errs {
		if retry := (*again)(nil); err != nil && (found == nil || !errors.As(err, &retry)) {
			found = err
		}
	}
	return found
}

// drain sends to one leader until all queues are acknowledged, or one cannot go on here.
func (s *session) drain(ctx context.Context, leader int32, queues []*queue, batchMS int64) error {
	for {
		more, err := s.request(ctx, leader, queues, batchMS)
		if err != nil || !more {
			return err
		}
	}
}

// request sends the next chunk of each queue. more: some have another one.
func (s *session) request(ctx context.Context, leader int32, queues []*queue, batchMS int64) (more bool, err error) {
	if leader < 0 {
		return false, &again{&placeError{queues[0].place, "", kerr.LeaderNotAvailable}}
	}
	req := kmsg.NewPtrProduceRequest()
	if s.txn != "" {
		req.TransactionID = &s.txn
	}
	req.Acks, req.TimeoutMillis = -1, int32(produceTimeout.Milliseconds())
	under := map[place]*queue{}
	bytes := 0
	for _, q := range queues {
		if q.next == len(q.chunks) {
			continue
		}
		c := q.chunks[q.next]
		if len(under) > 0 && bytes+len(c.buf) > requestBytes {
			break
		}
		bytes += len(c.buf)
		c.seal(s.who, q.sequence, batchMS)
		pack(req, q, c.buf)
		under[q.place] = q
	}
	if len(under) == 0 {
		return false, nil
	}
	raw, err := s.cl.Broker(int(leader)).Request(ctx, &sized{req, bytes})
	if err != nil {
		if ctx.Err() == nil && kafkaconn.IsPassing(err, true) {
			err = &again{err}
		}
		return false, err
	}
	resp, ok := raw.(*kmsg.ProduceResponse)
	if !ok {
		return false, fmt.Errorf("a produce request is answered by %T", raw)
	}
	if err := answers(resp, under); err != nil {
		return false, err
	}
	return slices.ContainsFunc(queues, func(q *queue) bool { return q.next < len(q.chunks) }), nil
}

// sized makes room for a whole request at once, where the client would let it grow by doubling.
type sized struct {
	*kmsg.ProduceRequest
	bytes int
}

func (r *sized) AppendTo(dst []byte) []byte {
	const overhead = 4 << 10
	return r.ProduceRequest.AppendTo(slices.Grow(dst, r.bytes+overhead))
}

// pack puts a batch into a request.
func pack(req *kmsg.ProduceRequest, q *queue, batch []byte) {
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = q.partition, batch
	for i := range req.Topics {
		if t := &req.Topics[i]; t.Topic == q.topic {
			t.Partitions = append(t.Partitions, part)
			return
		}
	}
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID, t.Partitions = q.topic, q.id, append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
}

// answers moves the queues on that an answer acknowledges, and returns the worst error in it.
func answers(resp *kmsg.ProduceResponse, under map[place]*queue) error {
	names := map[[16]byte]string{}
	for _, q := range under {
		names[q.id] = q.topic
	}
	var worst error
	for i := range resp.Topics {
		t := &resp.Topics[i]
		name := t.Topic
		if resp.Version >= 13 {
			name = names[t.TopicID]
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			at := place{name, p.Partition}
			q := under[at]
			if q == nil {
				return fmt.Errorf("an answer is about topic %q, partition %d, which was not asked for", name, p.Partition)
			}
			delete(under, at)
			if err := q.answered(p); err != nil {
				if retry := (*again)(nil); worst == nil || !errors.As(err, &retry) {
					worst = err
				}
			}
		}
	}
	if worst == nil && len(under) > 0 {
		return fmt.Errorf("an answer leaves out %d partitions", len(under))
	}
	return worst
}

// answered takes the word of a broker about the queue's next chunk.
func (q *queue) answered(p *kmsg.ProduceResponseTopicPartition) error {
	err := kerr.ErrorForCode(p.ErrorCode)
	if err == nil {
		rows := q.chunks[q.next].rows
		q.offset = p.BaseOffset + int64(rows) - 1
		q.sequence = after(q.sequence, rows)
		q.next++
		q.unknown = 0
		return nil
	}
	e := &placeError{place: q.place, err: err}
	if p.ErrorMessage != nil {
		e.text = *p.ErrorMessage
	}
	for _, r := range p.ErrorRecords {
		if r.ErrorMessage != nil {
			e.text += fmt.Sprintf(" (record %d of %d: %s)", r.RelativeOffset, q.chunks[q.next].rows, *r.ErrorMessage)
			break
		}
	}
	if !q.mayRepeat(err) {
		return e
	}
	return &again{e}
}

// mayRepeat tells whether the same chunk may be taken when it is sent again, with the same sequence numbers.
func (q *queue) mayRepeat(err error) bool {
	switch {
	case errors.Is(err, kerr.ConcurrentTransactions), errors.Is(err, kerr.OperationNotAttempted):
		return true // the second says that another partition's error kept this one out: that one decides
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		q.unknown++
		return q.unknown <= unknownRetries
	case errors.Is(err, kerr.CorruptMessage), errors.Is(err, kerr.OutOfOrderSequenceNumber), errors.Is(err, kerr.UnknownProducerID):
		return false
	}
	return kerr.IsRetriable(err)
}

// done tells that everything is acknowledged.
func (g *cargo) done() bool {
	return !slices.ContainsFunc(g.order, func(q *queue) bool { return q.next < len(q.chunks) })
}
