package files_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
)

const query = "0c0ffee0-1111-4222-8333-444455556666"

// clock is a clock that stands until it is moved.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newTarget(tb testing.TB, cfg files.Config) *files.Target {
	tb.Helper()
	if cfg.Sink == "" {
		cfg.Sink = "lake"
	}
	if cfg.Files == nil {
		cfg.Files = durable.OS()
	}
	if cfg.Clock == nil {
		cfg.Clock = (&clock{time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)}).now
	}
	t, err := files.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

func owner(next checkpoint.BatchID) sink.Owner {
	return sink.Owner{Query: query, Job: "test", Next: next}
}

func open(tb testing.TB, t *files.Target, next checkpoint.BatchID) sink.Published {
	tb.Helper()
	p, err := t.Open(context.Background(), owner(next))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// digestOf is a stand-in for a batch digest.
func digestOf(n checkpoint.BatchID) string {
	return fmt.Sprintf("%032x", uint64(n)*0x9e3779b97f4a7c15+1)
}

// stage stages one batch, two lanes of it.
func stage(tb testing.TB, t *files.Target, n checkpoint.BatchID, attempt string, values ...string) sink.Staged {
	tb.Helper()
	var lanes []sink.Lane
	for l := range 2 {
		lane, err := t.NewLane(t.ID())
		if err != nil {
			tb.Fatal(err)
		}
		for i, v := range values {
			if i*2/len(values) != l {
				continue
			}
			if err := lane.Append(&abi.Record{Value: []byte(v)}); err != nil {
				tb.Fatalf("%s: %v", v, err)
			}
		}
		if lane.Rows() > 0 {
			lanes = append(lanes, lane)
		}
	}
	s, err := t.Stage(context.Background(), sink.Output{
		Batch: n, Digest: digestOf(n), Attempt: attempt, Sinks: []sink.SinkOutput{{Name: t.ID(), Lanes: lanes}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func publish(tb testing.TB, t *files.Target, n checkpoint.BatchID, values ...string) {
	tb.Helper()
	s := stage(tb, t, n, "0a0b0c0d", values...)
	if err := t.Publish(context.Background(), &checkpoint.Decision{Batch: n, Digest: digestOf(n)}, s); err != nil {
		tb.Fatal(err)
	}
	if err := t.Sealed(context.Background(), n); err != nil {
		tb.Fatal(err)
	}
}
