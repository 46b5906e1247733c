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

// CheckState reads the changelogs that the retained decisions of a checkpoint name, and says which are missing or not what
// was written. It takes nothing over and writes nothing, so the job may be running.
func CheckState(ctx context.Context, files durable.Files, dir string) ([]checkpoint.Finding, error) {
	r, err := checkpoint.OpenReader(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	oldest, newest, err := r.Kept(ctx)
	if err != nil || newest == checkpoint.NoBatch {
		return nil, err
	}
	var found []checkpoint.Finding
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
		found = append(found, checkpoint.Finding{Code: f.ErrCode, File: below(dir, f.Place), Message: changelogWords(id, err), WayOut: f.WayOut})
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

func changelogWords(id checkpoint.BatchID, err error) string {
	f, ok := errors.AsType[*statestore.FileError](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("what batch %d changed of the state: %v", id, f.Err)
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	if f.Offset >= 0 {
		text += fmt.Sprintf(", at byte %d", f.Offset)
	}
	return text
}
