package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// maxAmended bounds how often the plan of one batch is amended: input that keeps vanishing is a fault of its own.
const maxAmended = 8

// maySkip reports whether an error is the loss of planned input of a source that may leave such input out.
func (e *Engine) maySkip(err error) bool {
	var read *readError
	var changed *source.ChangedError
	return errors.As(err, &read) && errors.As(err, &changed) && e.cfg.Graph.Sources[read.source].SkipLost
}

// amend plans an undecided batch again, from where the batch before ended, over what is there now. The
// batch's time and watermark stay.
func (e *Engine) amend(ctx context.Context, b *batch, why error) error {
	e.cfg.Events.warning(fmt.Sprintf("plan batch %d again: its input is not what was planned", b.plan.Batch), why)
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		if r, ok := s.Source.(source.Reviewer); ok && s.SkipLost {
			r.Review(ctx, source.Range{From: b.prev.Position(s.Name), To: b.plan.Position(s.Name)})
		}
	}
	ends, _, err := e.ends(ctx, b.prev)
	if err != nil {
		return err
	}
	return e.replan(ctx, b, ends)
}

// DefaultMaxHeld is how many bytes of records a batch may hold, for its sinks and between its stages, before it is planned
// anew, smaller. A plan is bounded by what lies in the source: a codec, a format or a transform can make much more of it.
const DefaultMaxHeld = 256 << 20

// heldStep is after how many bytes a lane tells what it holds.
const heldStep = 64 << 10

// errTooMuch says that a batch holds more than it may.
var errTooMuch = errors.New("the batch holds too much")

// shrink plans an undecided batch anew, at half of what it had read when it came to too much, and bounds those that follow.
func (e *Engine) shrink(ctx context.Context, b *batch, amended int, why string) error {
	var read int64
	for i := range e.cfg.Graph.Sources {
		var n int64
		for _, l := range e.runner.lanes {
			n += l.read[i].Count()
		}
		read = max(read, n)
	}
	bound := e.pace.bound
	e.pace.bound = max(read/2, 1)
	ends, _, err := e.ends(ctx, b.prev)
	if err != nil {
		return err
	}
	if amended >= maxAmended || read <= 1 || slices.Equal(ends, b.plan.Sources) {
		e.pace.bound = bound
		return tooMuch(read, e.cfg.MaxHeld)
	}
	e.cfg.Events.recovered(Recovery{
		Batch: b.plan.Batch, Rung: "amended", Detail: fmt.Sprintf("after %d records %s: planned anew with %d at most", read, why, e.pace.bound),
	})
	return e.replan(ctx, b, ends)
}

// withoutGone amends the plan of an undecided batch that reads a source which is no longer in the job: the source stays
// where the batch before left it, so that it goes on there if it comes back.
func (e *Engine) withoutGone(ctx context.Context, b *batch) error {
	known := map[string]bool{}
	for i := range e.cfg.Graph.Sources {
		known[e.cfg.Graph.Sources[i].Name] = true
	}
	changed := false
	ends := make([]checkpoint.SourcePosition, 0, len(b.plan.Sources))
	for _, s := range b.plan.Sources {
		if before := b.prev.Position(s.Name); !known[s.Name] && s.End != before {
			s.End, changed = before, true
		}
		ends = append(ends, s)
	}
	if !changed {
		return nil
	}
	e.cfg.Events.recovered(Recovery{Batch: b.plan.Batch, Rung: "amended", Detail: "a source that it reads is no longer in the job"})
	return e.replan(ctx, b, ends)
}

// reads are the marks of the sources' settings.
func (e *Engine) reads() map[string]string {
	marks := map[string]string{}
	for i := range e.cfg.Graph.Sources {
		if s := &e.cfg.Graph.Sources[i]; s.Reads != "" {
			marks[s.Name] = s.Reads
		}
	}
	return marks
}

// Outdated reports whether a plan was made with other settings of a source than reads is the mark of.
func Outdated(plan *checkpoint.Plan, name, reads string) bool {
	was, known := plan.Reads[name]
	return known && was != reads
}

// renewed plans an undecided batch anew, as if the settings had changed before it, as far as its plan is outdated.
func (e *Engine) renewed(ctx context.Context, b *batch) error {
	ends := slices.Clone(b.plan.Sources)
	var names []string
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		at := slices.IndexFunc(ends, func(p checkpoint.SourcePosition) bool { return p.Name == s.Name })
		if at < 0 || !Outdated(b.plan, s.Name, s.Reads) {
			continue
		}
		var err error
		if ends[at].End, err = s.Source.Latest(ctx, b.prev.Position(s.Name), e.pace.limit(s.Limit)); err != nil {
			return fmt.Errorf("source %s: %w", s.Name, err)
		}
		names = append(names, s.Name)
	}
	if names == nil {
		return nil
	}
	e.cfg.Events.recovered(Recovery{
		Batch: b.plan.Batch, Rung: "amended", Detail: fmt.Sprintf("source %s has other settings than the plan was made with", strings.Join(names, ", ")),
	})
	return e.replan(ctx, b, ends)
}

// replan replaces the plan of an undecided batch by one with other ends. Which rows were refused is not known of it.
func (e *Engine) replan(ctx context.Context, b *batch, ends []checkpoint.SourcePosition) error {
	p := *b.plan
	p.Sources, p.Refused, p.Reads = ends, nil, e.reads()
	return e.rewrite(ctx, b, &p)
}

// rewrite replaces the plan of an undecided batch. The old plan is kept aside.
func (e *Engine) rewrite(ctx context.Context, b *batch, p *checkpoint.Plan) error {
	if err := e.cfg.Log.Supersede(ctx, b.plan.Batch, checkpoint.Amended); err != nil {
		return err
	}
	if err := e.cfg.Log.WritePlan(ctx, *p); err != nil {
		return err
	}
	b.plan = p
	return nil
}
