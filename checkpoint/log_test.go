package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

const testID = "9538ada3-a233-4697-8b02-cc66250189a3"

// options are those of a job with a fixed clock.
func options() Options {
	return Options{
		Job: "delays", Holder: "pid 1", NewID: func() string { return testID },
		Clock: func() int64 { return 1_800_000_000_000 },
	}
}

func open(t *testing.T, files durable.Files, dir string) *Log {
	t.Helper()
	l, err := Open(context.Background(), files, dir, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func plan(id BatchID) Plan {
	return Plan{
		Batch: id, TimeMS: 1_700_000_000_000 + int64(id), WatermarkMS: 5 * int64(id),
		Conf: map[string]string{"wasmill.seed": "7"},
		Sources: []SourcePosition{
			{Name: "flights", End: Position{Line: fmt.Sprintf(`{"logOffset":%d}`, id), Extra: `{"at":"<12>"}`}},
			{Name: "ticks", End: Position{}},
		},
	}
}

func decision(id BatchID) Decision {
	return Decision{
		Batch: id, NextWatermarkMS: 5*int64(id) + 5, Digest: fmt.Sprintf("%032x", id), Revision: fmt.Sprintf("%064x", 1),
		Semantics: 1,
		Inputs:    map[string]Digest{"flights": {Records: 9007199254740993, XXH3: "0af7"}},
		Outputs:   map[string]Digest{"lake": {Records: 3, XXH3: "ff"}},
		Targets:   map[string]TargetOutcome{"lake": {Staged: []byte(`{"parts":["a&b"]}`), Last: id, Digest: "dd"}},
		Sources:   map[string]SourceOutcome{"flights": {Records: 3, WatermarkMS: 5, Idle: true}},
		Attempt:   "0badcafe",
	}
}

func batches(t *testing.T, l *Log, from, to BatchID) {
	t.Helper()
	for id := from; id <= to; id++ {
		if err := l.WritePlan(context.Background(), plan(id)); err != nil {
			t.Fatal(err)
		}
		if err := l.WriteDecision(context.Background(), decision(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTailReturnsWhatWasWritten(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	l := open(t, durable.OS(), dir)
	if p, d, err := l.Tail(t.Context()); p != nil || d != nil || err != nil {
		t.Fatalf("a new checkpoint has a tail: %v %v %v", p, d, err)
	}
	batches(t, l, 0, 2)
	if err := l.WritePlan(t.Context(), plan(3)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l = open(t, durable.OS(), dir)
	p, d, err := l.Tail(t.Context())
	if err != nil || d != nil {
		t.Fatalf("tail: %v %v", d, err)
	}
	if diff := cmp.Diff(ptr(plan(3)), p); diff != "" {
		t.Fatal(diff)
	}
	if err := l.WriteDecision(t.Context(), decision(3)); err != nil {
		t.Fatal(err)
	}
	_, d, err = l.Tail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ptr(decision(3)), d); diff != "" {
		t.Fatal(diff)
	}
	if l.QueryID() != testID {
		t.Fatalf("query id %s", l.QueryID())
	}
}

func ptr[T any](v T) *T { return &v }
