package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// maxFetch bounds FetchBytes, maxMemory Memory.
	maxFetch  = 64 << 20
	maxMemory = 1 << 30
	// probeBytes is how much a look at what a partition holds next asks for. A broker gives one stored batch at least.
	probeBytes = 64 << 10
	// fetchWait is how long a broker may wait for data, milliseconds. Planned data is there already.
	fetchWait = 500
	// emptyFetches is how often a fetch must come back empty, from a log that reaches as far as the range, before it is looked
	// at whether the rest of the range was compacted away.
	emptyFetches = 3
	// corruptFetches is how often bytes that are damaged are fetched again.
	corruptFetches = 3
	// outOfRange is how often an offset must be out of range before it is lost: a new leader may not know its log's end yet.
	outOfRange = 4
)

// Read delivers the records of a split, and asserts that the log holds the range it was cut from.
func (s *Source) Read(ctx context.Context, split source.Split, to source.Writer) error {
	var p part
	if err := json.Unmarshal(split.Detail, &p); err != nil {
		return fmt.Errorf("split %s: %w", split.Name, err)
	}
	d := s.pool.Get().(*decoder)
	defer s.pool.Put(d)
	d.begin(s.attached(&p), p.Partition)
	r := reader{s: s, part: &p, pos: p.From, d: d}
	err := r.run(ctx, window{to: p.To, committed: !s.cfg.Uncommitted, maxRecord: s.cfg.MaxRecord, out: to})
	if lost := (*source.ChangedError)(nil); errors.As(err, &lost) {
		s.stale.Store(true) // what is planned instead must not go by what was known before
	}
	return err
}

// begin makes a decoder ready for a split.
func (d *decoder) begin(attached []abi.Header, num int32) {
	d.headers, d.unpacked = attached, 0
	d.rec = abi.Record{Partition: num}
}

func (s *Source) attached(p *part) []abi.Header {
	var h []abi.Header
	for _, name := range s.cfg.Attach {
		value := p.Topic
		if name == "partition" {
			value = strconv.Itoa(int(p.Partition))
		}
		h = append(h, abi.Header{Name: []byte(name), Value: []byte(value)})
	}
	return h
}

// reader reads one part.
type reader struct {
	s    *Source
	part *part
	pos  int64
	d    *decoder

	topic   *topicInfo
	backoff backoff // since pos moved last
	empty   int     // fetches without a batch since pos moved last
	damaged int     // fetches of damaged bytes since pos moved last
	outside int     // answers that pos is out of range since it moved last
	bytes   int32   // what a fetch asks for
	sound   int32   // leader epoch in which the part's end was found sound
	probing bool    // one answer is enough
	direct  bool    // what lies in memory is of no use
}

func (r *reader) run(ctx context.Context, w window) error {
	r.sound = r.part.Epoch
	for r.pos < r.part.To && !(r.probing && r.pos > r.part.From) {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.from = r.pos
		if held, err := r.held(ctx, &w); held || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		answer, err := r.fetch(ctx)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		if err := r.take(ctx, answer, &w); err != nil {
			return err
		}
	}
	return nil
}

// held delivers what lies in memory, if anything does at pos. Damage there is looked at by a fetch of the reader's own.
func (r *reader) held(ctx context.Context, w *window) (bool, error) {
	if r.direct {
		return false, nil
	}
	c, err := r.s.pre.find(ctx, r.part, r.pos)
	if c == nil || err != nil {
		return false, err
	}
	before := r.d.unpacked
	next, err := r.d.deliver(c, w)
	if we := (*writeError)(nil); errors.As(err, &we) {
		return true, we.err
	}
	r.direct = err != nil
	if next > r.pos {
		r.s.sizes.add(r.part.key(), r.d.unpacked-before, next-r.pos)
		r.moved(next)
		r.s.pre.passed(r.part, min(next, r.part.To))
	}
	return true, nil
}

func (r *reader) moved(next int64) {
	r.pos, r.backoff, r.empty, r.damaged, r.outside = next, backoff{}, 0, 0, 0
}

// take delivers what a fetch has brought.
func (r *reader) take(ctx context.Context, answer *kmsg.FetchResponseTopicPartition, w *window) error {
	before := r.d.unpacked
	next, err := r.d.decode(answer, w)
	if we := (*writeError)(nil); errors.As(err, &we) {
		return we.err
	}
	if next > r.pos {
		r.s.sizes.add(r.part.key(), r.d.unpacked-before, next-r.pos)
		r.moved(next)
	} else if err == nil {
		return r.nothing(ctx, answer)
	}
	if err == nil {
		return nil
	}
	if r.damaged++; r.damaged >= corruptFetches || errors.Is(err, errTooLarge) {
		return corrupt(r.name(), err)
	}
	return r.pause(ctx, err)
}

func (r *reader) name() string { return r.part.key().String() }

// nothing deals with a fetch that has brought no whole batch. A log that reaches to the end of the range and holds no
// batch before it was compacted there, if what it holds next lies beyond: an empty answer alone may be a broker's that is
// short of time, or not yet itself again.
func (r *reader) nothing(ctx context.Context, answer *kmsg.FetchResponseTopicPartition) error {
	end := answer.HighWatermark
	if !r.s.cfg.Uncommitted {
		end = answer.LastStableOffset
	}
	if len(answer.RecordBatches) > 0 {
		r.bytes = min(2*max(r.bytes, probeBytes), maxFetch) // a broker older than KIP-74 cuts batches
		return r.pause(ctx, fmt.Errorf("a fetch at offset %d brings less than one batch", r.pos))
	}
	if end < r.part.To {
		r.empty = 0
		return r.pause(ctx, fmt.Errorf("the log ends at offset %d, and the planned range at %d", end, r.part.To))
	}
	if r.empty++; r.empty >= emptyFetches {
		if gap, err := r.gap(ctx); gap || err != nil {
			return err
		}
	}
	return r.pause(ctx, fmt.Errorf("a fetch at offset %d brings nothing, and the log ends at %d", r.pos, end))
}

// gap passes the rest of the range if the log's next batch, decided or not, begins after it: no cleaner takes the last
// batch of a log, so there is one wherever offsets are missing.
func (r *reader) gap(ctx context.Context) (bool, error) {
	leader, err := r.leader(ctx)
	if err != nil || leader == none {
		return false, err
	}
	answer, err := r.s.fetchOnce(ctx, r.part, r.topic, r.pos, probeBytes, readUncommitted)
	if err != nil || answer == nil || answer.ErrorCode != 0 {
		return false, nil //nolint:nilerr // the fetch that follows tells what is wrong
	}
	if b, _, _, ok, err := splitBatch(answer.RecordBatches); !ok || err != nil || b.base < r.part.To {
		return false, nil //nolint:nilerr // the same
	}
	r.moved(r.part.To)
	return true, nil
}

// pause waits before the next try, or gives up with why.
func (r *reader) pause(ctx context.Context, why error) error {
	again, err := r.backoff.wait(ctx, r.s.cfg.Patience)
	if err != nil {
		return err
	}
	if again {
		return nil
	}
	if errors.As(why, new(*kerr.Error)) || !r.s.reached.Load() {
		return r.s.words("partition "+r.name(), why)
	}
	return stalled(r.name(), why)
}

// fetch asks the partition's leader for what comes at pos. It returns nil when there is no answer and a pause was made.
func (r *reader) fetch(ctx context.Context) (*kmsg.FetchResponseTopicPartition, error) {
	leader, err := r.leader(ctx)
	if err != nil || leader == none {
		return nil, err
	}
	bytes := int32(r.s.cfg.FetchBytes)
	if r.probing {
		bytes = min(bytes, probeBytes)
	}
	if size, ok := r.s.sizes.get(r.part.key()); ok { // what is fetched beyond the range is fetched again
		bytes = int32(min(float64(bytes), probeBytes+size*float64(r.part.To-r.pos)))
	}
	answer, err := r.s.fetchOnce(ctx, r.part, r.topic, r.pos, max(r.bytes, bytes), r.s.isolation())
	if err == nil && answer == nil {
		return nil, r.pause(ctx, errors.New("the broker answers without the partition"))
	}
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err == nil {
		return answer, r.kept(answer)
	}
	return nil, r.failed(ctx, err)
}

// kept asserts that a log still reaches back to pos.
func (r *reader) kept(answer *kmsg.FetchResponseTopicPartition) error {
	if answer.LogStartOffset <= r.pos {
		return nil
	}
	if b, _, _, ok, err := splitBatch(answer.RecordBatches); ok && err == nil && b.base <= r.pos {
		return nil // it was cut while it was read
	}
	return r.expired(answer.LogStartOffset)
}

func (r *reader) expired(floor int64) error {
	return changed(r.name(), "offsets %d to %d were planned and deleted before they were read; the log begins at %d now", r.pos, min(floor, r.part.To)-1, floor)
}

// failed deals with an error of a fetch: a pause, or what it comes to.
func (r *reader) failed(ctx context.Context, err error) error {
	r.topic = nil
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kerr.OffsetOutOfRange):
		if r.outside++; r.outside >= outOfRange {
			return r.lost(ctx)
		}
		return r.pause(ctx, err)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID), r.s.passing(err):
		return r.pause(ctx, err)
	}
	return r.s.words("partition "+r.name(), err)
}

// lost says why an offset of the part is out of range.
func (r *reader) lost(ctx context.Context) error {
	k := []partition{r.part.key()}
	floors, err := r.s.offsets(ctx, k, atStart)
	if err != nil {
		return err
	}
	if f, ok := floors[k[0]]; ok && f.offset > r.pos {
		return r.expired(f.offset)
	}
	ends, err := r.s.offsets(ctx, k, atEnd)
	if err != nil {
		return err
	}
	return changed(r.name(), "the log was cut at offset %d, and it had been planned up to %d", ends[k[0]].offset, r.part.To)
}

// leader finds the partition's leader, or none after a pause. It asserts that the topic is the one that was planned, and
// that a new leader's log reaches as far as the plan.
func (r *reader) leader(ctx context.Context) (int32, error) {
	p := r.part
	if r.topic == nil {
		fresh := r.backoff.spent > 0
		t, err := r.s.topic(ctx, p.Topic, fresh)
		if err != nil {
			return none, err
		}
		if !fresh && t != nil && p.ID != "" && t.id != p.ID {
			t, err = r.s.topic(ctx, p.Topic, true)
		}
		switch {
		case err != nil:
			return none, err
		case t == nil:
			return none, changed(r.name(), "the topic is gone; offsets %d to %d were planned and not read", r.pos, p.To-1)
		case p.ID != "" && t.id != "" && t.id != p.ID:
			return none, changed(r.name(), "the topic was deleted and made anew: its id was %s and is %s; offsets %d to %d of the old one were planned and not read",
				p.ID, t.id, r.pos, p.To-1)
		}
		r.topic = t
	}
	info, ok := r.topic.parts[p.Partition]
	if !ok || info.leader < 0 {
		r.topic = nil
		return none, r.pause(ctx, fmt.Errorf("partition %s: %w", r.name(), kerr.LeaderNotAvailable))
	}
	return info.leader, r.validate(ctx, info.epoch)
}

// validate asks a leader of another epoch than the plan's whether its log reaches as far as the plan.
func (r *reader) validate(ctx context.Context, epoch int32) error {
	if r.part.Epoch == none || epoch == none || epoch <= r.sound {
		return nil
	}
	end, err := r.s.epochEnd(ctx, r.part.key(), r.part.Epoch)
	if err != nil {
		return err
	}
	if end != none && end < r.part.To {
		if same, err := r.s.same(ctx, r.part.Topic, r.part.ID); err != nil || !same {
			r.topic = nil // the end is that of another topic, which is said of the next look
			return cmp.Or(err, r.pause(ctx, errors.New("the topic is another one")))
		}
		return changed(r.name(), "the log was cut at offset %d, and it had been planned up to %d: what it held there is gone", end, r.part.To)
	}
	r.sound = epoch
	return nil
}

// fetchOnce makes one request of a partition's leader; nil when the answer does not have the partition, as when the broker
// throttles us.
func (s *Source) fetchOnce(ctx context.Context, p *part, t *topicInfo, pos int64, bytes int32, isolation int8) (*kmsg.FetchResponseTopicPartition, error) {
	info := t.parts[p.Partition]
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, fetchWait, 1, bytes
	req.SessionEpoch, req.IsolationLevel = -1, isolation
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = p.Topic, t.raw
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.FetchOffset, rp.PartitionMaxBytes = p.Partition, info.epoch, pos, bytes
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer, err := s.client.Broker(int(info.leader)).Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, ok := answer.(*kmsg.FetchResponse)
	if !ok {
		return nil, fmt.Errorf("a fetch is answered with %T", answer)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if a := &resp.Topics[i].Partitions[j]; a.Partition == p.Partition {
				return a, nil
			}
		}
	}
	return nil, nil
}

// nobody takes records and does nothing with them.
type nobody struct{}

func (nobody) Write(*abi.Record) error                  { return nil }
func (nobody) Reject(*abi.Record, string, string) error { return nil }
