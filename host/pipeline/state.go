package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
)

// Codes of the faults of the state.
const (
	CodeState            = "state.store"        // any trouble without a code of its own
	CodeStateMissing     = "state.missing"      // a changelog that a decision names is not there
	CodeStateDamaged     = "state.damaged"      // a file does not hold what was written
	CodeStateNewer       = "state.newer"        // written by a newer version
	CodeStateNotRetained = "state.not_retained" // the state of that batch is no longer kept
	CodeStateNotSealed   = "state.not_sealed"   // the batch is not done
	CodeStateNone        = "state.none"         // the job has no state
	CodeStateLocked      = "state.locked"       // another process has it open
)

// stateDir is where a checkpoint keeps state.
func stateDir(checkpoint string) string { return path.Join(checkpoint, "state") }

// hasKeys reports whether a stage of a graph has keys, and so state.
func hasKeys(g *engine.Graph) bool {
	for i := range g.Stages {
		if g.Stages[i].Keyed() {
			return true
		}
	}
	return false
}

// needsStore reports whether a job runs on state: it has keys, or its checkpoint holds what stages with keys have left,
// which its batches delete.
func (e *Env) needsStore(g *engine.Graph, checkpoint string) (bool, error) {
	if hasKeys(g) {
		return true, nil
	}
	_, err := e.Files.Stat(stateDir(checkpoint))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openStore opens the state of a checkpoint. Whoever calls it holds the checkpoint.
func (e *Env) openStore(ctx context.Context, dir, query string) (*statestore.Store, error) {
	events := e.State
	if events.Warning == nil && e.Events != nil {
		events.Warning = e.Events.Warning
	}
	backend := e.Backend
	if backend == nil {
		backend = badger.Open
	}
	cfg := statestore.Config{
		Files: e.Files, Dir: stateDir(dir), Query: query, Backend: backend, Events: events, Now: e.Clock.Now,
	}
	if e.TuneState != nil {
		e.TuneState(&cfg)
	}
	s, err := statestore.Open(ctx, cfg)
	if err != nil {
		return nil, stateFault(&engine.StateError{Op: stateDir(dir), Err: err})
	}
	return s, nil
}

// stateFault gives an error of the state its code and its way out. Errors that have theirs are passed on.
func stateFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*checkpoint.Error](err); ok {
		return err
	}
	place := "state"
	if f, ok := errors.AsType[*statestore.FileError](err); ok {
		place = f.File
	}
	var locked *durable.LockedError
	switch {
	case errors.As(err, &locked):
		return fault.New(CodeStateLocked, place, err, "stop the process that has it open")
	case errors.Is(err, statestore.ErrMissing):
		return fault.New(CodeStateMissing, place, err, "put the file back; where the store needs it, the next `wasmill run` runs the batch again from its input and compares, if that is still there")
	case errors.Is(err, statestore.ErrNewer):
		return fault.New(CodeStateNewer, place, err, "use the version of wasmill that wrote it, or a newer one")
	case errors.Is(err, statestore.ErrCorrupt), errors.Is(err, statestore.ErrDamaged):
		return fault.New(CodeStateDamaged, place, err, "put the file back as it was written; where the store needs it, the next `wasmill run` runs the batch again from its input and compares, or builds the store anew")
	case errors.Is(err, statestore.ErrCompacted):
		return fault.New(CodeStateNotRetained, place, err, "take a newer batch; `retention` in the job file says how many are kept")
	case errors.Is(err, statestore.ErrFuture):
		return fault.New(CodeStateNotSealed, place, err, "take an earlier batch, or let the job finish this one: the next `wasmill run` does")
	}
	if _, ok := errors.AsType[*engine.StateError](err); !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.New(CodeState, place, err, "see to the disk that the checkpoint is on: its room (state needs 256 MiB free) and the rights to `state/`; then start again, nothing is lost")
}
