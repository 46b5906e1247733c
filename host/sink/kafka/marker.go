package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// markerVersion is the version of a marker's value.
const markerVersion = 1

// marker is the value of a record in the marker topic. Its key is the connection's name.
type marker struct {
	Version int                `json:"version"`
	Query   string             `json:"query"`
	Batch   checkpoint.BatchID `json:"batch"`
	Digest  string             `json:"digest"` // of the batch
	Attempt string             `json:"attempt"`
}

func (m *marker) published() sink.Published { return sink.Published{Batch: m.Batch, Digest: m.Digest} }

// decodeMarker checks and returns a marker.
func (t *Target) decodeMarker(r *kgo.Record) (marker, error) {
	place := fmt.Sprintf("%s, topic %s, offset %d", t.place(), r.Topic, r.Offset)
	var m marker
	if err := json.Unmarshal(r.Value, &m); err != nil || m.Version < 1 || m.Batch < 0 || m.Digest == "" {
		return m, fault.New(CodeMarkerDamaged, place, errors.Join(errors.New("the record is no marker of Wasmill's"), err),
			"see who else writes to this topic; or "+wayOutFork)
	}
	if m.Version > markerVersion {
		return m, fault.New(CodeMarkerNewer, place, fmt.Errorf("the marker has version %d, this program knows %d", m.Version, markerVersion),
			"use the version of Wasmill that wrote it, or a later one")
	}
	if m.Query != t.query {
		return m, fault.New(CodeOtherQuery, place, fmt.Errorf("the marker is of query %s, the checkpoint's is %s", m.Query, t.query),
			"see who else writes to this topic; or "+wayOutFork)
	}
	return m, nil
}

// markerWindow is how many offsets before the end are searched first. A batch takes two, an aborted one too.
const markerWindow = 256

// owned and seen are the two ways to read the marker topic.
const (
	// owned is for who has taken the transactional id over: all that was written under it is decided, so nothing is waited
	// for, not even the open transaction of another connection to the same cluster.
	owned = iota
	// seen is as every reader of committed records has it.
	seen
)

// readMarker returns the newest committed marker before an offset.
func (t *Target) readMarker(ctx context.Context, upTo int64, way int) (marker, error) {
	l := markerLog{t: t, way: way}
	for window := int64(markerWindow); ; window *= 16 {
		from := max(0, upTo-window)
		last, err := l.last(ctx, from, upTo)
		if err != nil {
			return marker{}, t.brokerFault("topic "+t.markerTopic(), err)
		}
		if last != nil {
			return t.decodeMarker(last)
		}
		if from == 0 {
			return marker{Batch: checkpoint.NoBatch}, nil
		}
	}
}

// markerLog reads the marker topic by position, so that control records, aborted transactions and compacted gaps count.
type markerLog struct {
	t      *Target
	way    int
	found  bool
	id     [16]byte
	leader int32
}

const (
	markerBytes = 1 << 20
	fetchWait   = 50 * time.Millisecond
	retryPause  = 20 * time.Millisecond
)

// last returns the last of this connection's records in [from, upTo), or nil.
func (l *markerLog) last(ctx context.Context, from, upTo int64) (*kgo.Record, error) {
	var s markerScan
	for pos := from; pos < upTo; {
		recs, next, err := l.fetch(ctx, pos)
		switch {
		case errors.Is(err, kerr.OffsetOutOfRange):
			if next, err = l.start(ctx); err != nil {
				return nil, err
			}
			if next <= pos {
				return nil, fmt.Errorf("offset %d is out of range, though the topic was longer before", pos)
			}
		case err != nil && kerr.IsRetriable(err):
			l.found = false
			if pause(ctx, retryPause) != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		}
		for _, r := range recs {
			if r.Offset < upTo {
				s.add(r, l.t.ID())
			}
		}
		pos = max(pos, next)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("wait until offset %d of %d is decided: %w", pos, upTo, err)
		}
	}
	return s.result(), nil
}

// markerScan finds the last committed record of a key among records that may be aborted: a producer's next control record
// says which, and compaction keeps it for as long as it keeps a record of the transaction.
type markerScan struct {
	last *kgo.Record
	open map[int64]*kgo.Record // by producer
}

func (s *markerScan) add(r *kgo.Record, key string) {
	if r.Attrs.IsControl() {
		var c kmsg.ControlRecordKey
		if err := c.ReadFrom(r.Key); err == nil && c.Type != kmsg.ControlRecordKeyTypeAbort {
			s.commit(s.open[r.ProducerID])
		}
		delete(s.open, r.ProducerID)
		return
	}
	if string(r.Key) != key || r.Value == nil {
		return
	}
	if !r.Attrs.IsTransactional() {
		s.commit(r)
		return
	}
	if s.open == nil {
		s.open = map[int64]*kgo.Record{}
	}
	s.open[r.ProducerID] = r
}

func (s *markerScan) commit(r *kgo.Record) {
	if r != nil && (s.last == nil || r.Offset > s.last.Offset) {
		s.last = r
	}
}

func (s *markerScan) result() *kgo.Record {
	for _, r := range s.open {
		s.commit(r)
	}
	return s.last
}

// fetch reads from one position on. next is the position after what was read.
func (l *markerLog) fetch(ctx context.Context, pos int64) (recs []*kgo.Record, next int64, err error) {
	if err := l.locate(ctx); err != nil {
		return nil, 0, err
	}
	topic := l.t.markerTopic()
	part := kmsg.NewFetchRequestTopicPartition()
	part.FetchOffset, part.PartitionMaxBytes = pos, markerBytes
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID, of.Partitions = topic, l.id, []kmsg.FetchRequestTopicPartition{part}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(fetchWait.Milliseconds()), 1, markerBytes
	isolation := kgo.ReadUncommitted()
	if l.way == seen {
		isolation, req.IsolationLevel = kgo.ReadCommitted(), 1
	}
	req.SessionEpoch = -1
	req.Topics = []kmsg.FetchRequestTopic{of}
	raw, err := l.t.base.Broker(int(l.leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	resp, ok := raw.(*kmsg.FetchResponse)
	if !ok {
		return nil, 0, fmt.Errorf("a fetch is answered by %T", raw)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, 0, nil
	}
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: pos, Topic: topic, IsolationLevel: isolation, KeepControlRecords: true,
	}, &resp.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	return got.Records, next, got.Err
}

// locate finds the topic's leader.
func (l *markerLog) locate(ctx context.Context) error {
	if l.found {
		return nil
	}
	topic := l.t.markerTopic()
	meta, err := l.t.admin().Metadata(ctx, topic)
	if err != nil {
		return err
	}
	d := meta.Topics[topic]
	p, ok := d.Partitions[0]
	switch {
	case d.Err != nil:
		return d.Err
	case p.Err != nil:
		return p.Err
	case !ok || p.Leader < 0:
		return kerr.LeaderNotAvailable
	}
	l.found, l.id, l.leader = true, d.ID, p.Leader
	return nil
}

// start is where the topic begins.
func (l *markerLog) start(ctx context.Context) (int64, error) {
	topic := l.t.markerTopic()
	offsets, err := l.t.admin().ListStartOffsets(ctx, topic)
	return offsetOf(offsets, topic, err)
}
