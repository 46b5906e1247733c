package delta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// Tries to publish beside other writers, and the waits between them: the first follows at once.
const (
	maxTries   = 1000
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// Publish writes the batch's entry into the log.
func (t *Target) Publish(ctx context.Context, d *checkpoint.Decision, s sink.Staged) error {
	st, err := parseStaged(s)
	if err != nil {
		err = t.fail(CodeDamaged, "run `wasmill checkpoint verify`; restore the checkpoint from a backup, or "+beginAnew, "%w", err)
	}
	if err == nil && !digestForm.MatchString(d.Digest) {
		err = fmt.Errorf("%q is no batch digest", d.Digest)
	}
	if err == nil {
		err = t.publish(ctx, d, st)
	}
	if err != nil {
		return t.wrap(fmt.Sprintf("publish batch %d", d.Batch), err)
	}
	return nil
}

// publish tries until the entry is there: this one's, or another's with the same batch.
func (t *Target) publish(ctx context.Context, d *checkpoint.Decision, st *staged) error {
	id := identity{t.marks.app, d.Batch, d.Digest, st.Attempt}
	for try := range maxTries {
		if err := t.pause(ctx, id, try); err != nil {
			return err
		}
		if err := t.refresh(ctx); err != nil {
			return err
		}
		done, err := t.isPublished(d)
		if err == nil && done {
			err = t.settle() // whoever made the entry may not have come to make it durable
		}
		if err != nil {
			return err
		}
		if !done {
			if err := t.ready(ctx, st, try == 0); err != nil {
				return err
			}
			var actions []delta.Action
			if actions, err = t.actions(id, st); err != nil {
				return err
			}
			if _, err = t.log.Commit(ctx, t.base, actions); errors.Is(err, delta.ErrExists) {
				continue
			}
			if err != nil {
				return err // recovery finds out whether it is there
			}
		}
		t.advance(id, st, done)
		return nil
	}
	return fault.Passing(CodeBusy, t.dir, fmt.Errorf("other writers were faster %d times", maxTries), "let fewer writers commit to the table at the same time")
}

// pause waits before a try, longer each time and never twice as long: writers that lost the same race must not meet again.
func (t *Target) pause(ctx context.Context, id identity, try int) error {
	if err := ctx.Err(); err != nil || try < 2 {
		return err
	}
	limit := min(maxPause, firstPause<<min(try, 20))
	h := id.hash("pause " + strconv.Itoa(try))
	return t.cfg.Wait(ctx, time.Duration(binary.BigEndian.Uint64(h[:])%uint64(limit)))
}

// isPublished holds what the table says against a decision. An error: another process publishes for the same query, or the
// table has lost what it said.
func (t *Target) isPublished(d *checkpoint.Decision) (bool, error) {
	p, _, err := t.marks.published(t.base)
	switch {
	case err != nil:
		return false, t.fail(CodeDamaged, beginAnew, "%w", err)
	case p.Batch == d.Batch && p.Digest == d.Digest:
		return true, nil
	case p.Batch == d.Batch:
		return false, t.conflict(d, "it is published with digest %s", p.Digest)
	case p.Batch > d.Batch:
		return false, t.conflict(d, "the table is at batch %d already", p.Batch)
	case p == t.last:
		return false, nil
	case p.Batch == checkpoint.NoBatch:
		return false, t.fail(CodeExpired, "unset the table property delta.setTransactionRetentionDuration if it has one, and "+beginAnew,
			"the table no longer knows that batch %d is published: its txn has expired, or an older state of the table was restored", t.last.Batch)
	}
	return false, t.conflict(d, "the table says that batch %d with digest %s is published, this process knows of batch %d", p.Batch, p.Digest, t.last.Batch)
}

func (t *Target) conflict(d *checkpoint.Decision, format string, args ...any) error {
	return t.fail(CodeConflict, whoElse, "batch %d with digest %s cannot be published: %s", d.Batch, d.Digest, fmt.Sprintf(format, args...))
}

// ready checks that what was staged can become visible on the newest version. sink.ErrLost when it cannot.
func (t *Target) ready(ctx context.Context, st *staged, first bool) error {
	if first {
		if err := t.unknown(st); err != nil {
			return err
		}
	}
	if err := t.findParts(st, first); err != nil {
		return err
	}
	if st.Table != "" && t.base == nil {
		return t.fail(CodeRecreated, "put the table back; or "+beginAnew, "the table with id %s is gone", st.Table)
	}
	if st.Table != "" && t.base.Metadata.ID != st.Table {
		return t.fail(CodeRecreated, "put the table back as it was; or "+beginAnew, "the table was made anew: its id is %s, the batch was staged for %s", t.base.Metadata.ID, st.Table)
	}
	if _, err := t.layoutOf(st); err != nil {
		return fmt.Errorf("%w: the table has changed: %w", sink.ErrLost, err)
	}
	if !st.upsert() {
		return nil
	}
	return t.unchanged(ctx, st)
}

// findParts checks that the files are there. What this process has not written it reads, once; of the rest it looks at the size.
func (t *Target) findParts(st *staged, first bool) error {
	for i := range st.Parts {
		p := &st.Parts[i]
		look := t.holds
		if _, ours := t.fresh[p.Path]; ours || !first {
			look = t.stands
		}
		ok, err := look(p)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		if t.base != nil {
			if _, forgets := t.base.TxnRetention(); forgets {
				return t.forgotten("file %s is gone, and the table forgets what is published: it may have been in the table and removed", p.Path)
			}
		}
		return fmt.Errorf("file %s: %w", p.Path, sink.ErrLost)
	}
	return nil
}

// unknown checks that the table has never heard of the files that an earlier process has staged: a table that has forgotten
// the txn of a batch may still show, or remember as removed, what the batch brought.
func (t *Target) unknown(st *staged) error {
	if t.base == nil {
		return nil
	}
	staged := map[string]bool{}
	for i := range st.Parts {
		name := st.Parts[i].Path
		if _, ours := t.fresh[name]; ours {
			continue
		}
		if _, live := t.base.File(name); live {
			return t.forgotten("file %s is in the table already", name)
		}
		staged[name] = true
	}
	if len(staged) == 0 {
		return nil
	}
	for r := range t.base.Tombstones() {
		if name, err := delta.FilePath(r.Path); err == nil && staged[name] {
			return t.forgotten("file %s was in the table and is removed", name)
		}
	}
	return nil
}

func (t *Target) forgotten(format string, args ...any) error {
	return t.fail(CodeExpired, "unset the table property delta.setTransactionRetentionDuration if it has one, and "+beginAnew,
		"the table no longer knows that the batch is published: %s", fmt.Sprintf(format, args...))
}

// layoutOf checks what was staged, by whatever settings, against the newest version.
func (t *Target) layoutOf(st *staged) (*layout, error) {
	w := t.want()
	if st.Schema != t.schema {
		schema, err := delta.ParseSchema(st.Schema)
		if err != nil {
			return nil, err
		}
		w.schema = schema
	}
	w.partition, w.addColumns = st.Partition, st.AddColumns
	if w.partition == nil {
		w.partition = []string{} // none at all, not any
	}
	l, err := t.layoutFor(t.base, w)
	if err == nil && t.base != nil && st.upsert() && l.schemaString(t.base) != st.TableSchema {
		return nil, errors.New("its schema is another one")
	}
	return l, err
}

// schemaString is the table's schema as it is after the batch.
func (l *layout) schemaString(base *delta.Snapshot) string {
	if l.evolved != "" || base == nil {
		return l.evolved
	}
	return base.Metadata.SchemaString
}

// advance takes over what the entry says.
func (t *Target) advance(id identity, st *staged, done bool) {
	t.last = sink.Published{Batch: id.batch, Digest: id.digest}
	for i := range st.Parts {
		delete(t.fresh, st.Parts[i].Path)
	}
	switch {
	case t.base != nil:
		t.table = t.base.Metadata.ID
	default:
		t.table = id.uuid("table")
	}
	if !done && t.base != nil {
		t.sweeps.committed(t.base, t.cfg.CheckpointInterval)
	}
}
