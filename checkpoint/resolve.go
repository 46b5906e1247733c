package checkpoint

import (
	"context"
	"path"
	"regexp"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Action is what a user chose for a target that cannot publish a decided batch.
type Action string

// The actions.
const (
	// Skip: the target does without the batch.
	Skip Action = "skip"
	// Force: the target takes the batch as it comes out now, whatever the digests say.
	Force Action = "force"
)

// ResolutionRecord is a user's choice for one target and one batch, kept for good.
type ResolutionRecord struct {
	Version int     `json:"version"`
	Batch   BatchID `json:"batch"`
	Target  string  `json:"target"`
	Action  Action  `json:"action"`
	TimeMS  int64   `json:"timeMs"`
}

var targetForm = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}$`)

func resolutionName(batch BatchID, target string) string {
	return resolvedDir + "/" + strconv.FormatInt(int64(batch), 10) + "-" + target + ".json"
}

// Resolution returns what a user has chosen for a target and a batch with `checkpoint resolve`, nil when nothing.
func (l *Log) Resolution(ctx context.Context, batch BatchID, target string) (*ResolutionRecord, error) {
	return readResolution(ctx, l.files, l.dir, batch, target)
}

func readResolution(ctx context.Context, files durable.Files, dir string, batch BatchID, target string) (*ResolutionRecord, error) {
	if !targetForm.MatchString(target) {
		return nil, errorf(CodeInvalid, wayVerify, nil, "%.80q is no name of a target", target)
	}
	var r ResolutionRecord
	found, err := readNote(ctx, files, dir, resolutionName(batch, target), &r)
	if err != nil || !found {
		return nil, err
	}
	if r.Batch != batch || r.Target != target || (r.Action != Skip && r.Action != Force) {
		return nil, errorf(CodeUnreadable, wayVerify, []string{resolutionName(batch, target)}, "it does not belong to batch %d and target %s", batch, target)
	}
	return &r, nil
}

// Resolve leaves a durable record of a user's choice for a target that cannot publish the last, decided batch. No
// process may be running on the checkpoint. A skip cannot be taken back; a force that came to nothing can become one.
func Resolve(ctx context.Context, files durable.Files, dir string, batch BatchID, target string, action Action, opts Options) error {
	if action != Skip && action != Force {
		return errorf(CodeInvalid, "choose skip or force", nil, "%.40q is no choice", action)
	}
	if err := isCheckpoint(files, dir); err != nil {
		return err
	}
	return withLock(files, dir, opts, func(objects durable.Objects) error {
		before, err := readResolution(ctx, files, dir, batch, target)
		if err != nil {
			return err
		}
		if before != nil && before.Action == action {
			return nil
		}
		if before != nil && before.Action == Skip {
			return errorf(CodeInvalid, "run the job: it acts on that choice", []string{resolutionName(batch, target)}, "the choice was already made: %s", before.Action)
		}
		if err := mayResolve(ctx, files, dir, batch); err != nil {
			return err
		}
		text, err := marshal(ResolutionRecord{Version: formatVersion, Batch: batch, Target: target, Action: action, TimeMS: opts.Clock()})
		if err != nil {
			return err
		}
		if err := durable.MakeDir(files, path.Join(dir, resolvedDir)); err != nil {
			return ioError("make the directory", resolvedDir, err)
		}
		if err := files.SyncDir(dir); err != nil {
			return ioError("sync", dir, err)
		}
		return ioError("write", resolutionName(batch, target), objects.Replace(ctx, resolutionName(batch, target), text))
	})
}

// mayResolve checks that the batch is the last one and decided: any other is settled or not yet begun.
func mayResolve(ctx context.Context, files durable.Files, dir string, batch BatchID) error {
	v, err := look(ctx, files, dir)
	if err != nil {
		return err
	}
	if err := v.err(); err != nil {
		return err
	}
	if batch != v.offsets.last() || batch != v.commits.last() {
		return errorf(CodeInvalid, "see `wasmill checkpoint show` for the batch that waits", nil,
			"batch %d is not waiting: the last plan is %d and the last decision %d", batch, v.offsets.last(), v.commits.last())
	}
	return nil
}

// withLock runs do while this process alone holds a directory that exists.
func withLock(files durable.Files, dir string, opts Options, do func(durable.Objects) error) (err error) {
	lock, err := Hold(files, dir, opts.Holder)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, ioError("unlock", lockFile, lock.Close())) }()
	unique := opts.Unique
	if unique == nil {
		unique = durable.Unique
	}
	return do(durable.NewObjects(files, dir, durable.WithUnique(unique)))
}
