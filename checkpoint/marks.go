package checkpoint

import "context"

// Published returns what NotePublished wrote last, nil when there is no note or it cannot be read: it is a check, not the
// truth.
func (l *Log) Published(ctx context.Context) (map[string]PublishedMark, error) {
	return readPublished(ctx, l.files, l.dir), ctx.Err()
}
