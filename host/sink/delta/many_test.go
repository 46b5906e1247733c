package delta_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// TestManyWriters lets queries append and upsert at the same time on a real disk: each batch of each comes once, and a reader
// in between sees whole batches only.
func TestManyWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	schema := rowstest.SchemaOf(t, "who", "int32", "n", "int64", "copy", "int32")
	const writers, batches, copies = 4, 8, 3
	ended := make(chan error, writers)
	for who := range writers {
		cfg := target.Config{Dir: dir, Schema: schema, CheckpointInterval: 5}
		if who%2 == 1 {
			cfg.Key = []string{"who", "n", "copy"}
		}
		tt := newTarget(t, cfg)
		o := sink.Owner{Query: fmt.Sprintf("%08d-1111-4222-8333-444455556666", who), Job: "test"}
		go func() {
			_, err := tt.Open(context.Background(), o)
			for n := checkpoint.BatchID(0); n < batches && err == nil; n++ {
				var records []record
				for c := range copies {
					records = append(records, record{value: fmt.Sprintf(`{"who":%d,"n":%d,"copy":%d}`, who, n, c)})
				}
				err = untilPublished(tt, n, records)
			}
			ended <- err
		}()
	}
	for running := writers; running > 0; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running--
		default:
		}
		s := snapshot(t, osFiles, dir)
		if s == nil {
			continue
		}
		got, err := read(osFiles, dir, s)
		if err != nil {
			t.Fatal(err)
		}
		if len(got)%copies != 0 {
			t.Fatalf("version %d has %d rows: a part of a batch", s.Version, len(got))
		}
		if running == 0 && (len(got) != writers*batches*copies || s.Version != writers*batches-1) {
			t.Fatalf("version %d has %d rows, want %d with %d", s.Version, len(got), writers*batches-1, writers*batches*copies)
		}
	}
}

// untilPublished runs a batch again whenever it is lost to another writer, as the engine does.
func untilPublished(t *target.Target, n checkpoint.BatchID, records []record) error {
	for {
		err := batch(t, n, records)
		if !errors.Is(err, sink.ErrLost) {
			return err
		}
	}
}
