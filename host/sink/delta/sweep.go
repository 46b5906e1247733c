package delta

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/partition"
)

// maxSweep bounds the memory of a sweep: 16 bytes or so a file. A larger table is not swept.
const maxSweep = 8 << 20

// sweeper is when what was last tidied.
type sweeper struct {
	next       time.Time
	checkpoint bool // of the log is due
}

// committed tells of an entry that was written on base. A checkpoint is due whenever the versions pass a multiple of the
// interval, whoever wrote them.
func (s *sweeper) committed(base *delta.Snapshot, interval int) {
	every := int64(base.CheckpointInterval(interval))
	s.checkpoint = s.checkpoint || (base.Version+1)%every == 0
}

// Sealed tidies: a checkpoint of the log when it is due; files of attempts that came to nothing once in a grace time.
func (t *Target) Sealed(ctx context.Context, batch checkpoint.BatchID) error {
	var err error
	if t.sweeps.checkpoint {
		t.sweeps.checkpoint = false // one that fails is tried again when the next is due
		err = t.wrap("write a checkpoint of the table's log", t.checkpointLog(ctx))
	}
	if now := t.now(); !now.Before(t.sweeps.next) {
		t.sweeps.next = now.Add(t.cfg.Grace)
		err = errors.Join(err, t.wrap("tidy the table's directory", t.sweep(ctx, batch, now)))
	}
	return err
}

func (t *Target) checkpointLog(ctx context.Context) error {
	if err := t.refresh(ctx); err != nil {
		return err
	}
	return t.log.WriteCheckpoint(ctx, t.base)
}

// sweep removes data files of this query that no entry names: left-overs of batches below sealed, older than the grace time.
// Young enough it must also be: a file that was in the table once and is no longer has a tombstone in the log for as long as
// the table keeps deleted files. Beyond half that time nobody can tell the two apart, and VACUUM removes both.
func (t *Target) sweep(ctx context.Context, sealed checkpoint.BatchID, now time.Time) error {
	if err := t.refresh(ctx); err != nil || t.base == nil {
		return err
	}
	s := &sweep{
		t: t, sealed: sealed, named: map[uint64]struct{}{},
		before: now.Add(-t.cfg.Grace), after: now.Add(-t.base.FileRetention() / 2),
	}
	for a := range t.base.Files() {
		s.name(a.Path)
	}
	for r := range t.base.Tombstones() {
		s.name(r.Path)
	}
	if len(s.named) >= maxSweep {
		return nil
	}
	return partition.Walk(ctx, t.files, t.dir, len(t.base.Metadata.PartitionColumns), s.remove)
}

type sweep struct {
	t             *Target
	sealed        checkpoint.BatchID
	before, after time.Time
	named         map[uint64]struct{} // hashes of relative paths that stay
}

func (s *sweep) name(logged string) {
	if p, err := delta.FilePath(logged); err == nil && len(s.named) < maxSweep {
		s.named[xxh3.HashString(p)] = struct{}{}
	}
}

// remove removes what is an orphan.
func (s *sweep) remove(rel string, i durable.Info) error {
	if !s.orphan(rel, i) {
		return nil
	}
	if err := s.t.files.Remove(path.Join(s.t.dir, rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep %s: %w", rel, err)
	}
	return nil
}

func (s *sweep) orphan(rel string, i durable.Info) bool {
	f := partForm.FindStringSubmatch(i.Name)
	if f == nil || f[1] != s.t.tag || !i.ModTime.Before(s.before) || i.ModTime.Before(s.after) {
		return false
	}
	batch, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || checkpoint.BatchID(batch) >= s.sealed {
		return false
	}
	_, stays := s.named[xxh3.HashString(rel)]
	return !stays
}
