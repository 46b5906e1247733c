package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// Publish commits the staged transaction of a decided batch.
func (t *Target) Publish(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
	if t.exact() {
		if done, err := t.has(d); done || err != nil {
			return err
		}
	} else if t.newest.Batch == d.Batch && t.newest.Digest == d.Digest {
		return nil
	}
	switch {
	case t.fencedBy != nil:
		return t.fencedBy
	case t.query == "":
		return fmt.Errorf("publish batch %d: target %s is not open", d.Batch, t.ID())
	case t.conn == nil:
		return t.outcome(ctx, d, errNoConnection)
	}
	if err := t.matches(ctx, d, s); err != nil {
		return err
	}
	filled := t.staged.filled
	t.staged = nil
	ending, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	if err := t.conn.Commit(ending); err != nil {
		return t.outcome(ctx, d, err)
	}
	t.newest = sink.Published{Batch: d.Batch, Digest: d.Digest}
	for _, r := range filled {
		r.filled = true
	}
	return nil
}

// errNoConnection stands for the error that a connection was given up for.
var errNoConnection = errors.New("the connection was given up")

// has says whether a decided batch is published, as far as is known, and refuses what contradicts it.
func (t *Target) has(d *checkpoint.Decision) (bool, error) {
	switch {
	case t.newest.Batch < d.Batch:
		return false, nil
	case t.newest == sink.Published{Batch: d.Batch, Digest: d.Digest}:
		return true, nil
	}
	return false, t.conflict(d.Batch, fmt.Errorf("batch %d with digest %s is published, not batch %d with digest %s", t.newest.Batch, t.newest.Digest, d.Batch, d.Digest))
}

// matches says whether what is staged is what was decided, and still there.
func (t *Target) matches(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
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
	if age := t.wall().Sub(st.since); age >= t.cfg.Limits.Idle {
		t.drop(ctx)
		return lost(fmt.Sprintf("it was staged %s ago, a transaction may wait for %s", age, t.cfg.Limits.Idle))
	}
	return nil
}

// outcome finds out what became of a commit that was answered with an error, or not at all.
func (t *Target) outcome(ctx context.Context, d *checkpoint.Decision, cause error) error {
	t.drop(ctx)
	looking, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	err := t.patiently(looking, longestPause, func() error { return t.regain(looking) })
	if t.fencedBy != nil {
		t.drop(ctx)
		if done, _ := t.has(d); done {
			return nil // whoever has the target now took it over after this batch
		}
		return fmt.Errorf("publish batch %d: %w", d.Batch, t.fencedBy)
	}
	if err != nil {
		t.drop(ctx)
		return fmt.Errorf("publish batch %d: it is not known whether it is committed: %w", d.Batch, errors.Join(err, cause))
	}
	if t.exact() {
		if done, err := t.has(d); done || err != nil {
			return err
		}
	}
	if !errors.Is(cause, errNoConnection) {
		cause = t.fault(t.place(), cause)
	}
	return fmt.Errorf("publish batch %d: not committed: %w (%w)", d.Batch, sink.ErrLost, cause)
}
