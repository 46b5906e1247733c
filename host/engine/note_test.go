package engine_test

import (
	"context"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/sink"
)

// noteCount counts how often it is noted what is published.
type noteCount struct {
	engine.Log
	notes *int
}

func (n noteCount) NotePublished(ctx context.Context, marks map[string]checkpoint.PublishedMark) error {
	*n.notes++
	return n.Log.NotePublished(ctx, marks)
}

// TestNoteIsSeldom: in a second many batches share one note, and the last one is noted at the end; only where something may
// come twice does each batch have its own.
func TestNoteIsSeldom(t *testing.T) {
	for name, c := range map[string]struct {
		main  sink.Traits
		notes int
	}{"exactly once": {volatileTraits, 2}, "may come twice": {repeatTraits, 6}} {
		w := newWorld(t)
		w.traits["main"] = c.main
		w.in.Append(numbered("v", 50)...) // five batches
		notes := 0
		w.wrapLog = func(l engine.Log) engine.Log { return noteCount{l, &notes} }
		w.mustRun()
		if notes != c.notes {
			t.Errorf("%s: %d notes, want %d", name, notes, c.notes)
		}
		w.wantNoted(t, 4)
	}
}

// wantNoted checks which batch of the main target is noted.
func (w *world) wantNoted(t *testing.T, id checkpoint.BatchID) {
	t.Helper()
	log, err := checkpoint.Open(context.Background(), w.disk.Process(), w.dir, checkpoint.Options{Job: "sim", Holder: "test", Clock: func() int64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // it wrote nothing
	marks, err := log.Published(context.Background())
	if err != nil || marks["main"].Batch != id {
		t.Errorf("noted is %+v, %v", marks, err)
	}
}
