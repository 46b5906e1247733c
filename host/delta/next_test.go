package delta_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/host/delta"
)

// grown returns a table with versions 0 to last, and checkpoints at some.
func grown(t *testing.T, last int64, checkpoints ...int64) (*delta.Log, string) {
	t.Helper()
	l, dir := golden(t, "d-delta")
	must(t, os.RemoveAll(filepath.Join(dir, "_delta_log")))
	create(t, l)
	for v := int64(1); v <= last; v++ {
		_, err := l.Commit(ctx, snapshot(t, l), []delta.Action{info(""), add("f")})
		must(t, err)
		for _, c := range checkpoints {
			if c == v {
				must(t, l.WriteCheckpoint(ctx, snapshot(t, l)))
			}
		}
	}
	return l, dir
}

func lose(t *testing.T, dir string, versions ...int64) {
	t.Helper()
	for _, v := range versions {
		must(t, os.Remove(filepath.Join(dir, entryFile(v))))
	}
}

// What follows in a log is an entry, nothing yet, or lost.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name        string
		checkpoints []int64
		lost        []int64
		next        int64
		there       bool
		code        string
	}{
		{name: "the first", next: 0, there: true},
		{name: "one", next: 5, there: true},
		{name: "none yet", next: 6},
		{name: "one too far", next: 7, code: delta.CodeNoVersion},
		{name: "a hole", lost: []int64{4}, next: 4, code: delta.CodeDamaged},
		{name: "cleaned", checkpoints: []int64{4}, lost: []int64{0, 1, 2, 3}, next: 2, code: delta.CodeNoVersion},
		{name: "cleaned up to the last, which a checkpoint stands for", checkpoints: []int64{5}, lost: []int64{0, 1, 2, 3, 4, 5}, next: 6},
		{name: "the last ones are lost", lost: []int64{4, 5}, next: 6, code: delta.CodeNoVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, dir := grown(t, 5, c.checkpoints...)
			lose(t, dir, c.lost...)
			e, err := l.Next(ctx, c.next)
			if c.code != "" {
				wantFault(t, err, c.code)
				if !errors.Is(err, delta.ErrNoVersion) {
					t.Errorf("%v is not ErrNoVersion", err)
				}
				return
			}
			must(t, err)
			if (e != nil) != c.there || e != nil && e.Version != c.next {
				t.Errorf("got %+v", e)
			}
		})
	}
	l, dir := grown(t, 1)
	must(t, os.RemoveAll(dir))
	if _, err := l.Next(ctx, 2); !errors.Is(err, delta.ErrNoTable) {
		t.Errorf("of a table that is gone: %v", err)
	}
}

// The oldest version is one of which everything is known.
func TestOldest(t *testing.T) {
	for _, c := range []struct {
		name        string
		checkpoints []int64
		lost        []int64
		from, want  int64
	}{
		{"all there", nil, nil, 2, 2},
		{"cleaned", []int64{4}, []int64{0, 1, 2, 3}, 1, 4},
		{"cleaned in part", []int64{4}, []int64{0, 1}, 1, 4},
		{"the checkpoint without its entry", []int64{4}, []int64{0, 1, 2, 3, 4}, 1, 5},
		{"a hole before a checkpoint", []int64{4}, []int64{2}, 2, 4},
		{"a hole", nil, []int64{2}, 2, -1},
		{"beyond", nil, nil, 6, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, dir := grown(t, 5, c.checkpoints...)
			lose(t, dir, c.lost...)
			got, err := l.Oldest(ctx, c.from)
			if c.want < 0 {
				wantFault(t, err, delta.CodeNoVersion)
				return
			}
			must(t, err)
			if got != c.want {
				t.Errorf("oldest is %d, want %d", got, c.want)
			}
			if _, err := l.SnapshotAt(ctx, got); err != nil {
				t.Errorf("no snapshot of it: %v", err)
			}
		})
	}
}
