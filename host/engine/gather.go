package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// Gather holds small batches back, so that tables get fewer and larger files. It delays plans only: no record is planned and
// then kept waiting.
type Gather struct {
	// Records is how many there should be, of all sources together, before a batch is planned; 0 does not wait. Sources that
	// cannot say how much lies in a range without reading it are not waited for.
	Records int64
	// Delay is how long what has come waits for more, at most.
	Delay time.Duration
}

// gathered reports whether what can be planned up to ends is enough for a batch, or has waited for long enough.
func (e *Engine) gathered(ctx context.Context, ends []checkpoint.SourcePosition) (bool, error) {
	g := e.cfg.Trigger.Gather
	if g.Records == 0 || e.cfg.Trigger.AvailableNow {
		return true, nil
	}
	now := e.cfg.Clock.Now()
	if e.waiting.IsZero() {
		e.waiting = now
	}
	if now.Sub(e.waiting) >= g.Delay || now.Before(e.waiting) { // a clock set back must not hold anything back
		return true, nil
	}
	total := int64(0)
	for i := range e.cfg.Graph.Sources {
		s := &e.cfg.Graph.Sources[i]
		r := source.Range{From: e.plan.Position(s.Name), To: ends[i].End}
		if r.From == r.To {
			continue
		}
		m, ok := s.Source.(source.Measurer)
		if !ok {
			return true, nil
		}
		extent, err := m.Measure(ctx, r)
		if err != nil {
			return false, fmt.Errorf("source %s: measure what there is: %w", s.Name, err)
		}
		if extent.Records == 0 {
			return true, nil // not known
		}
		total += extent.Records
	}
	return total >= g.Records, nil
}

// untilGathered is how long a job waits at most while something waits for more.
func (e *Engine) untilGathered(d time.Duration) time.Duration {
	if e.waiting.IsZero() {
		return d
	}
	left := e.cfg.Trigger.Gather.Delay - e.cfg.Clock.Now().Sub(e.waiting)
	return min(d, max(left, gatherLeast))
}

// gatherLeast is the least wait for more.
const gatherLeast = time.Millisecond
