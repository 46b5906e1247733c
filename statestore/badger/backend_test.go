package badger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/statestoretest"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(runCrashChild())
	}
	goleak.VerifyTestMain(m)
}

// config is that of a folder in tests. Warnings fail the test.
func config(t testing.TB, dir string) statestore.BackendConfig {
	return statestore.BackendConfig{
		Files: durable.OS(), Dir: dir, Query: "q",
		Point:   func(string) {},
		Warning: func(op string, err error) { t.Errorf("warning: %s: %v", op, err) },
	}
}

func mustOpen(t testing.TB, dir string) *backend {
	t.Helper()
	b, err := Open(context.Background(), config(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return b.(*backend)
}

// list makes changes of pairs; a nil value is a deletion.
func list(changes ...statestore.Change) iter.Seq2[statestore.Change, error] {
	return func(yield func(statestore.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func apply(t testing.TB, b *backend, batch int64, changes ...statestore.Change) {
	t.Helper()
	m := statestore.Marker{Batch: batch, Meta: fmt.Appendf(nil, "meta %d", batch)}
	if err := b.Apply(context.Background(), m, list(changes...)); err != nil {
		t.Fatalf("apply %d: %v", batch, err)
	}
}

func put(key, value string) statestore.Change {
	return statestore.Change{Key: []byte(key), Value: []byte(value)}
}
func del(key string) statestore.Change { return statestore.Change{Key: []byte(key)} }

func wantValue(t testing.TB, b *backend, asOf int64, key, want string) {
	t.Helper()
	v, found, err := b.Get(asOf, []byte(key), nil)
	if err != nil || found != (want != "") || string(v) != want {
		t.Errorf("as of %d %q = %q, %v, %v; want %q", asOf, key, v, found, err, want)
	}
}

// crashed copies the folder of an open backend: what a process finds that starts after this one was killed now.
func crashed(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "badger")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestConformance(t *testing.T) {
	statestoretest.Run(t, func(*testing.T) statestore.Opener { return Open })
}

func TestLogsAreNotNeeded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	b := mustOpen(t, dir)
	apply(t, b, 0, put("\x10a", "1"))
	apply(t, b, 3, put("\x10a", "2"), put("\x10b", "3"))
	wantValue(t, b, 2, "\x10a", "1")
	wantValue(t, b, 3, "\x10a", "2")
	wantValue(t, b, -1, "\x10a", "")
	if b.Durable() != -1 {
		t.Errorf("durable = %d with an empty folder", b.Durable())
	}
	lost := mustOpen(t, crashed(t, dir))
	if m, err := lost.Marker(100); err != nil || m.Batch != -1 {
		t.Errorf("after a crash: %v, %v", m, err)
	}
	if err := lost.Close(); err != nil {
		t.Error(err)
	}
	if err := b.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = mustOpen(t, dir)
	defer b.Close()
	m, err := b.Marker(100)
	if err != nil || m.Batch != 3 || string(m.Meta) != "meta 3" || b.Durable() != 3 {
		t.Errorf("after closing: %v, %v, durable %d", m, err, b.Durable())
	}
	if m, err := b.Marker(2); err != nil || m.Batch != 0 {
		t.Errorf("marker as of 2: %v, %v", m, err)
	}
	wantValue(t, b, 0, "\x10a", "1")
	wantValue(t, b, 9, "\x10b", "3")
}

func TestOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	b := mustOpen(t, dir)
	defer b.Close()
	_, err := Open(context.Background(), config(t, dir))
	var locked *durable.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("second open: %v", err)
	}
}

func TestAnotherQueryIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	b := mustOpen(t, dir)
	apply(t, b, 0, put("\x10a", "1"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, dir)
	cfg.Query = "other"
	if _, err := Open(context.Background(), cfg); !errors.Is(err, statestore.ErrDamaged) {
		t.Errorf("open for another query: %v", err)
	}
}

var osFiles = durable.OS()

// applySet applies a set of changes in the order of keys; an empty value is a deletion.
func applySet(t testing.TB, b *backend, batch int64, set map[string]string) {
	t.Helper()
	var changes []statestore.Change
	for _, key := range slices.Sorted(maps.Keys(set)) {
		c := del(key)
		if set[key] != "" {
			c = put(key, set[key])
		}
		changes = append(changes, c)
	}
	apply(t, b, batch, changes...)
}
