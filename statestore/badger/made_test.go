package badger

import (
	"sync/atomic"
	"testing"

	"github.com/dgraph-io/badger/v4/pb"
)

// Badger says in words when it has made a table, and giving back its pages hangs on those.
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
