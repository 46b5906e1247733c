package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
	"github.com/wasmill/wasmill/host/sink/sinktest"
)

func suiteConfig(dir string) files.Config {
	start := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	calls := 0
	return files.Config{
		Sink: "lake", Dir: dir, Format: files.JSONL, Grace: time.Second,
		// A clock that runs fast, so that sweeps happen.
		Clock: func() time.Time { calls++; return start.Add(time.Duration(calls) * time.Minute) },
	}
}

func suitePlace(dir string, process func() durable.Files, usurp func() durable.Files) sinktest.Place {
	openOn := func(next func() durable.Files) func(t *testing.T) sink.Target {
		return func(t *testing.T) sink.Target {
			cfg := suiteConfig(dir)
			cfg.Files = next()
			target, err := files.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return target
		}
	}
	p := sinktest.Place{
		Sink: "lake", Open: openOn(process),
		Value: func(i int) string { return fmt.Sprintf(`{"i":%d}`, i) }, Misfit: `{"i":1`,
		Visible: func(t *testing.T) []string { return visible(t, process(), dir) },
	}
	if usurp != nil {
		p.Usurp = openOn(usurp)
	}
	return p
}

func TestSuiteOnTheRealFileSystem(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place {
		return suitePlace(filepath.Join(t.TempDir(), "out"), durable.OS, nil)
	})
}

func TestSuiteOnTheFaultyFileSystem(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place {
		fs := faulty.New()
		var current *faulty.Process
		process := func() durable.Files {
			current = fs.Process()
			return current
		}
		return suitePlace("/data/out", process, func() durable.Files {
			current.LoseLocks()
			return process()
		})
	})
}

// TestRefusedDirectories opens directories that must not be taken over.
func TestRefusedDirectories(t *testing.T) {
	for _, c := range []struct {
		name, code string
		prepare    func(dir string) error
	}{
		{"data of another program", files.CodeForeign, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "report.csv"), []byte("a,b\n"), 0o600)
		}},
		{"a manifest of Spark's", files.CodeForeign, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "0"), []byte("v1"), 0o600)
		}},
		{"a torn owner file", files.CodeDamaged, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"), []byte(`{"ver`), 0o600)
		}},
		{"an empty owner file", files.CodeDamaged, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"), nil, 0o600)
		}},
		{"a newer version", files.CodeNewer, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"), []byte(`{"version":2,"query":"`+query+`"}`), 0o600)
		}},
		{"another query", files.CodeOtherQuery, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"), []byte(`{"version":1,"query":"x"}`), 0o600)
		}},
		{"another sink", files.CodeOtherSink, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"), []byte(`{"version":1,"query":"`+query+`","sink":"x"}`), 0o600)
		}},
		{"a moved directory", files.CodeMoved, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "_spark_metadata", "_wasmill.json"),
				[]byte(`{"version":1,"query":"`+query+`","sink":"lake","path":"/elsewhere"}`), 0o600)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "_spark_metadata"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			before := tree(t, dir)
			target := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
			_, err := target.Inspect(t.Context(), sink.Owner{Query: query, Job: "test"})
			wantFault(t, err, c.code)
			if tree(t, dir) != before {
				t.Errorf("looking changed the directory: %s, before %s", tree(t, dir), before)
			}
			_, err = target.Open(t.Context(), sink.Owner{Query: query, Job: "test"})
			wantFault(t, err, c.code)
			if c.code == files.CodeForeign && tree(t, dir) != before {
				t.Errorf("the directory was changed: %s, before %s", tree(t, dir), before)
			}
		})
	}
}

// TestInspectTouchesNothing looks at a directory that is not there, and beside the process that has it open.
func TestInspectTouchesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	look := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
	p, err := look.Inspect(t.Context(), sink.Owner{Query: query, Job: "test"})
	if err != nil || p.Batch >= 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("the directory was made: %v", err)
	}
	holder := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
	if _, err := holder.Open(t.Context(), sink.Owner{Query: query, Job: "test"}); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if p, err = look.Inspect(t.Context(), sink.Owner{Query: query, Job: "test"}); err != nil || p.Batch >= 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if tree(t, dir) != before {
		t.Errorf("looking changed the directory: %s, before %s", tree(t, dir), before)
	}
}
