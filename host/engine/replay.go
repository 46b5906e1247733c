package engine

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/statestore"
)

// Past is a retained batch, ready to be run again.
type Past struct {
	Query    string
	Plan     *checkpoint.Plan
	Prev     *checkpoint.Plan // nil for batch 0
	Decision *checkpoint.Decision
	// Begin opens the state as it was before the batch; nil for a job without state.
	Begin func(ctx context.Context, b statestore.BatchInfo) (*statestore.Txn, error)
}

func (p *Past) input(revision string) input {
	return input{query: p.Query, revision: revision, plan: p.Plan, prev: p.Prev, begin: p.Begin}
}

// Replayed is what running a retained batch again came to.
type Replayed struct {
	Digest  string
	Inputs  map[string]checkpoint.Digest // by source
	Outputs map[string]checkpoint.Digest // by sink
	State   string                       // digest of the state changes, "" when stateless
	Stages  []StageStats
}

func (o *outcome) replayed() *Replayed {
	return &Replayed{Digest: o.digest, Inputs: o.inputs, Outputs: o.outputs, State: o.state.Digest, Stages: o.stages}
}

// Tee sees what comes for the sinks of a batch, in order within a lane.
type Tee interface {
	// Record sees one record, which is valid during the call. An error ends the replay.
	Record(sink string, lane int, r *abi.Record) error
	// Again takes back what came for a sink in a lane: the lane starts again, without a record that its guest failed on.
	Again(sink string, lane int)
}

// Replay runs a retained batch again, read-only: nothing outside memory changes, and the graph's targets are neither
// opened nor called. revision is what the digest is computed with: the decision's own, to prove the batch. With a tee the
// lanes run one after the other.
func Replay(ctx context.Context, g *Graph, policy ErrorPolicy, revision string, p Past, workers int, tee Tee) (*Replayed, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if tee != nil {
		workers = 1
	}
	r, err := newRunner(g, policy, workers, nil)
	if err != nil {
		return nil, err
	}
	r.tee = tee
	o, err := r.run(ctx, p.input(revision))
	if err != nil {
		return nil, fmt.Errorf("replay batch %d: %w", p.Plan.Batch, err)
	}
	defer (&batch{out: o}).close()
	return o.replayed(), nil
}
