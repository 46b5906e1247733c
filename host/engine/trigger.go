package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/source"
)

// Trigger says when a batch is planned.
type Trigger struct {
	// AvailableNow runs batches until everything that exists at the start is processed, then ends.
	AvailableNow bool
	// Interval aligns batches to multiples of it since 1970; 0 is back to back. A batch that overruns is followed at once by
	// the next; missed ticks are not made up for.
	Interval time.Duration
	Gather   Gather
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
	defer func() {
		if !e.noted.IsZero() {
			e.note(context.WithoutCancel(ctx))
		}
	}()
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-wait.Done():
		}
	}()
	e.asking = wait
	defer func() { e.asking = nil }()
	news := e.news()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		started := e.cfg.Clock.Now()
		ran, err := e.Batch(ctx)
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return err
		}
		if !ran && e.cfg.Trigger.AvailableNow {
			return nil
		}
		if d := e.untilTimer(e.cfg.Trigger.pause(started, e.cfg.Clock.Now(), ran)); d > 0 {
			if e.idle(wait, d, news); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// news lists the channels of the sources that say when something has come.
func (e *Engine) news() []<-chan struct{} {
	var out []<-chan struct{}
	for i := range e.cfg.Graph.Sources {
		if n, ok := e.cfg.Graph.Sources[i].Source.(source.Notifier); ok {
			out = append(out, n.News())
		}
	}
	return out
}

// idle waits. A job that runs back to back is woken by its sources; those that cannot say when something has come are
// asked in between.
func (e *Engine) idle(ctx context.Context, d time.Duration, news []<-chan struct{}) {
	if e.cfg.Trigger.Interval > 0 || len(news) == 0 {
		_ = e.cfg.Clock.Wait(ctx, d) //nolint:errcheck // the caller looks at its context
		return
	}
	if len(news) == len(e.cfg.Graph.Sources) {
		d = e.untilGathered(e.untilTimer(idleMost))
	}
	woken, wake := context.WithCancel(ctx)
	var listeners sync.WaitGroup
	defer listeners.Wait() // one that is left over would take the next word away
	defer wake()
	for _, n := range news {
		listeners.Go(func() {
			select {
			case <-n:
				wake()
			case <-woken.Done():
			}
		})
	}
	_ = e.cfg.Clock.Wait(woken, d) //nolint:errcheck // the caller looks at its context
}

// untilTimer is how long a job that runs back to back waits at most: a timer by the clock may be due earlier.
func (e *Engine) untilTimer(d time.Duration) time.Duration {
	if e.cfg.Store == nil || e.cfg.Trigger.Interval > 0 || d <= 0 {
		return d
	}
	at, any := e.cfg.Store.NextTimer(abi.DomainProcessing)
	if !any {
		return d
	}
	return min(d, max(time.UnixMilli(at).Sub(e.cfg.Clock.Now()), timerLeast))
}

// timerLeast is the least wait for a timer: that one is set may be known before it is due by the clock of a plan.
const timerLeast = time.Millisecond

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
