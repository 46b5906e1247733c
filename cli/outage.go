package cli

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sink"
)

// passes says in a word what is waited for after an error, or nothing when the job ends with it. What is wrong at the start
// is more likely a mistake than an outage, so only a job that has run waits for its cluster.
func (r *running) passes(err error, b *backOff) string {
	switch {
	case err == nil || errors.Is(err, durable.ErrSync):
		return ""
	case errors.Is(err, sink.ErrLost) && b.failed < mostRecoveries:
		return "what was staged is lost"
	case r.job.Trigger.AvailableNow && b.failed >= mostRecoveries:
		return "" // who started it sees that it ends, and starts it again
	case durable.NoSpace(err) && !r.job.Trigger.AvailableNow:
		return "no space left"
	case r.opened && fault.IsPassing(err):
		return "out of reach"
	}
	return ""
}

// mostRecoveries is how often in a row a job recovers from lost output, and one that runs once from anything that passes, as
// deadlocks of a database do, without a batch coming through.
const mostRecoveries = 5

// backOff is how long to wait before everything is opened anew: the longer the more often it failed in a row, without a
// batch in between.
type backOff struct{ failed int }

const (
	leastWait = 200 * time.Millisecond
	mostWait  = 10 * time.Second
)

// next returns the next wait.
func (b *backOff) next() time.Duration {
	wait := min(leastWait<<min(b.failed, 10), mostWait)
	b.failed++
	return wait
}

// errorAttrs are the attributes of an error in a log: its text, its code and the way out, and more.
func errorAttrs(err error, more ...any) []any {
	attrs := []any{"error", err}
	if c, ok := errors.AsType[interface {
		error
		Code() string
		Hint() string
	}](err); ok {
		attrs = append(attrs, "code", c.Code(), "hint", c.Hint())
	}
	return append(attrs, more...)
}

// openGrace is how long a job that is to end may still be opened: recovery may be about to bring a batch to its end.
const openGrace = 5 * time.Second

// open opens the pipeline; done is called when it is closed. Both are nil when the job was told to end meanwhile and what it
// needs is away.
func (r *running) open(ctx context.Context, p *pipeline.Program) (pl *pipeline.Pipeline, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	opened := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-opened:
			return
		case <-r.stop:
		}
		grace := time.NewTimer(openGrace)
		defer grace.Stop()
		select {
		case <-opened:
		case <-grace.C:
			cancel()
		}
	})
	pl, err = p.Open(ctx)
	close(opened)
	watcher.Wait()
	if err == nil {
		return pl, cancel, nil
	}
	defer cancel()
	if ctx.Err() != nil && isClosed(r.stop) {
		r.log.Warn("stopped while opening: the next start recovers", "error", err)
		return nil, nil, nil
	}
	return nil, nil, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// hasRun tells that the job's checkpoint holds progress: what is wrong at a start is then more likely an outage than a
// mistake in the job file.
func (e *Env) hasRun(j *job.Job) bool {
	entries, err := e.Files.List(path.Join(j.Checkpoint, "commits"))
	return err == nil && len(entries) > 0
}
