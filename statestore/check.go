package statestore

import (
	"context"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// CheckChangelog reads the changelog of a decided batch in the state folder dir and holds it against its decision. It needs
// no open store. What is wrong is a *FileError of ErrMissing, ErrCorrupt or ErrNewer.
func CheckChangelog(ctx context.Context, files durable.Files, dir, query string, batch int64, attempt, digest string) error {
	s := &Store{files: files, dir: dir, cfg: Config{Query: query}}
	_, err := s.readPending(ctx, batch, attempt, digest)
	return err
}
