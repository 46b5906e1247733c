package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
)

// input is all that a batch's output is a function of, beside the graph.
type input struct {
	query    string
	revision string
	plan     *checkpoint.Plan
	prev     *checkpoint.Plan // nil for batch 0
	// begin opens the state that the batch changes, as it was before. nil where no stage has keys.
	begin beginState
	// most is how many bytes of records the batch may hold for sinks and stages before it is given up with errTooMuch; 0 is
	// no bound, for what is decided and must come to the same.
	most int64
	// spare gives the batch up with errLaneFull when a lane's output is over its limit and no single record has made most of it,
	// instead of setting one of them aside.
	spare bool
}

// outcome is what running a batch came to: rows in memory and their digests.
type outcome struct {
	graph   *Graph // that ran: of a batch that was run again maybe an earlier one, with other sinks or another order of them
	digest  string
	inputs  map[string]checkpoint.Digest
	outputs map[string]checkpoint.Digest
	sinks   [][]sink.Lane // by sink, in lane and entry order; only lanes with rows
	lanes   [][]int       // which lanes these are
	stages  []StageStats  // in the order of the graph
	stats   runStats
	// newest are the latest event times in milliseconds, by source and the part of it that they were read from.
	newest map[string]map[string]int64
	txn    *statestore.Txn // the state's changes; nil without keyed stages
	state  statestore.Summary
	left   []string // stages that more timers were due for than one batch hands over
	// spool is what goes to a spool file, in the order of sinks and lanes; it lies in the lanes' memory.
	spool []checkpoint.Spooled
}

// of returns what a sink of any graph got: nothing, when the graph that ran did not have it.
func (o *outcome) of(name string) []sink.Lane {
	for i := range o.graph.Sinks {
		if o.graph.Sinks[i].Name == name {
			return o.sinks[i]
		}
	}
	return nil
}

type runStats struct {
	skipped, letters, alone, poison, restarts int64
}

// runner runs the transforms of batches over one graph. Its lanes keep their memory from batch to batch, so at most one
// outcome of a runner is in use at a time.
type runner struct {
	g       *Graph
	policy  ErrorPolicy
	workers int
	// tee sees what comes for the sinks. Only replay sets it; it then runs with one worker.
	tee Tee
	// trace sees what guests emit. Only the search for what two engines do differently sets it.
	trace *trace
	lanes []*lane
	// rounds says by stage in which round it runs: a keyed stage after all lanes have run what it reads.
	rounds []int
	keyed  []statestore.Stage // of the stages with keys, in order
	held   atomic.Int64       // bytes of records that the lanes hold, about
}

// newRunner makes a runner. spooled says by sink whether its records are kept for a spool file; nil means none.
func newRunner(g *Graph, policy ErrorPolicy, workers int, spooled []bool) (*runner, error) {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := &runner{g: g, policy: policy, workers: min(workers, g.Lanes), rounds: g.rounds(), keyed: g.keyed()}
	for i := range g.Lanes {
		l, err := newLane(r, i)
		if err != nil {
			return nil, err
		}
		r.lanes = append(r.lanes, l)
		for s, keep := range spooled {
			if keep {
				l.sinks[s].spool = &tape{}
			}
		}
	}
	return r, nil
}

// batchRun is one batch in the hands of a runner.
type batchRun struct {
	input
	splits [][][]source.Split // by source, by lane
}

// run reads what the plan names, drives it through the stages lane by lane and digests what comes out. It changes nothing
// outside memory, so it serves a batch, its recovery and a replay alike.
func (r *runner) run(ctx context.Context, in input) (*outcome, error) {
	b := &batchRun{input: in}
	r.held.Store(0)
	if err := r.assign(ctx, b); err != nil {
		return nil, err
	}
	txn, err := r.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	out, err := r.drive(ctx, b, txn)
	if err != nil && txn != nil {
		txn.Close()
	}
	return out, err
}

// drive takes the batch through all rounds.
func (r *runner) drive(ctx context.Context, b *batchRun, txn *statestore.Txn) (*outcome, error) {
	for round := 0; round <= r.lastRound(); round++ {
		if err := r.each(ctx, func(ctx context.Context, l *lane) error { return l.run(ctx, b, round) }); err != nil {
			return nil, err
		}
	}
	return r.collect(ctx, b, txn)
}

// lastRound is the last round of a batch, 0 of one without keyed stages.
func (r *runner) lastRound() int {
	last := 0
	for _, round := range r.rounds {
		last = max(last, round)
	}
	return last
}

// assign cuts each source's range into splits and deals them to lanes in order: the lane of a split is
// floor(L x planned size before it / total planned size), so that output order is input order.
func (r *runner) assign(ctx context.Context, b *batchRun) error {
	b.splits = make([][][]source.Split, len(r.g.Sources))
	for i := range r.g.Sources {
		s := &r.g.Sources[i]
		rng := source.Range{From: b.prev.Position(s.Name), To: b.plan.Position(s.Name)}
		b.splits[i] = make([][]source.Split, r.g.Lanes)
		if rng.From == rng.To || rng.To.IsZero() {
			continue
		}
		splits, err := s.Source.Splits(ctx, rng)
		if err != nil {
			return fmt.Errorf("source %s: split the range of batch %d: %w", s.Name, b.plan.Batch, err)
		}
		var total, before int64
		for _, sp := range splits {
			total += sp.Size
		}
		for _, sp := range splits {
			lane := laneOf(before, total, r.g.Lanes)
			b.splits[i][lane] = append(b.splits[i][lane], sp)
			before += sp.Size
		}
	}
	return nil
}

// laneOf is floor(lanes x before / total), without overflow for any planned size.
func laneOf(before, total int64, lanes int) int {
	if total <= 0 || before <= 0 {
		return 0
	}
	// before < total unless the last splits are empty; those stay in the last lane.
	step := total / int64(lanes)
	if step > 1<<40 { // far beyond any batch; keeps the product below 2^63
		return min(int(before/step), lanes-1)
	}
	return min(int(before*int64(lanes)/total), lanes-1)
}

// each calls f for every lane, on as many goroutines as the runner has workers. The error is that of the lowest lane that
// fails, whatever the scheduling: a failing lane stops only those above it. With one worker there is no goroutine at all.
func (r *runner) each(ctx context.Context, f func(context.Context, *lane) error) error {
	if r.workers == 1 {
		for _, l := range r.lanes {
			if err := f(ctx, l); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(r.lanes))
	ctxs := make([]context.Context, len(r.lanes))
	cancels := make([]context.CancelFunc, len(r.lanes))
	for i := range r.lanes {
		ctxs[i], cancels[i] = context.WithCancel(ctx)
		defer cancels[i]()
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(func() {
			for i := range next {
				if ctxs[i].Err() != nil {
					continue
				}
				if errs[i] = f(ctxs[i], r.lanes[i]); errs[i] == nil {
					continue
				}
				for _, cancel := range cancels[i+1:] {
					cancel()
				}
			}
		})
	}
	for i := range r.lanes {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// collect puts the lanes' results together in lane order and computes the digests.
func (r *runner) collect(ctx context.Context, b *batchRun, txn *statestore.Txn) (*outcome, error) {
	o := &outcome{
		graph:   r.g,
		txn:     txn,
		newest:  map[string]map[string]int64{},
		inputs:  map[string]checkpoint.Digest{},
		outputs: map[string]checkpoint.Digest{},
		sinks:   make([][]sink.Lane, len(r.g.Sinks)),
		lanes:   make([][]int, len(r.g.Sinks)),
	}
	for i := range r.g.Sources {
		newest := map[string]int64{}
		for _, l := range r.lanes {
			l.newest[i].into(newest)
		}
		o.newest[r.g.Sources[i].Name] = newest
		o.inputs[r.g.Sources[i].Name] = combine(len(r.lanes), func(l int) *abi.RecordDigest { return &r.lanes[l].read[i] })
	}
	for i := range r.g.Sinks {
		for _, l := range r.lanes {
			if l.sinks[i].lane.Rows() > 0 {
				o.sinks[i] = append(o.sinks[i], l.sinks[i].lane)
				o.lanes[i] = append(o.lanes[i], l.index)
			}
			if t := l.sinks[i].spool; t != nil && t.count > 0 {
				o.spool = append(o.spool, checkpoint.Spooled{Sink: r.g.Sinks[i].Name, Lane: uint32(l.index), Records: int64(t.count), Data: t.blocks})
			}
		}
		o.outputs[r.g.Sinks[i].Name] = combine(len(r.lanes), func(l int) *abi.RecordDigest { return &r.lanes[l].sinks[i].digest })
	}
	for _, l := range r.lanes {
		o.stats.add(l.stats)
	}
	for i := range r.g.Stages {
		st, left := StageStats{Name: r.g.Stages[i].Name}, false
		for _, l := range r.lanes {
			st.add(&l.stages[i].stats)
			left = left || l.stages[i].left
		}
		if left {
			o.left = append(o.left, st.Name)
		}
		o.stages = append(o.stages, st)
	}
	if r.policy.Max > 0 && o.stats.alone > int64(r.policy.Max) {
		return nil, tooManyLetters(r.g, o.stats.alone, r.policy.Max, r.reasons().most())
	}
	var err error
	if txn != nil {
		if o.state, err = txn.Sum(ctx); err != nil {
			return nil, fmt.Errorf("sum up the state: %w", err)
		}
		r.countState(o)
	}
	o.digest, err = batchDigest(b.query, b.plan.Batch, b.revision, o.inputs, o.outputs, o.state.Digest)
	return o, err
}

func (s *runStats) add(t runStats) {
	s.skipped += t.skipped
	s.letters += t.letters
	s.alone += t.alone
	s.poison += t.poison
	s.restarts += t.restarts
}
