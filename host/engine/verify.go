package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Verify has a share of the batches run once more on another engine. The two must come to the same digests, or the batch
// ends there: it is planned and nothing of it is staged, so that the next start runs it again.
type Verify struct {
	// Share of the batches, above 0 and at most 1.
	Share float64
	// Graph is the job's, with the same sources and targets, and with programs of the same modules on the other engine.
	Graph *Graph
	// Engine names the other engine.
	Engine string
}

// runner makes the runner that verifies; v may be nil.
func (v *Verify) runner(cfg *Config) (*runner, error) {
	if v == nil {
		return nil, nil
	}
	if err := v.Graph.check(); err != nil {
		return nil, err
	}
	return newRunner(v.Graph, cfg.Errors, cfg.Workers, nil)
}

// Picks reports whether a batch is verified. Its number alone decides, so a batch that runs again is picked again.
func (v *Verify) Picks(id checkpoint.BatchID) bool {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(id))
	const bits = 53
	return float64(xxh3.Hash(number[:])>>(64-bits)) < v.Share*(1<<bits)
}

// verify runs a batch that has just run on the other engine too, if it is one of the share, and compares all digests.
func (e *Engine) verify(ctx context.Context, b *batch) error {
	if e.other == nil || !e.cfg.Verify.Picks(b.plan.Batch) {
		return nil
	}
	in := input{query: e.cfg.Log.QueryID(), revision: e.cfg.Revision, plan: b.plan, prev: b.prev, begin: e.beginState()}
	out, err := e.other.run(ctx, in)
	defer (&batch{out: out}).close()
	if err != nil && !byGuest(err) {
		return fmt.Errorf("verify on the %s: %w", e.cfg.Verify.Engine, err)
	}
	what := ""
	if err != nil {
		what = fmt.Sprintf("the %s came through, the %s failed: %v", e.cfg.Host.Engine, e.cfg.Verify.Engine, err)
	} else {
		what = e.unlike(b.out, out)
	}
	if what == "" {
		e.cfg.Events.verified(b.plan.Batch, nil)
		return nil
	}
	place, first := e.locate(ctx, in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	differs := fault.New(CodeEnginesDiffer, place, errors.New(what+"; "+first+"; nothing of the batch is staged"),
		"report this with the module and the record; without --verify-replay the job goes on, on one engine alone")
	e.cfg.Events.verified(b.plan.Batch, differs)
	return differs
}

// unlike says how the outcomes of the two engines differ, "" when they do not.
func (e *Engine) unlike(a, b *outcome) string {
	all := texts(append(differing(a.inputs, b.inputs), differing(a.outputs, b.outputs)...))
	if a.state.Digest != b.state.Digest {
		all = append(all, fmt.Sprintf("the state changes are %.8s, decided were %.8s", b.state.Digest, a.state.Digest))
	}
	if len(all) == 0 && a.digest == b.digest {
		return ""
	}
	if len(all) == 0 {
		all = []string{fmt.Sprintf("the digest is %s, decided would be %s", b.digest, a.digest)}
	}
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "decided were", "on the "+e.cfg.Host.Engine+" they are")
	}
	return fmt.Sprintf("the %s and the %s come to different results: on the %s %s", e.cfg.Host.Engine, e.cfg.Verify.Engine,
		e.cfg.Verify.Engine, strings.Join(all, "; "))
}

// byGuest reports whether an error of a run is what its guests did: then it is an outcome that engines must agree on.
func byGuest(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return false
	}
	switch f.ErrCode {
	case CodeRecordStopped, CodeTooManyLetters, CodeTooMuchPoison, CodeGuestFailed, CodeNotRepeatable, sandbox.CodeAlloc:
		return true
	}
	return false
}

// locate runs a batch on both engines once more and finds the first record that their guests emit differently: its place,
// and what it is on both.
func (e *Engine) locate(ctx context.Context, in input) (place, first string) {
	place = fmt.Sprintf("batch %d", in.plan.Batch)
	a, b := newTrace(e.cfg.Graph), newTrace(e.cfg.Graph)
	e.runner.traced(ctx, in, a)
	e.other.traced(ctx, in, b)
	at, found := a.parts(b)
	if !found {
		return place, "a further run of both finds no transform that emits anything else"
	}
	a.want, b.want = at, at
	e.runner.traced(ctx, in, a)
	e.other.traced(ctx, in, b)
	return fmt.Sprintf("transform %s, lane %d", e.cfg.Graph.Stages[at.stage].Name, at.lane),
		fmt.Sprintf("first in batch %d, record %d that it emits: %s on the %s, %s on the %s", in.plan.Batch, at.index,
			a.shown(), e.cfg.Host.Engine, b.shown(), e.cfg.Verify.Engine)
}
