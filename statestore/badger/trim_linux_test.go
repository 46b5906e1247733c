package badger

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"testing"

	"github.com/wasmill/wasmill/statestore"
)

// Pages that are given back are missing in this process alone: everything reads as it was written.
func TestTrimmedTablesReadTheSame(t *testing.T) {
	b := mustOpen(t, t.TempDir())
	defer b.Close()
	const batches, keys = 40, 1000
	value := func(batch, i int) []byte {
		v := make([]byte, 500)
		binary.BigEndian.PutUint64(v, uint64(batch*keys+i))
		return v
	}
	for batch := range batches {
		var changes iter.Seq2[statestore.Change, error] = func(yield func(statestore.Change, error) bool) {
			for i := range keys {
				if !yield(statestore.Change{Key: fmt.Appendf(nil, "\x10%08d", i*batches+batch), Value: value(batch, i)}, nil) {
					return
				}
			}
		}
		if err := b.Apply(context.Background(), statestore.Marker{Batch: int64(batch)}, changes); err != nil {
			t.Fatal(err)
		}
	}
	readAllKeys := func() {
		t.Helper()
		for batch := range batches {
			for i := range keys {
				v, found, err := b.Get(batches, fmt.Appendf(nil, "\x10%08d", i*batches+batch), nil)
				if err != nil || !found || string(v) != string(value(batch, i)) {
					t.Fatalf("batch %d, key %d: %d bytes, %v, %v", batch, i, len(v), found, err)
				}
			}
		}
	}
	readAllKeys()
	b.trim.busy.Lock()
	before := mappedFiles(b.files)
	b.trim.trim(b)
	after := mappedFiles(b.files)
	b.trim.busy.Unlock()
	if tables := b.db.Tables(); len(tables) < 2 {
		t.Fatalf("%d tables: nothing was tried", len(tables))
	}
	if before-after < 2<<20 {
		t.Errorf("mapped files had %d MB before and %d MB after", before>>20, after>>20)
	}
	readAllKeys()
}

func TestMappings(t *testing.T) {
	for line, want := range map[string]string{
		"7f10-7f20 rw-s 00000000 fe:00 1234 /state/000001.sst":           "7f10+10 /state/000001.sst",
		"7f10-7f20 r--s 00000000 fe:00 1234 /a b/000001.sst":             "7f10+10 /a b/000001.sst",
		"7f10-7f20 rw-s 00000000 fe:00 1234 /state/000001.sst (deleted)": "7f10+10 /state/000001.sst (deleted)",
		"7f10-7f20 rw-p 00000000 fe:00 1234 /state/000001.sst":           "none", // private: its pages may have been written
		"7f10-7f20 rw-p 00000000 00:00 0":                                "none",
		"7f20-7f10 rw-s 00000000 fe:00 1234 /state/000001.sst":           "none",
		"7f10 rw-s 00000000 fe:00 1234 /state/000001.sst":                "none",
		"zz-7f20 rw-s 00000000 fe:00 1234 /state/000001.sst":             "none",
		"": "none",
	} {
		got := "none"
		if m, ok := parseMapping([]byte(line)); ok {
			got = fmt.Sprintf("%x+%x %s", m.from, m.size, m.name)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
