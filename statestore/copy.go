package statestore

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// OpenCopy builds the state as of the end of a sealed batch a second time, beside the job that has it open: from the newest
// snapshot up to the batch and the changelogs after it, which are read and left as they are. changed is the newest batch up
// to there that has changed the state; -1 stands for the empty state. attempt is the one at it that was decided, "" when that
// is no longer known. Views of changed can be taken, and of nothing older.
//
// The backend must be one of its own: cfg.Backend says where. Files of the job may go while they are read. The error then
// wraps ErrMissing or fs.ErrNotExist, and another try finds newer ones; that of a batch that is too old for what there is
// does so each time.
func OpenCopy(ctx context.Context, cfg Config, changed int64, attempt string) (*Store, error) {
	cfg.Files, cfg.SnapshotBatches, cfg.Events = readOnly{cfg.Files}, -1, Events{Warning: cfg.Events.Warning}
	s, err := Open(ctx, cfg)
	if err != nil || changed < 0 {
		return s, err
	}
	if err = s.rebuild(ctx, changed, math.MaxInt64, nil); err == nil {
		err = s.followTip(ctx, changed, attempt)
	}
	if err != nil {
		_ = s.Close() // what was copied is given up
		return nil, fmt.Errorf("copy the state of batch %d: %w", changed, err)
	}
	return s, nil
}

// followTip loads the changelog of a sealed batch that follows on the state. No changelog confirms it, and none has to: once a
// batch is sealed there is that of one attempt.
func (s *Store) followTip(ctx context.Context, batch int64, attempt string) error {
	if s.Last() >= batch {
		return nil
	}
	attempts, bad := s.heads(batch)
	s.mu.Lock()
	from := s.link
	s.mu.Unlock()
	attempts = slices.DeleteFunc(attempts, func(a changelogFile) bool {
		return a.meta.After != from || attempt != "" && a.attempt != attempt
	})
	switch {
	case len(attempts) == 1:
		return s.Load(ctx, batch, attempts[0].attempt, attempts[0].meta.Digest)
	case len(attempts) == 0 && bad != nil:
		return bad
	}
	return &FileError{
		File: path.Join(s.dir, changelogDir), Batch: batch, Offset: -1, Err: ErrMissing,
		Detail: fmt.Sprintf("there are %d changelogs that follow on batch %d", len(attempts), from.Batch),
	}
}

// readOnly is a file system in which nothing is written, and nothing goes.
type readOnly struct{ durable.Files }

func refused(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission} }

func (readOnly) Create(name string) (durable.File, error) { return nil, refused("create", name) }
func (readOnly) Link(name, _ string) error                { return refused("link", name) }
func (readOnly) Rename(name, _ string) error              { return refused("rename", name) }
func (readOnly) Lock(name, _ string) (io.Closer, error)   { return nil, refused("lock", name) }
func (readOnly) MkdirAll(name string) error               { return refused("mkdir", name) }

// Remove leaves the file: the store that has it open removes what is in the way, which here is another's.
func (readOnly) Remove(string) error { return nil }
