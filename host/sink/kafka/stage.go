package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// stagedVersion is the version of what a decision keeps of this target.
const stagedVersion = 1

// stagedRecord is what a decision keeps: for people, and to tell attempts apart.
type stagedRecord struct {
	Version int    `json:"version"`
	Attempt string `json:"attempt"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// Stage produces a batch and its marker in a transaction and waits until every record is acknowledged: what a broker has
// against one of them is said here.
func (t *Target) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	lanes, rec, err := t.lanesOf(out)
	if err != nil {
		return nil, err
	}
	if !t.exact() {
		if err := t.readyPlain(ctx); err != nil {
			return nil, err
		}
		t.partial.keep(out, lanes)
		return json.Marshal(rec)
	}
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	if t.newest.Batch >= out.Batch {
		return json.Marshal(rec) // Publish says whether it is the same
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.TransactionTimeout-t.cfg.margin())
	defer cancel()
	if err := t.checkTopics(ctx, lanes); err != nil {
		return nil, err
	}
	mark, err := json.Marshal(marker{Version: markerVersion, Query: t.query, Batch: out.Batch, Digest: out.Digest, Attempt: out.Attempt})
	if err != nil {
		return nil, err
	}
	q, g := t.markerCargo(out.TimeMS, []byte(t.ID()), mark)
	g.load(uint64(out.Batch), lanes, &t.at)
	g.close(t.press)
	t.session.settled(ctx)
	st := &staged{batch: out.Batch, digest: out.Digest, attempt: out.Attempt, since: t.wall()}
	if err := t.session.send(ctx, g, &t.at); err != nil {
		return nil, fmt.Errorf("stage batch %d: %w", out.Batch, t.failed(ctx, err, t.wall().Sub(st.since)))
	}
	st.offset, st.alarm = q.offset, t.alarm(out.Batch)
	t.staged = st
	return json.Marshal(rec)
}

// alarm warns when a batch that is staged is not published for half of the time that the broker gives it.
func (t *Target) alarm(batch checkpoint.BatchID) *time.Timer {
	half := t.cfg.TransactionTimeout / 2
	err := fault.New(CodeSlow, t.place(), fmt.Errorf("the transaction of batch %d is open for more than %s, the broker ends it after %s", batch, half, t.cfg.TransactionTimeout),
		"see why it is not published: a slow checkpoint directory or another target; or raise `transactionTimeout` of the sink")
	return time.AfterFunc(half, func() { t.cfg.Warn(err) })
}

// markerCargo returns a cargo with a record for the marker topic.
func (t *Target) markerCargo(ms int64, key, value []byte) (*queue, *cargo) {
	g := &cargo{batchMS: ms, queues: map[place]*queue{}}
	q := g.queue(place{topic: t.markerTopic()}, &t.at)
	c := newChunk(len(key) + len(value) + recordOverhead)
	c.add(&abi.Record{Key: key, Value: value}, none, batchTime)
	g.put(q, c)
	return q, g
}

// lanesOf checks and counts the lanes of a batch.
func (t *Target) lanesOf(out sink.Output) ([]*lane, stagedRecord, error) {
	rec := stagedRecord{Version: stagedVersion, Attempt: out.Attempt}
	var lanes []*lane
	for _, s := range out.Sinks {
		for _, l := range s.Lanes {
			mine, ok := l.(*lane)
			if !ok || t.sinks[s.Name] != mine.route {
				return nil, rec, fmt.Errorf("stage batch %d: target %s: sink %q has a lane of something else: %T", out.Batch, t.ID(), s.Name, l)
			}
			lanes = append(lanes, mine)
			rec.Records += mine.Rows()
			rec.Bytes += mine.Bytes()
		}
	}
	return lanes, rec, nil
}

// ready sees to it that there is a producer without a transaction.
func (t *Target) ready(ctx context.Context) error {
	if t.fencedBy != nil {
		return t.fenced(t.fencedBy)
	}
	if t.base == nil {
		return fmt.Errorf("stage: target %s is not open", t.ID())
	}
	if t.staged != nil {
		if err := t.abandon(ctx); err != nil {
			return err
		}
	}
	if t.session != nil && !t.session.spent && !t.session.doubtful() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	was := t.newest
	if err := t.takeOver(ctx); err != nil {
		return err
	}
	if t.newest.published() == was.published() {
		return nil
	}
	t.fencedBy = t.conflict(was.Batch+1, fmt.Errorf("batch %d was the last one published, now it is %d", was.Batch, t.newest.Batch))
	t.drop(ctx)
	return t.fencedBy
}

// failed gives the producer up after an error.
func (t *Target) failed(ctx context.Context, err error, age time.Duration) error {
	if isFenced(err) && age < t.expiry() {
		t.fencedBy = err
	}
	f := t.sendFault(err, age)
	t.drop(ctx)
	return f
}
