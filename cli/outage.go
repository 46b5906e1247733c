package cli

import (
	"errors"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
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
	case r.job.Trigger.AvailableNow:
		return ""
	case durable.NoSpace(err):
		return "no space left"
	case r.opened && fault.IsPassing(err):
		return "out of reach"
	}
	return ""
}

// mostRecoveries is how often in a row a job recovers from lost output without a batch coming through.
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
