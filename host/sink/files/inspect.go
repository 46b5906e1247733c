package files

import (
	"context"
	"errors"
	"io/fs"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

var _ sink.Inspector = (*Target)(nil)

// Inspect reads the owner file and the manifest as they are.
func (t *Target) Inspect(_ context.Context, o sink.Owner) (sink.Published, error) {
	p, err := t.inspect(o)
	if err != nil {
		return p, t.wrap("look at the sink's directory", err)
	}
	return p, nil
}

func (t *Target) inspect(o sink.Owner) (sink.Published, error) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	if err := t.checkForeign(o); err != nil {
		return none, err
	}
	err := t.checkOwner(o)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil // it is not there yet, or not finished
	}
	if err != nil {
		return none, err
	}
	m, err := t.readManifest()
	if err != nil {
		return none, err
	}
	return m.published(), nil
}
