package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable/faulty"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

const testID = "9538ada3-a233-4697-8b02-cc66250189a3"

// options are those of a job with a fixed clock.
func options() Options {
	return Options{
		Job: "delays", Holder: "pid 1", NewID: func() string { return testID },
		Clock: func() int64 { return 1_800_000_000_000 },
	}
}

func open(t *testing.T, files durable.Files, dir string) *Log {
	t.Helper()
	l, err := Open(context.Background(), files, dir, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func plan(id BatchID) Plan {
	return Plan{
		Batch: id, TimeMS: 1_700_000_000_000 + int64(id), WatermarkMS: 5 * int64(id),
		Conf: map[string]string{"wasmill.seed": "7"},
		Sources: []SourcePosition{
			{Name: "flights", End: Position{Line: fmt.Sprintf(`{"logOffset":%d}`, id), Extra: `{"at":"<12>"}`}},
			{Name: "ticks", End: Position{}},
		},
	}
}

func decision(id BatchID) Decision {
	return Decision{
		Batch: id, NextWatermarkMS: 5*int64(id) + 5, Digest: fmt.Sprintf("%032x", id), Revision: fmt.Sprintf("%064x", 1),
		Semantics: 1,
		Inputs:    map[string]Digest{"flights": {Records: 9007199254740993, XXH3: "0af7"}},
		Outputs:   map[string]Digest{"lake": {Records: 3, XXH3: "ff"}},
		Targets:   map[string]TargetOutcome{"lake": {Staged: []byte(`{"parts":["a&b"]}`), Last: id, Digest: "dd"}},
		Sources:   map[string]SourceOutcome{"flights": {Records: 3, WatermarkMS: 5, Idle: true}},
		Attempt:   "0badcafe",
	}
}

func batches(t *testing.T, l *Log, from, to BatchID) {
	t.Helper()
	for id := from; id <= to; id++ {
		if err := l.WritePlan(context.Background(), plan(id)); err != nil {
			t.Fatal(err)
		}
		if err := l.WriteDecision(context.Background(), decision(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode checks an error's code, that it names the file, and that it has a way out.
func wantCode(t *testing.T, what string, err error, code, file string) {
	t.Helper()
	var coded interface {
		error
		Code() string
		Hint() string
	}
	if !errors.As(err, &coded) || coded.Code() != code {
		t.Errorf("%s: got %v, want code %s", what, err, code)
		return
	}
	if coded.Hint() == "" || !strings.Contains(err.Error(), file) {
		t.Errorf("%s: %q does not name %s, or has no way out", what, err, file)
	}
}

// memory returns an empty simulated file system and a process on it.
func memory() (*faulty.FS, *faulty.Process) {
	f := faulty.New()
	return f, f.Process()
}

// counting returns a source of unique texts that repeats itself in every run.
func counting() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%08x", n)
	}
}

func put(t *testing.T, files durable.Files, name, text string) {
	t.Helper()
	err := files.Remove(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, durable.MakeDir(files, path.Dir(name)))
	must(t, durable.WriteFile(files, name, []byte(text)))
	must(t, files.SyncDir(path.Dir(name)))
}

func read(t *testing.T, files durable.Files, name string) string {
	t.Helper()
	b, err := durable.ReadFile(files, name, 1<<20)
	must(t, err)
	return string(b)
}

func list(t *testing.T, files durable.Files, dir string) string {
	t.Helper()
	infos, err := files.List(dir)
	must(t, err)
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}
