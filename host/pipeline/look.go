package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/statestore"
)

// State is the state of a checkpoint, for people, and for batches that are run again. Where no job runs on the checkpoint
// its store is opened, and while it is open none can start. Of a running job, what its batches have written down is read,
// which does not disturb it, and built into a store among temporary files.
type State struct {
	env    Env
	dir    string
	reader *checkpoint.Reader
	hold   io.Closer // nil beside a running job
	store  *statestore.Store
	sealed checkpoint.BatchID // the newest batch that is published everywhere
	copied copied
}

// OpenState opens the state of a checkpoint as it is at the newest sealed batch. It needs Files, Clock, Holder and, for
// that of a running job, Scratch of env alone.
func OpenState(ctx context.Context, dir string, env Env) (_ *State, err error) {
	s := &State{env: env, dir: dir}
	if s.reader, err = checkpoint.OpenReader(ctx, env.Files, dir); err != nil {
		return nil, err
	}
	if _, err := env.Files.Stat(stateDir(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, s.noState(ctx)
	}
	s.hold, err = checkpoint.Hold(env.Files, dir, env.Holder)
	locked, running := errors.AsType[*durable.LockedError](err)
	switch {
	case running && env.Scratch != nil:
		_, _, err := s.findSealed(ctx)
		return s, err
	case running:
		return nil, fault.New(CodeStateLocked, dir, fmt.Errorf("the job runs, and has its state for itself: %w", locked), "stop the job for as long as you look")
	case err != nil:
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.store, err = env.openStore(ctx, dir, s.reader.QueryID()); err != nil {
		return nil, err
	}
	return s, s.catchUp(ctx)
}

// noState says why a checkpoint has no folder of state: no batch has changed any, or it is lost.
func (s *State) noState(ctx context.Context) error {
	plan, decision, err := s.reader.Tail(ctx)
	if err != nil {
		return err
	}
	newest, err := s.newest(ctx, plan, decision)
	if err != nil {
		return err
	}
	if newest != nil && newest.StateLast != nil {
		return fault.New(CodeStateMissing, stateDir(s.dir), fmt.Errorf("the folder is missing, and batch %d has changed what was in it", *newest.StateLast),
			"put it back; or let the next `wasmill run` build it anew, for which it runs batches again. `wasmill checkpoint verify` says what is missing")
	}
	return fault.New(CodeStateNone, s.dir, errors.New("there is no state: no batch of this checkpoint has changed any"),
		"name the checkpoint of a job whose stages have `keyBy`, once it has run")
}

// findSealed finds the newest batch that is published everywhere, and returns the end of the checkpoint.
func (s *State) findSealed(ctx context.Context) (*checkpoint.Plan, *checkpoint.Decision, error) {
	plan, decision, err := s.reader.Tail(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.sealed = checkpoint.NoBatch
	switch {
	case decision != nil && allPublished(decision, s.reader.Published(ctx)):
		s.sealed = decision.Batch
	case plan != nil:
		s.sealed = plan.Batch - 1
	}
	return plan, decision, nil
}

// catchUp takes over what sealed batches have changed and the store does not have yet.
func (s *State) catchUp(ctx context.Context) error {
	plan, decision, err := s.findSealed(ctx)
	if err != nil {
		return err
	}
	if err := s.rewind(ctx, plan, decision); err != nil {
		return err
	}
	for id := checkpoint.BatchID(s.store.Last() + 1); id <= s.sealed; id++ {
		d, err := s.reader.Decision(ctx, id)
		if err != nil {
			return err
		}
		if d.State == "" {
			continue
		}
		if err := s.store.Load(ctx, int64(id), d.Attempt, d.State); err != nil {
			return stateFault(fmt.Errorf("load what batch %d changed: %w", id, err))
		}
	}
	s.sealed = max(s.sealed, checkpoint.BatchID(s.store.Last())) // applied is sealed, whatever the notes say
	return nil
}

// rewind takes the store back to what the decisions know of, where it is ahead of them: the checkpoint was put back without
// it, or repaired.
func (s *State) rewind(ctx context.Context, plan *checkpoint.Plan, newest *checkpoint.Decision) (err error) {
	if newest, err = s.newest(ctx, plan, newest); err != nil {
		return err
	}
	last := int64(checkpoint.NoBatch)
	if newest != nil && newest.StateLast != nil {
		last = int64(*newest.StateLast)
	}
	return stateFault(s.store.Rewind(ctx, last, math.MaxInt64)) // nothing is run again here
}

// newest is the newest decision: that of the last plan or, where it is not decided, of the one before. Nil: there is none.
func (s *State) newest(ctx context.Context, plan *checkpoint.Plan, last *checkpoint.Decision) (*checkpoint.Decision, error) {
	if last != nil || plan == nil || plan.Batch == 0 {
		return last, nil
	}
	return s.reader.Decision(ctx, plan.Batch-1)
}

// allPublished reports whether every target that a batch is decided for is known to have it.
func allPublished(d *checkpoint.Decision, marks map[string]checkpoint.PublishedMark) bool {
	for id, o := range d.Targets {
		if o.Last != d.Batch {
			continue
		}
		if mark, ok := marks[id]; !ok || mark.Batch != o.Last || mark.Digest != o.Digest {
			return false
		}
	}
	return true
}

// Close gives the checkpoint back, and removes what was copied.
func (s *State) Close() error {
	errs := []error{s.copied.close()}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.hold != nil {
		errs = append(errs, s.hold.Close())
	}
	return errors.Join(errs...)
}

// at opens the state as of the end of a batch. A batch that changed nothing has that of the one before.
func (s *State) at(ctx context.Context, n checkpoint.BatchID) (*statestore.View, error) {
	if n > s.sealed {
		return nil, fault.New(CodeStateNotSealed, fmt.Sprintf("batch %d", n), fmt.Errorf("it is not done: the newest sealed batch is %d", s.sealed),
			"take an earlier batch, or let the job finish this one: the next `wasmill run` does")
	}
	store := s.store
	if s.hold == nil {
		var err error
		if store, err = s.copyAt(ctx, n); err != nil {
			return nil, err
		}
	}
	v, err := store.At(ctx, min(int64(n), store.Last()))
	return v, stateFault(err)
}

// StateView is the state as of the end of a batch. It must be closed before its State.
type StateView struct {
	Batch  checkpoint.BatchID
	Stages []StateStage
	view   *statestore.View
}

// StateStage is what one transform keeps.
type StateStage struct {
	Name    string
	KeyBy   string // for people; "" when the revision is not known
	Retired bool   // no longer in the job; what it has kept is being deleted
	Tables  []StateTable
	Timers  StateTable
}

// StateTable is one table of a transform, or its timers.
type StateTable struct {
	Name    string // "" for the timers
	Type    string // what its values are
	Retired bool
	table   statestore.Table
}

// View opens the state as of the end of a batch; NoBatch is the newest sealed one.
func (s *State) View(ctx context.Context, n checkpoint.BatchID) (*StateView, error) {
	if n == checkpoint.NoBatch {
		n = s.sealed
	}
	view, err := s.at(ctx, n)
	if err != nil {
		return nil, err
	}
	v := &StateView{Batch: n, view: view}
	known, err := s.declared(ctx, n)
	if err != nil {
		view.Close()
		return nil, err
	}
	v.list(known)
	return v, nil
}

// declared lists the stages of the revision that a batch was decided under. A checkpoint that has lost it declares none.
func (s *State) declared(ctx context.Context, n checkpoint.BatchID) ([]job.KeyedStage, error) {
	if n < 0 {
		return nil, nil
	}
	d, err := s.reader.Decision(ctx, n)
	if missing(err) || err == nil && d.Revision == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	canonical, err := s.reader.Revision(ctx, d.Revision)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return job.KeyedStages(canonical)
}

// list arranges the tables of the view by transform.
func (v *StateView) list(known []job.KeyedStage) {
	for _, t := range v.view.Tables() {
		if t.Name == "" {
			st := StateStage{Name: t.Stage, Retired: t.Retired, Timers: StateTable{Retired: t.Retired, table: t}}
			for i := range known {
				if known[i].Name == t.Stage && !t.Retired {
					st.KeyBy = known[i].KeyBy
				}
			}
			v.Stages = append(v.Stages, st)
			continue
		}
		st := &v.Stages[len(v.Stages)-1]
		st.Tables = append(st.Tables, StateTable{Name: t.Name, Type: typeOf(known, t), Retired: t.Retired, table: t})
	}
}

func typeOf(known []job.KeyedStage, t statestore.Table) string {
	for i := range known {
		for _, k := range known[i].Tables {
			if known[i].Name == t.Stage && k.Name == t.Name && !t.Retired {
				return k.Type
			}
		}
	}
	return abi.TableBytes
}

// Close ends the view.
func (v *StateView) Close() { v.view.Close() }

// Walk visits all entries of a table, or timers, in the order of key groups and keys, until visit fails.
func (v *StateView) Walk(ctx context.Context, t *StateTable, visit func(*statestore.Row) error) error {
	var failed error
	err := v.view.Export(ctx, t.table, func(r *statestore.Row) bool {
		failed = visit(r)
		return failed == nil
	})
	return errors.Join(failed, stateFault(err))
}

// Under visits the entries under one key whose sub begins with a prefix, in the order of sub; of timers those of the key.
func (v *StateView) Under(ctx context.Context, t *StateTable, key, prefix []byte, visit func(*statestore.Row) error) error {
	var failed error
	pick := func(r *statestore.Row) bool {
		if bytes.Equal(r.Key, key) && bytes.HasPrefix(r.Sub, prefix) {
			failed = visit(r)
		}
		return failed == nil
	}
	var err error
	if t.Name == "" {
		err = v.view.Export(ctx, t.table, pick) // timers stand by time, not by key
	} else {
		err = v.view.Scan(ctx, t.table, uint8(abi.KeyGroup(key)), key, pick)
	}
	return errors.Join(failed, stateFault(err))
}

// Count counts the entries of a table and the bytes of their keys and values.
func (v *StateView) Count(ctx context.Context, t *StateTable) (entries, size int64, err error) {
	err = v.Walk(ctx, t, func(r *statestore.Row) error {
		entries++
		size += int64(len(r.Key) + len(r.Sub) + len(r.Value))
		return nil
	})
	return entries, size, err
}
