package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/statestore"
)

// CheckState reads the changelogs that the retained decisions of a checkpoint name, and the snapshots of the state, and says
// which are missing or not what was written. It takes nothing over and writes nothing, so the job may be running.
func CheckState(ctx context.Context, files durable.Files, dir string) ([]checkpoint.Finding, error) {
	r, err := checkpoint.OpenReader(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	oldest, newest, err := r.Kept(ctx)
	if err != nil || newest == checkpoint.NoBatch {
		return nil, err
	}
	found, err := checkSnapshots(ctx, files, dir, r.QueryID())
	if err != nil {
		return nil, err
	}
	for id := oldest; id <= newest; id++ {
		d, err := r.Decision(ctx, id)
		if missing(err) {
			continue // the last batch, not decided, or one that went meanwhile
		}
		if err != nil {
			return nil, err
		}
		if d.State == "" {
			continue
		}
		err = statestore.CheckChangelog(ctx, files, stateDir(dir), r.QueryID(), int64(id), d.Attempt, d.State)
		if err == nil || errors.Is(err, statestore.ErrMissing) && gone(ctx, r, id) {
			continue
		}
		f, ok := errors.AsType[*fault.Error](stateFault(err))
		if !ok {
			return nil, err
		}
		found = append(found, checkpoint.Finding{Code: f.ErrCode, File: below(dir, f.Place), Message: fmt.Sprintf("what batch %d changed of the state: %s", id, wordsOf(err)), WayOut: f.WayOut})
	}
	return found, nil
}

// gone reports whether a running job has given a batch up meanwhile.
func gone(ctx context.Context, r *checkpoint.Reader, id checkpoint.BatchID) bool {
	oldest, _, err := r.Kept(ctx)
	return err == nil && id < oldest
}

// below is a file's name relative to the checkpoint.
func below(dir, file string) string {
	if rel, err := filepath.Rel(dir, file); err == nil {
		return filepath.ToSlash(rel)
	}
	return file
}

// wordsOf says what is wrong with a file without naming it.
func wordsOf(err error) string {
	f, ok := errors.AsType[*statestore.FileError](err)
	if !ok {
		return err.Error()
	}
	text := f.Err.Error()
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	if f.Offset >= 0 {
		text += fmt.Sprintf(", at byte %d", f.Offset)
	}
	return text
}

// checkSnapshots finds the snapshots that the store could not be built anew from. The job goes on without them.
func checkSnapshots(ctx context.Context, files durable.Files, dir, query string) ([]checkpoint.Finding, error) {
	wrong, err := statestore.CheckSnapshots(ctx, files, stateDir(dir), query)
	if err != nil {
		return nil, fmt.Errorf("read the snapshots of the state: %w", err)
	}
	var found []checkpoint.Finding
	for _, w := range wrong {
		f, ok := errors.AsType[*fault.Error](stateFault(w))
		if !ok {
			return nil, w
		}
		found = append(found, checkpoint.Finding{
			Code: f.ErrCode, File: below(dir, f.Place), Message: "a snapshot of the state: " + wordsOf(w), Note: true,
			WayOut: "keep the other ones and the changelogs, which the store is built from if it must be; newer snapshots take its place",
		})
	}
	return found, nil
}
