package engine

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// SpoolPolicy says whether what a batch puts out to targets that forget what they have staged is kept durably until it is
// published. A decided batch can then be published also when its input is gone or its module gives something else.
type SpoolPolicy string

// The policies. The zero policy is SpoolAuto.
const (
	SpoolAuto   SpoolPolicy = "auto" // where there are two targets or more, which must not come apart
	SpoolAlways SpoolPolicy = "always"
	SpoolNever  SpoolPolicy = "never"
)

// sinks says by sink whether its records are spooled.
func (p SpoolPolicy) sinks(g *Graph) []bool {
	if p == SpoolNever || p != SpoolAlways && len(g.targets()) < 2 {
		return nil
	}
	out := make([]bool, len(g.Sinks))
	for i := range g.Sinks {
		out[i] = g.Sinks[i].Target.Traits().Volatile
	}
	return out
}

// fromSpool is rung (b): what the targets would get of what was kept for the batch, proven by the digests of the decision.
// It returns nil when nothing was kept for them or it does not serve; the batch can still be run again.
func (e *Engine) fromSpool(ctx context.Context, b *batch, lost []sink.Target) map[string]sink.Output {
	parts, err := e.cfg.Log.Spool(ctx, b.decision)
	if err == nil && parts == nil {
		return nil
	}
	var outs map[string]sink.Output
	if err == nil {
		outs, err = e.unspool(b, lost, parts)
	}
	if err != nil {
		e.cfg.Events.warning(fmt.Sprintf("publish batch %d from the spool", b.plan.Batch), err)
		return nil
	}
	return outs
}

// unspool gives the kept records to new lanes. That each sink is still on its target, checkMoved has seen.
func (e *Engine) unspool(b *batch, lost []sink.Target, parts []checkpoint.Spooled) (map[string]sink.Output, error) {
	outs := map[string]sink.Output{}
	for _, t := range lost {
		outs[t.ID()] = sink.Output{Batch: b.plan.Batch, TimeMS: b.plan.TimeMS, Digest: b.decision.Digest, Attempt: b.attempt}
	}
	for i := range e.cfg.Graph.Sinks {
		s := &e.cfg.Graph.Sinks[i]
		out, is := outs[s.Target.ID()]
		if !is {
			continue
		}
		decided, was := b.decision.Outputs[s.Name]
		if !was {
			continue // newer than the batch
		}
		lanes, err := unspoolSink(s, parts, decided)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", s.Name, err)
		}
		out.Sinks = append(out.Sinks, sink.SinkOutput{Name: s.Name, Lanes: lanes})
		outs[s.Target.ID()] = out
	}
	return outs, nil
}

func unspoolSink(s *SinkNode, parts []checkpoint.Spooled, want checkpoint.Digest) ([]sink.Lane, error) {
	var lanes []sink.Lane
	var digests []abi.LaneDigest
	for i := range parts {
		p := &parts[i]
		if p.Sink != s.Name {
			continue
		}
		l, err := s.Target.NewLane(s.Name)
		if err != nil {
			return nil, err
		}
		var digest abi.RecordDigest
		for _, data := range p.Data {
			t, err := tapeOf(data)
			if err != nil {
				return nil, err
			}
			if err := t.each(func(_ int, r *abi.Record) error { digest.Add(r); return l.Append(r) }); err != nil {
				return nil, err
			}
		}
		lanes = append(lanes, l)
		digests = append(digests, abi.LaneDigest{Lane: p.Lane, Records: uint64(digest.Count()), Sum: digest.Sum()})
	}
	sum, n := abi.CombineLanes(digests)
	if got := (checkpoint.Digest{Records: n, XXH3: sum}); got != want {
		return nil, fmt.Errorf("kept are %d records %.8s, decided were %d records %.8s", got.Records, got.XXH3, want.Records, want.XXH3)
	}
	return lanes, nil
}
