package delta_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/delta"
)

func seeds(f *testing.F, pattern string) {
	names, err := filepath.Glob(filepath.Join("testdata", "spark", "*", "_delta_log", pattern))
	must(f, err)
	if len(names) == 0 {
		f.Fatal("no seeds")
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		must(f, err)
		f.Add(content)
	}
}

// An entry is refused, or means the same when it is written anew and applied.
func FuzzEntry(f *testing.F) {
	seeds(f, "0*.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := delta.ParseEntry(1, content)
		if err != nil {
			return
		}
		again, err := delta.ParseEntry(1, []byte(delta.EncodeEntry(t, e)))
		if err != nil {
			t.Fatalf("cannot be read back: %v", err)
		}
		if len(again.Actions) != len(e.Actions) {
			t.Fatalf("%d actions became %d", len(e.Actions), len(again.Actions))
		}
		for a := range e.Adds() {
			_, _ = a.File()
		}
		if m := e.Metadata(); m != nil {
			schema, err := delta.ParseSchema(m.SchemaString)
			if err == nil {
				same, err := delta.ParseSchema(delta.SchemaString(schema))
				if err != nil || !same.Equal(schema) {
					t.Fatalf("schema %s: %v", m.SchemaString, err)
				}
			}
			if p := e.Protocol(); p != nil {
				_ = delta.CheckRewrite(*p, *m)
			}
		}
	})
}

func FuzzLastCheckpoint(f *testing.F) {
	seeds(f, "_last_checkpoint")
	f.Add([]byte(`{"version":1,"size":3,"parts":2}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if v, ok := delta.ParseHint(content); ok && v < 0 {
			t.Errorf("version %d", v)
		}
	})
}

// A checkpoint is refused, or makes actions that make a checkpoint with the same actions.
func FuzzCheckpoint(f *testing.F) {
	seeds(f, "*.checkpoint.parquet")
	f.Fuzz(func(t *testing.T, content []byte) {
		actions, err := delta.ParseCheckpoint(content)
		if err != nil {
			return
		}
		anew, err := delta.EncodeCheckpoint(actions)
		must(t, err)
		back, err := delta.ParseCheckpoint(anew)
		if err != nil {
			t.Fatalf("cannot be read back: %v", err)
		}
		if diff := cmp.Diff(len(actions), len(back)); diff != "" {
			t.Fatal(diff)
		}
	})
}
