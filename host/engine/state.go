package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/statestore"
)

// beginState opens the state of the stages with keys, as it was before a batch, for that batch to change.
type beginState func(ctx context.Context, b statestore.BatchInfo) (*statestore.Txn, error)

// begin opens the state for a batch and gives each lane its part. It returns nil for a job without state. A job without
// keyed stages may have some: that of stages it had before, which each batch deletes a part of.
func (r *runner) begin(ctx context.Context, b *batchRun) (*statestore.Txn, error) {
	switch {
	case b.begin == nil && len(r.keyed) > 0:
		return nil, errors.New("a job with keyed stages has no state store")
	case b.begin == nil:
		return nil, nil
	}
	txn, err := b.begin(ctx, statestore.BatchInfo{
		Batch: int64(b.plan.Batch), TimeMS: b.plan.TimeMS, WatermarkMS: b.plan.WatermarkMS, Lanes: r.g.Lanes, Stages: r.keyed,
	})
	if err != nil {
		return nil, stateTrouble(err, "open the state before batch %d", b.plan.Batch)
	}
	for _, l := range r.lanes {
		n := 0
		for _, s := range l.stages {
			if s.node.Keyed() {
				s.state = &laneState{lane: txn.Lane(n, l.index), of: l}
				n++
			}
		}
	}
	return txn, nil
}

// countState notes what the batch changed by stage.
func (r *runner) countState(o *outcome) {
	n := 0
	for i := range r.g.Stages {
		if r.g.Stages[i].Keyed() && n < len(o.state.Stages) {
			o.stages[i].Updated, o.stages[i].Removed = o.state.Stages[n].Updated, o.state.Stages[n].Removed
			n++
		}
	}
}

// beginState opens the state as of all that is sealed.
func (e *Engine) beginState() beginState {
	if e.cfg.Store == nil {
		return nil
	}
	return e.cfg.Store.Begin
}

// stateBefore opens the state as it was before a batch that may be part of it already.
func (e *Engine) stateBefore(id checkpoint.BatchID) beginState {
	if e.cfg.Store == nil || e.cfg.Store.Last() < int64(id) {
		return e.beginState()
	}
	return func(ctx context.Context, b statestore.BatchInfo) (*statestore.Txn, error) {
		e.closeView()
		var err error
		if e.view, err = e.cfg.Store.At(ctx, int64(id)-1); err != nil {
			return nil, err
		}
		return e.view.Begin(ctx, b)
	}
}

// closeView ends the view that a batch ran on again.
func (e *Engine) closeView() {
	if e.view != nil {
		e.view.Close()
		e.view = nil
	}
}

// writeState begins to write down what a batch changes of the state, durably. The channel gets what comes of it; it must be
// received from before anything else is done with the batch. With one worker it is done when writeState returns.
func (e *Engine) writeState(ctx context.Context, b *batch) <-chan error {
	done := make(chan error, 1)
	if b.out.txn == nil || b.out.state.Digest == "" {
		done <- nil
		return done
	}
	write := func() {
		err := b.out.txn.Write(ctx, b.attempt)
		if err != nil {
			err = stateTrouble(err, "write the changes of the state")
		}
		done <- err
	}
	if e.runner.workers == 1 {
		write()
	} else {
		go write()
	}
	return done
}

// stateLast is the newest batch up to b that changed the state.
func stateLast(b *batch) *checkpoint.BatchID {
	switch {
	case b.out.state.Digest != "":
		return &b.plan.Batch
	case b.before != nil:
		return b.before.StateLast
	}
	return nil
}

// sealState makes what a batch changed part of the state, unless it is already. A batch that was found decided has it in a
// file only.
func (e *Engine) sealState(ctx context.Context, b *batch) error {
	defer e.closeView()
	defer b.close()
	if e.cfg.Store == nil || b.decision.State == "" || e.cfg.Store.Last() >= int64(b.decision.Batch) {
		return nil
	}
	if b.decision.Attempt != b.attempt {
		return e.loadState(ctx, b.decision)
	}
	if err := e.cfg.Store.Seal(ctx, b.out.txn); err != nil {
		return stateTrouble(err, "seal the state")
	}
	return nil
}

// loadState takes over what a decided batch changed, from its file.
func (e *Engine) loadState(ctx context.Context, d *checkpoint.Decision) error {
	err := e.cfg.Store.Load(ctx, int64(d.Batch), d.Attempt, d.State)
	if errors.Is(err, statestore.ErrMissing) || errors.Is(err, statestore.ErrCorrupt) {
		err = e.remakeState(ctx, d, err)
	}
	if err != nil {
		return stateTrouble(err, "load the state's changes of batch %d", d.Batch)
	}
	return nil
}

// remakeState runs a retained batch again whose changes are lost, at the state before it, and writes them down anew if all
// digests are equal.
func (e *Engine) remakeState(ctx context.Context, d *checkpoint.Decision, why error) error {
	e.cfg.Events.warning(fmt.Sprintf("run batch %d again for what it changed of the state", d.Batch), why)
	b := e.newBatch()
	var err error
	if b.plan, err = e.cfg.Log.Plan(ctx, d.Batch); err != nil {
		return err
	}
	if d.Batch > 0 {
		if b.prev, err = e.cfg.Log.Plan(ctx, d.Batch-1); err != nil {
			return err
		}
	}
	b.decision = d
	b.out, err = e.rerun(ctx, b)
	defer b.close()
	if err != nil {
		return stateLost(d.Batch, errors.Join(why, err))
	}
	if err := b.out.txn.Write(ctx, d.Attempt); err != nil {
		return err
	}
	e.cfg.Events.recovered(Recovery{Batch: d.Batch, Rung: "rerun", Detail: "for what it changed of the state"})
	return e.cfg.Store.Seal(ctx, b.out.txn)
}

// restoreState brings the store to where the state stood after the last batch that is known to be sealed, nil for before
// the first. A decided batch after it may be part of the state already.
func (e *Engine) restoreState(ctx context.Context, sealed, decided *checkpoint.Decision) error {
	if e.cfg.Store == nil {
		return nil
	}
	want := changedLast(sealed)
	remake := int64(e.cfg.Log.Oldest())
	if remake > 0 {
		remake++ // a batch runs again from where the plan before it ends
	}
	if err := e.cfg.Store.Rewind(ctx, max(want, changedLast(decided)), remake); err != nil {
		return stateTrouble(err, "bring the state back to batch %d", want)
	}
	for id := e.cfg.Store.Last() + 1; id <= want; id++ {
		d, err := e.cfg.Log.Decision(ctx, checkpoint.BatchID(id))
		if err != nil {
			return stateLost(checkpoint.BatchID(id), err)
		}
		if d.State == "" {
			continue
		}
		if err := e.loadState(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// changedLast is the newest batch up to a decision that changed the state.
func changedLast(d *checkpoint.Decision) int64 {
	if d == nil || d.StateLast == nil {
		return int64(checkpoint.NoBatch)
	}
	return int64(*d.StateLast)
}

// unneeded is the batch up to which records may go once a batch is sealed: a restart needs the decisions of those whose
// changes the store would have to load again.
func (e *Engine) unneeded(sealed checkpoint.BatchID) checkpoint.BatchID {
	if e.cfg.Store == nil || e.cfg.Store.Durable() == e.cfg.Store.Last() {
		return sealed
	}
	return min(sealed, checkpoint.BatchID(e.cfg.Store.Durable()+1))
}

// close gives the memory back that a batch holds of the state.
func (b *batch) close() {
	if b.out != nil && b.out.txn != nil {
		b.out.txn.Close()
		b.out.txn = nil
	}
}

// laneState is the part of a stage's state that a lane's guest works on: sandbox.State over statestore.Lane. What it holds
// counts among what the batch holds in memory.
type laneState struct {
	lane *statestore.Lane
	of   *lane
	held int64
}

func (s *laneState) reset() {
	s.lane.Reset()
	s.held = 0
}

// Passed is how many entries that this batch has removed scans of the lane have walked over.
func (s *laneState) Passed() uint64 { return s.lane.Passed() }

func entryOf(op *abi.StateOp) statestore.Entry {
	return statestore.Entry{Group: uint8(abi.KeyGroup(op.Key)), Table: op.Table, Key: op.Key, Sub: op.Sub}
}

// Get implements abi.StateReader.
func (s *laneState) Get(op *abi.StateOp) (value []byte, found bool, err error) {
	if value, found, err = s.lane.Get(entryOf(op)); err != nil {
		return nil, false, stateTrouble(err, "read state")
	}
	return value, found, s.grown()
}

// Scan implements abi.StateReader.
func (s *laneState) Scan(op *abi.StateOp, visit func(sub, value []byte) bool) error {
	if err := s.lane.Scan(entryOf(op), op.Value, op.Descending, visit); err != nil {
		return stateTrouble(err, "scan state")
	}
	return s.grown()
}

// Write carries out one operation of state_write. It returns how many entries a delete-prefix removed.
func (s *laneState) Write(op *abi.StateOp) (entries int, err error) {
	switch op.Op {
	case abi.OpPut:
		err = s.lane.Put(entryOf(op), op.Value, op.At/1000)
	case abi.OpDelete:
		err = s.lane.Delete(entryOf(op))
	case abi.OpDeletePrefix:
		entries, err = s.lane.DeletePrefix(entryOf(op), op.Value)
	case abi.OpTimerSet:
		err = s.lane.SetTimer(timerOf(op))
	case abi.OpTimerDelete:
		err = s.lane.DeleteTimer(timerOf(op))
	default:
		err = fmt.Errorf("operation %d", op.Op)
	}
	if err != nil {
		return 0, stateTrouble(err, "write state")
	}
	return entries, s.grown()
}

func timerOf(op *abi.StateOp) statestore.Timer {
	return statestore.Timer{Domain: op.Domain, AtMS: op.At / 1000, Group: uint8(abi.KeyGroup(op.Key)), Key: op.Key, Sub: op.Sub}
}

// grown counts what the lane holds of state since it was counted last.
func (s *laneState) grown() error {
	now := s.lane.Held()
	more := now - s.held
	s.held = now
	return s.of.holdsBytes(more)
}

// maxTimers bounds how many timers fire in a lane of a batch: at the end of time all that there are become due at once. The
// others stay due for the next batch. It is part of the semantics.
const maxTimers = 20_000

// timers hands over the timers that are due, in frames of their own.
func (a *attempt) timers() error {
	if a.s.state == nil {
		return nil
	}
	c := &a.s.chunk
	left, err := a.s.state.lane.Due(maxTimers, func(t *statestore.Timer) error {
		r := abi.Record{
			EventTime: t.AtMS * 1000, Flags: abi.FlagEventTime, Kind: abi.KindEventTimer + abi.Kind(t.Domain), Key: t.Key, Value: t.Sub,
			Index: abi.NoIndex,
		}
		if r.Value == nil {
			r.Value = []byte{}
		}
		size := r.Size(0)
		if !c.fits(int(t.Domain), size) {
			if err := a.fire(); err != nil {
				return err
			}
		}
		k := c.add(int(t.Domain), "", size, &r)
		k.Index, k.Kind = abi.NoIndex, r.Kind
		return nil
	})
	if err != nil {
		return fmt.Errorf("stage %s: lane %d: timers: %w", a.s.node.Name, a.l.index, err)
	}
	a.s.left = left
	return a.fire()
}

// fire hands over one frame of timers: those of one domain.
func (a *attempt) fire() error {
	c := &a.s.chunk
	if len(c.recs.recs) == 0 {
		return nil
	}
	if err := a.start(); err != nil {
		return err
	}
	if err := a.s.state.grown(); err != nil {
		return err
	}
	n := int64(len(c.recs.recs))
	err := a.call(0, c.recs.recs, 0)
	if err == nil {
		a.timed += n
		c.reset()
	}
	return err
}
