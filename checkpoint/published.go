package checkpoint

import (
	"context"
	"path"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// PublishedMark is the last batch that a target was seen to have published.
type PublishedMark struct {
	Batch  BatchID `json:"batch"`
	Digest string  `json:"digest"`
}

type publishedWire struct {
	Version int                      `json:"version"`
	Targets map[string]PublishedMark `json:"targets"`
}

// NotePublished writes down what each target has published, by target id, without waiting for the disk. The note serves
// people and checks; the targets' own markers are the truth.
func (l *Log) NotePublished(ctx context.Context, targets map[string]PublishedMark) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := marshal(publishedWire{Version: formatVersion, Targets: targets})
	if err != nil {
		return ioError("write", publishedFile, err)
	}
	final := path.Join(l.dir, publishedFile)
	temp := durable.TempName(final, l.opts.Unique())
	f, err := l.files.Create(temp)
	if err != nil {
		return ioError("write", publishedFile, err)
	}
	err = durable.WriteAll(f, text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = l.files.Rename(temp, final)
	}
	if err != nil {
		_ = l.files.Remove(temp) // a left-over is swept at the next start
	}
	return ioError("write", publishedFile, err)
}

// readPublished returns the note, or nothing when a crash has left none that can be read.
func readPublished(ctx context.Context, files durable.Files, dir string) map[string]PublishedMark {
	var wire publishedWire
	if found, err := readNote(ctx, files, dir, publishedFile, &wire); err != nil || !found {
		return nil
	}
	return wire.Targets
}
