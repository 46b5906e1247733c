package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
)

// copies is how often what a running job has written is read again when some of it goes meanwhile.
const copies = 5

// copied is the state as of one batch, beside the job that runs on it.
type copied struct {
	store *statestore.Store
	batch checkpoint.BatchID
	done  func() error // removes the temporary files
}

func (c *copied) close() error {
	if c.store == nil {
		return nil
	}
	err := errors.Join(c.store.Close(), c.done())
	*c = copied{}
	return err
}

// copyAt builds the state as of the end of a sealed batch from what the running job has written down. The views of the
// batch before must be closed.
func (s *State) copyAt(ctx context.Context, n checkpoint.BatchID) (*statestore.Store, error) {
	if s.copied.store != nil && s.copied.batch == n {
		return s.copied.store, nil
	}
	if err := s.copied.close(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := s.copyOnce(ctx, n)
		switch {
		case err == nil:
			return s.copied.store, nil
		case !errors.Is(err, statestore.ErrMissing) && !errors.Is(err, fs.ErrNotExist) && !missing(err):
			return nil, stateFault(err)
		case try == copies:
			return nil, s.tooOld(n, err)
		}
	}
}

// tooOld says why the state of a batch cannot be read beside the job.
func (s *State) tooOld(n checkpoint.BatchID, why error) error {
	if n == s.sealed {
		return stateFault(why)
	}
	return fault.New(CodeStateNotRetained, fmt.Sprintf("batch %d", n),
		fmt.Errorf("the job runs, and what it has written down reaches not so far back: %w", why),
		"take a newer batch, or stop the job: its own store goes back as far as batches are retained")
}

func (s *State) copyOnce(ctx context.Context, n checkpoint.BatchID) error {
	changed, attempt, err := s.changedLast(ctx, n)
	if err != nil {
		return err
	}
	dir, done, err := s.env.Scratch()
	if err != nil {
		return err
	}
	store, err := statestore.OpenCopy(ctx, statestore.Config{
		Files: s.env.Files, Dir: stateDir(s.dir), Query: s.reader.QueryID(), Backend: s.env.copyIn(dir), Events: s.env.State, Now: s.env.Clock.Now,
	}, changed, attempt)
	if err != nil {
		return errors.Join(err, done())
	}
	s.copied = copied{store, n, done}
	return nil
}

// changedLast finds the newest batch up to one that has changed the state, and the attempt at it that was decided, "" when
// that is no longer retained.
func (s *State) changedLast(ctx context.Context, n checkpoint.BatchID) (batch int64, attempt string, err error) {
	if n < 0 {
		return int64(checkpoint.NoBatch), "", nil
	}
	d, err := s.reader.Decision(ctx, n)
	switch {
	case err != nil:
		return 0, "", err
	case d.StateLast == nil:
		return int64(checkpoint.NoBatch), "", nil
	case *d.StateLast == n:
		return int64(n), d.Attempt, nil
	}
	changed, err := s.reader.Decision(ctx, *d.StateLast)
	if missing(err) {
		return int64(*d.StateLast), "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return int64(changed.Batch), changed.Attempt, nil
}

// copyIn opens the backend of a copy, in a folder of its own.
func (e *Env) copyIn(dir string) statestore.Opener {
	return func(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
		open := e.Backend
		if open == nil {
			open = badger.Open
		}
		cfg.Dir = path.Join(dir, "state")
		return open(ctx, cfg)
	}
}
