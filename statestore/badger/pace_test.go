package badger

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgraph-io/badger/v4/pb"
)

// Goroutines of a compaction take turns, unless there is a hurry, and none is held back while the folder is opened or closed.
func TestCompactionsArePaced(t *testing.T) {
	for name, c := range map[string]struct {
		tables  int
		started bool
		closeAt time.Duration
		want    time.Duration
	}{
		"one after the other": {tables: hurryAt - 1, started: true, want: 5 * pause},
		"hurry":               {tables: hurryAt, started: true},
		"being opened":        {},
		"being closed":        {started: true, closeAt: 2*pause + pause/2, want: 2*pause + pause/2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p pacer
				var all sync.WaitGroup
				if c.started {
					p.start()
				}
				began := time.Now()
				for range 5 {
					all.Go(func() { p.wait(func() int { return c.tables }) })
				}
				if c.closeAt > 0 {
					time.Sleep(c.closeAt)
					p.close()
				}
				all.Wait()
				if took := time.Since(began); took != c.want {
					t.Errorf("five tables took %v, want %v", took, c.want)
				}
				p.close()
			})
		})
	}
}

// Badger says in words when it has made a table, and those are what the pauses hang on.
func TestCompactionsTellOfTheirTables(t *testing.T) {
	b := &backend{cfg: config(t, t.TempDir()), memTable: 64 << 10}
	opt := b.settings()
	var made atomic.Int64
	told := opt.Logger.(logger)
	told.made = func() { made.Add(1) }
	db, err := openDB(opt.WithLogger(told))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// When so many tables are in the first level, writers wait for a compaction.
	for i := range uint64(4 * levelZeroStall) {
		w := db.NewKVLoader(1)
		for j := range uint64(500) {
			if err := w.Set(&pb.KV{Key: number(i<<16 | j), Value: make([]byte, 100), Version: 1 + i}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	if made.Load() == 0 {
		t.Errorf("no table was told of; %v", db.Levels())
	}
}
