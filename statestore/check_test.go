package statestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

// Files are held against what they must be without a store: a damaged snapshot and a changelog of another batch are named.
func TestCheck(t *testing.T) {
	k := newKept(t, mem.New())
	files := durable.OS()
	newest := k.last()
	attempt := func(n int64) string { return fmt.Sprintf("%08x", n) }
	must(t, statestore.CheckChangelog(t.Context(), files, k.dir, query, newest, attempt(newest), k.digests[newest]))
	if found, err := statestore.CheckSnapshots(t.Context(), files, k.dir, query); err != nil || len(found) != 0 {
		t.Fatalf("good snapshots: %v, %v", found, err)
	}
	for name, c := range map[string]struct {
		query, attempt, digest string
		want                   error
	}{
		"another query":   {"other", attempt(newest), k.digests[newest], statestore.ErrCorrupt},
		"another attempt": {query, "ffffffff", k.digests[newest], statestore.ErrMissing},
		"another digest":  {query, attempt(newest), k.digests[newest-1], statestore.ErrCorrupt},
	} {
		err := statestore.CheckChangelog(t.Context(), files, k.dir, c.query, newest, c.attempt, c.digest)
		if wrong := (*statestore.FileError)(nil); !errors.Is(err, c.want) || !errors.As(err, &wrong) || wrong.Batch != newest {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	names := k.snapshots(t)
	if len(names) < 2 {
		t.Fatalf("snapshots %v", names)
	}
	flip(t, names[0])
	must(t, os.WriteFile(filepath.Join(k.dir, "snapshot", ".99.tmp"), []byte("half"), 0o600))
	found, err := statestore.CheckSnapshots(t.Context(), files, k.dir, query)
	if err != nil || len(found) != 1 {
		t.Fatalf("one is damaged: %v, %v", found, err)
	}
	if wrong := (*statestore.FileError)(nil); !errors.Is(found[0], statestore.ErrCorrupt) || !errors.As(found[0], &wrong) || wrong.File != names[0] {
		t.Errorf("it is said: %v", found[0])
	}
	if found, err := statestore.CheckSnapshots(t.Context(), files, filepath.Join(k.dir, "nowhere"), query); err != nil || found != nil {
		t.Errorf("without state: %v, %v", found, err)
	}
}
