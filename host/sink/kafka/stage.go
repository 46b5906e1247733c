package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
	t.settled(ctx)
	st := &staged{batch: out.Batch, digest: out.Digest, attempt: out.Attempt, since: t.wall()}
	if err := t.produce(ctx, out, lanes, st); err != nil {
		return nil, fmt.Errorf("stage batch %d: %w", out.Batch, err)
	}
	t.staged = st
	return json.Marshal(rec)
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
			rec.Bytes += int64(len(mine.data))
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
	if t.producer != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	was := t.newest
	if err := t.takeOver(ctx); err != nil {
		return err
	}
	if t.newest.published() != was.published() {
		return t.conflict(was.Batch+1, fmt.Errorf("batch %d was published meanwhile", t.newest.Batch))
	}
	return nil
}

// produce sends a batch. After an error the producer is gone.
func (t *Target) produce(ctx context.Context, out sink.Output, lanes []*lane, st *staged) error {
	mark, err := json.Marshal(marker{Version: markerVersion, Query: t.query, Batch: out.Batch, Digest: out.Digest, Attempt: out.Attempt})
	if err != nil {
		return err
	}
	cl := t.producer
	if err := cl.BeginTransaction(); err != nil {
		return t.failed(ctx, nil, lanes, err)
	}
	var data, last flight
	t.build(out, lanes)
	for i := range t.records {
		data.launch(ctx, cl, &t.records[i])
	}
	last.launch(ctx, cl, &kgo.Record{Topic: t.markerTopic(), Key: []byte(t.ID()), Value: mark, Timestamp: time.UnixMilli(out.TimeMS)})
	for _, f := range []*flight{&data, &last} {
		if r, err := f.land(ctx, cl); err != nil {
			return t.failed(ctx, r, lanes, err)
		}
	}
	st.offset = last.last
	return nil
}

// build makes the batch's records, in the memory of the batch before. Those without a key get their position, from the
// batch's id on, so that small batches do not all begin at one partition.
func (t *Target) build(out sink.Output, lanes []*lane) {
	rows, heads := 0, 0
	for _, l := range lanes {
		rows += len(l.entries)
		heads += len(l.headers)
	}
	if cap(t.records) < rows {
		t.records = make([]kgo.Record, 0, rows+rows/4)
	}
	if cap(t.heads) < heads {
		t.heads = make([]kgo.RecordHeader, 0, heads+heads/4)
	}
	t.records, t.heads = t.records[:0], t.heads[:0]
	for _, l := range lanes {
		t.records, t.heads = l.build(t.records, t.heads, out.TimeMS)
	}
	for i := range t.records {
		t.records[i].Partition = int32((uint64(out.Batch) + uint64(i)) & 0x7fffffff)
	}
}

// failed gives the producer up after an error. The client may still be sending: the memory it sends from is left to it.
func (t *Target) failed(ctx context.Context, r *kgo.Record, lanes []*lane, err error) error {
	for _, l := range lanes {
		l.take()
	}
	t.records, t.heads = nil, nil
	if isFenced(err) {
		t.fencedBy = err
	}
	f := t.flightFault(r, err)
	t.drop(ctx)
	return f
}

// The brokers finish a transaction after the answer to its end. A record for the next one that comes before is turned away
// and tried again only after add.partitions.to.txn.retry.backoff.ms, 20 by default. So we ask, for about that long.
const (
	settleTime  = 20 * time.Millisecond
	settlePause = 300 * time.Microsecond
)

// settled waits a little until the brokers are done with the last transaction. It is only about time.
func (t *Target) settled(ctx context.Context) {
	if t.now().Sub(t.ended) > 2*settleTime {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for t.unfinished(ctx) && pause(ctx, settlePause) == nil {
		continue
	}
}

// unfinished tells that the transaction's outcome is decided but not yet written everywhere.
func (t *Target) unfinished(ctx context.Context) bool {
	all, err := t.admin().DescribeTransactions(ctx, t.txnID())
	if err != nil {
		return false
	}
	switch all[t.txnID()].State {
	case "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
		return true
	}
	return false
}
