package statestore

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// CheckChangelog reads the changelog of a decided batch in the state folder dir and holds it against its decision. It needs
// no open store. What is wrong is a *FileError of ErrMissing, ErrCorrupt or ErrNewer.
func CheckChangelog(ctx context.Context, files durable.Files, dir, query string, batch int64, attempt, digest string) error {
	s := &Store{files: files, dir: dir, cfg: Config{Query: query}}
	_, err := s.readPending(ctx, batch, attempt, digest)
	return err
}

// CheckSnapshots reads the snapshots in the state folder dir and returns what is wrong with them, a *FileError each. It
// needs no open store; a snapshot that goes meanwhile is not looked at. The error is that of what cannot be read at all.
func CheckSnapshots(ctx context.Context, files durable.Files, dir, query string) (found []error, err error) {
	s := &Store{files: files, dir: dir, cfg: Config{Query: query}}
	list, err := files.List(path.Join(dir, snapshotDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, info := range list {
		batch, err := strconv.ParseInt(info.Name, 10, 64)
		if err != nil || batch < 0 || strconv.FormatInt(batch, 10) != info.Name {
			continue
		}
		_, err = s.visitSnapshot(ctx, batch, func([]byte, []byte) error { return nil })
		var wrong *FileError
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &wrong):
			found = append(found, wrong)
		default:
			return found, err
		}
	}
	return found, nil
}
