package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
)

// The codes of this package's faults, beside those of kafkaconn. CodeChanged wraps a *source.ChangedError.
const (
	CodeConfig   = "source.config"
	CodeChanged  = "source.changed"
	CodePosition = "source.position"
	CodeVersion  = "source.version"
	CodeCorrupt  = "source.corrupt"
	CodeTopic    = "kafka.unknown_topic"
	CodeStalled  = "kafka.stalled" // a partition has no leader, or does not reach the end of a planned range
)

// The codes of rejected records.
const (
	RejectTooLarge = "too_large"        // longer than MaxRecord
	RejectHeaders  = "too_many_headers" // more than a record may have
)

func configFault(name, what string) error {
	return fault.New(CodeConfig, "source "+name, errors.New(what), "mend the source in the job file")
}

func changed(at, format string, args ...any) *fault.Error {
	return fault.New(CodeChanged, at, change{&source.ChangedError{Split: at, Detail: fmt.Sprintf(format, args...)}},
		fromElsewhere+"; or go on without it, with `onDataLoss: skip` of the source in the job file")
}

// fromElsewhere is the way out of a loss.
const fromElsewhere = "what is lost can only come from elsewhere: a mirror of the topic, a backup"

// change is a ChangedError whose place is told by the fault around it.
type change struct{ err *source.ChangedError }

func (c change) Error() string { return c.err.Detail }
func (c change) Unwrap() error { return c.err }

func badPosition(text string, err error) error {
	return fault.New(CodePosition, "", fmt.Errorf("position %.200q of a kafka source: %w", text, err), "run `wasmill checkpoint verify`")
}

func corrupt(at string, err error) error {
	return fault.New(CodeCorrupt, at, err, "see whether another consumer can read the topic there; a replica that is well may become leader")
}

func unknownTopics(place string, names ...string) error {
	return fault.New(CodeTopic, place, errors.New("the cluster has no topic "+strings.Join(names, ", ")+", or this user may not see it"),
		"create the topic, mend its name in the job file, or give the job's user leave to describe it")
}

func stalled(at string, err error) error {
	return fault.Passing(CodeStalled, at, err, "see that the partition has a leader and enough replicas")
}

// passing reports whether an error may go by when the same is asked again.
func (s *Source) passing(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		return false
	case errors.As(err, new(*fault.Error)):
		return false
	case errors.As(err, new(*kerr.Error)):
		return kerr.IsRetriable(err)
	}
	return kafkaconn.IsPassing(err, s.reached.Load())
}

const (
	firstPause = 20 * time.Millisecond
	maxPause   = 2 * time.Second
)

// backoff spaces attempts: pauses double, and their sum is bounded. The zero value is ready.
type backoff struct {
	next, spent time.Duration
}

// wait pauses, and reports false without pausing when more than patience has been waited already.
func (b *backoff) wait(ctx context.Context, patience time.Duration) (bool, error) {
	if b.spent >= patience {
		return false, nil
	}
	d := min(max(b.next, firstPause), maxPause, patience-b.spent)
	b.next, b.spent = 2*d, b.spent+d
	return true, pause(ctx, d)
}

// try does what asks the cluster for something again, with pauses, while its errors are such that go by, until patience
// has passed. The client tries again by itself too, so that one attempt may take all of it.
func (s *Source) try(ctx context.Context, patience time.Duration, ask func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var b backoff
	var last error
	for {
		err := ask(within)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !s.passing(err):
			return err
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		if again, err := b.wait(within, patience); !again || err != nil {
			return cmp.Or(ctx.Err(), s.reason(last))
		}
	}
}

// reason is what stands behind an error that says no more than that time is up: the connection that could not be made.
func (s *Source) reason(err error) error {
	if why := s.dials.last.Load(); why != nil && errors.Is(err, context.DeadlineExceeded) {
		return *why
	}
	return err
}

// dialWatch remembers why the last connection could not be made.
type dialWatch struct{ last atomic.Pointer[error] }

var _ kgo.HookBrokerConnect = (*dialWatch)(nil)

// OnBrokerConnect is called by the client after each dial.
func (w *dialWatch) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		w.last.Store(nil)
		return
	}
	w.last.Store(&err)
}

func pause(ctx context.Context, d time.Duration) error {
	t, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-t.Done()
	return ctx.Err()
}
