package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sink"
)

// Publish commits the staged transaction of a decided batch.
func (t *Target) Publish(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
	if !t.exact() {
		return t.partial.publish(ctx, t, d)
	}
	if done, err := t.has(d); done || err != nil {
		return err
	}
	if t.fencedBy != nil {
		return t.fenced(t.fencedBy)
	}
	if t.session == nil {
		return t.outcome(ctx, d, nil, errNoProducer)
	}
	if err := t.fits(ctx, d, s); err != nil {
		return err
	}
	st := t.staged
	t.unstage()
	ending, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	if err := t.session.end(ending, true); err != nil {
		t.session.open = false // whoever takes the id over ends it: an abort must not run after a commit that may be under way
		return t.outcome(ctx, d, st, err)
	}
	t.newest = marker{Version: markerVersion, Query: t.query, Batch: d.Batch, Digest: d.Digest, Attempt: st.attempt}
	return nil
}

// errNoProducer stands for the error that a producer was given up for: what it had sent may be committed.
var errNoProducer = errors.New("the producer was given up")

// has says whether a decided batch is published, as far as is known, and refuses what contradicts it.
func (t *Target) has(d *checkpoint.Decision) (bool, error) {
	switch {
	case t.newest.Batch < d.Batch:
		return false, nil
	case t.newest.Batch == d.Batch && t.newest.Digest == d.Digest:
		return true, nil
	}
	return false, t.conflict(d.Batch, fmt.Errorf("batch %d with digest %s is published, not batch %d with digest %s", t.newest.Batch, t.newest.Digest, d.Batch, d.Digest))
}

func (t *Target) conflict(batch checkpoint.BatchID, err error) error {
	return fault.New(CodeConflict, t.place()+", topic "+t.markerTopic(), fmt.Errorf("publish batch %d: %w", batch, err),
		"see that one process alone runs this checkpoint, and no copy of it, then start again")
}

// fits says whether what is staged is what was decided, and still young enough to be committed.
func (t *Target) fits(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
	lost := func(why string) error {
		return fmt.Errorf("publish batch %d: %s: %w", d.Batch, why, sink.ErrLost)
	}
	st := t.staged
	if st == nil || st.batch != d.Batch {
		return lost("no transaction is open for it")
	}
	var rec stagedRecord
	if len(s) > 0 {
		if err := json.Unmarshal(s, &rec); err != nil {
			return fmt.Errorf("publish batch %d: read what was staged: %w", d.Batch, err)
		}
	}
	if rec.Attempt != "" && rec.Attempt != st.attempt {
		return lost("the open transaction is of another attempt")
	}
	if st.digest != d.Digest {
		return t.conflict(d.Batch, fmt.Errorf("digest %s was staged, %s was decided", st.digest, d.Digest))
	}
	if age := t.wall().Sub(st.since); age >= t.cfg.TransactionTimeout-t.cfg.margin() {
		t.drop(ctx)
		return lost(fmt.Sprintf("it was staged %s ago, the broker ends a transaction after %s", age, t.cfg.TransactionTimeout))
	}
	return nil
}

// outcome finds out what became of a commit that was answered with an error, or not at all.
func (t *Target) outcome(ctx context.Context, d *checkpoint.Decision, st *staged, cause error) error {
	if t.base == nil {
		return fmt.Errorf("publish batch %d: target %s is not open", d.Batch, t.ID())
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	if isFenced(cause) {
		return t.shutOut(ctx, d, st, cause)
	}
	if err := t.takeOverPatiently(ctx); err != nil {
		return fmt.Errorf("publish batch %d: it is not known whether it is committed: %w", d.Batch, errors.Join(err, cause))
	}
	if done, err := t.has(d); done || err != nil {
		return err
	}
	return fmt.Errorf("publish batch %d: not committed: %w (%w)", d.Batch, sink.ErrLost, cause)
}

// takeOverPatiently tries again while no broker can be reached: one that went down with the answer may be back soon.
func (t *Target) takeOverPatiently(ctx context.Context) error {
	for wait := retryPause; ; wait = min(2*wait, longestPause) {
		err := t.takeOver(ctx)
		if err == nil || !passing(err) || pause(ctx, wait) != nil {
			return err
		}
	}
}

const longestPause = 2 * time.Second

// passing tells an error of the way to the cluster, or a passing one of a broker, from what we know to be wrong.
func passing(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && (f.Code() == kafkaconn.CodeUnreachable || f.Code() == kafkaconn.CodeBroker) && kafkaconn.IsPassing(err, true)
}

// shutOut ends as the owner of the id. The commit may have been carried out before a repetition of it was refused; whoever
// has the id now waits until that is decided, so that it shows, without another duel.
func (t *Target) shutOut(ctx context.Context, d *checkpoint.Decision, st *staged, cause error) error {
	expired := t.wall().Sub(st.since) >= t.expiry()
	if !expired {
		t.fencedBy = cause
	}
	t.drop(ctx)
	end, err := t.decidedBeyond(ctx, st.offset)
	if err == nil {
		t.newest, err = t.readMarker(ctx, end, seen)
	}
	if err != nil {
		return errors.Join(t.fenced(cause), err)
	}
	if done, err := t.has(d); done || err != nil {
		return err
	}
	if expired {
		return fmt.Errorf("publish batch %d: the broker has ended its transaction: %w (%w)", d.Batch, sink.ErrLost, cause)
	}
	return fmt.Errorf("publish batch %d: %w", d.Batch, t.fenced(cause))
}

// decidedBeyond waits until the record at an offset of the marker topic is decided, and returns up to where all are.
func (t *Target) decidedBeyond(ctx context.Context, offset int64) (int64, error) {
	topic := t.markerTopic()
	for {
		all, err := t.admin().ListCommittedOffsets(ctx, topic)
		stable, err := offsetOf(all, topic, err)
		if err != nil {
			return 0, t.brokerFault("topic "+topic, err)
		}
		if stable > offset {
			return stable, nil
		}
		if err := pause(ctx, retryPause); err != nil {
			return 0, t.brokerFault("topic "+topic, fmt.Errorf("wait until offset %d is decided: %w", offset, err))
		}
	}
}
