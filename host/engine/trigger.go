package engine

import (
	"context"
	"fmt"
	"time"
)

// Trigger says when a batch is planned.
type Trigger struct {
	// AvailableNow runs batches until everything that exists at the start is processed, then ends.
	AvailableNow bool
	// Interval aligns batches to multiples of it since 1970; 0 is back to back. A batch that overruns is followed at once by
	// the next; missed ticks are not made up for.
	Interval time.Duration
}

// Idle waits of a job that runs back to back: in proportion to what asking costs, so that a large directory is not listed
// all the time.
const (
	idleLeast = 10 * time.Millisecond
	idleMost  = time.Second
	idleShare = 10
)

// Run plans and runs batches until stop is closed, the input of an availableNow job is used up, or something fails. A
// batch that has begun when stop is closed is finished first.
func (e *Engine) Run(ctx context.Context, stop <-chan struct{}) error {
	if e.cfg.Trigger.AvailableNow {
		for i := range e.cfg.Graph.Sources {
			s := &e.cfg.Graph.Sources[i]
			if err := s.Source.Freeze(ctx); err != nil {
				return fmt.Errorf("source %s: %w", s.Name, err)
			}
		}
	}
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-wait.Done():
		}
	}()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		started := e.cfg.Clock.Now()
		ran, err := e.Batch(ctx)
		if err != nil {
			return err
		}
		if !ran && e.cfg.Trigger.AvailableNow {
			return nil
		}
		if d := e.cfg.Trigger.pause(started, e.cfg.Clock.Now(), ran); d > 0 {
			if err := e.cfg.Clock.Wait(wait, d); err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// pause is how long to wait before the next batch.
func (t Trigger) pause(started, now time.Time, ran bool) time.Duration {
	if t.AvailableNow {
		return 0
	}
	if t.Interval <= 0 {
		if ran {
			return 0
		}
		return min(max(idleShare*now.Sub(started), idleLeast), idleMost)
	}
	next := started.Truncate(t.Interval).Add(t.Interval)
	return min(next.Sub(now), t.Interval) // a clock set back must not stop the job
}
