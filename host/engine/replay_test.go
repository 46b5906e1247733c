package engine_test

import (
	"context"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/engine/sim"
)

// replay runs a retained batch of the world again and returns its digest.
func replay(t *testing.T, w *world, batch, workers int) string {
	t.Helper()
	ctx := context.Background()
	files := w.disk.Process()
	defer files.Kill()
	log, err := checkpoint.Open(ctx, files, w.dir, checkpoint.Options{
		Job: "sim", Holder: "replay", NewID: func() string { return "" }, Clock: func() int64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	id := checkpoint.BatchID(batch)
	past := engine.Past{Query: log.QueryID()}
	if past.Plan, err = log.Plan(ctx, id); err != nil {
		t.Fatal(err)
	}
	if past.Decision, err = log.Decision(ctx, id); err != nil {
		t.Fatal(err)
	}
	if id > 0 {
		if past.Prev, err = log.Plan(ctx, id-1); err != nil {
			t.Fatal(err)
		}
	}
	g, policy := w.graph(&sim.Process{})
	got, err := engine.Replay(ctx, g, policy, past.Decision.Revision, past, workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Compare(&past, got, w.host, engine.Changes{}); err != nil {
		t.Error(err)
	}
	return got.Digest
}
