package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
)

// epoch is when the test clock stands; files are made older than that unless a test says otherwise.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a source over a folder of its own.
type rig struct {
	t     testing.TB
	in    string
	state string
	cfg   Config
	now   time.Time
	warn  []error
	src   *Source
}

func newRig(t testing.TB, format Format) *rig {
	dir := t.TempDir()
	r := &rig{t: t, in: filepath.Join(dir, "in"), state: filepath.Join(dir, "sources", "0"), now: epoch}
	if err := os.MkdirAll(r.in, 0o755); err != nil {
		t.Fatal(err)
	}
	r.cfg = Config{
		Name: "in", Path: r.in, Format: format, State: r.state, Files: durable.OS(),
		Clock: func() time.Time { return r.now },
		Warn:  func(err error) { r.warn = append(r.warn, err) },
	}
	r.open()
	t.Cleanup(func() {
		if err := r.src.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// open makes a new source with nothing but what is on disk.
func (r *rig) open() {
	r.t.Helper()
	if r.src != nil {
		if err := r.src.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	src, err := New(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.src = src
}

// put writes a file that has been left alone for a minute.
func (r *rig) put(name, content string) string {
	r.t.Helper()
	path := filepath.Join(r.in, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.age(path, time.Minute)
	return path
}

func (r *rig) age(path string, d time.Duration) {
	r.t.Helper()
	if err := os.Chtimes(path, time.Time{}, r.now.Add(-d)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) latest(from checkpoint.Position, records int64) checkpoint.Position {
	r.t.Helper()
	to, err := r.src.Latest(context.Background(), from, source.Limit{Records: records})
	if err != nil {
		r.t.Fatal(err)
	}
	return to
}

// got collects records as text: "path:offset:value", rejects as "path:offset!code".
type got struct {
	lines []string
}

func (g *got) name(r *abi.Record) string {
	name := ""
	for _, h := range r.Headers {
		name += filepath.Base(string(h.Value)) + ":"
	}
	return name + fmt.Sprint(r.Offset)
}

func (g *got) Write(r *abi.Record) error {
	g.lines = append(g.lines, g.name(r)+":"+string(r.Value))
	return nil
}

func (g *got) Reject(r *abi.Record, code, _ string) error {
	g.lines = append(g.lines, g.name(r)+"!"+code)
	return nil
}

func (r *rig) read(from, to checkpoint.Position) []string {
	r.t.Helper()
	splits, err := r.src.Splits(context.Background(), source.Range{From: from, To: to})
	if err != nil {
		r.t.Fatal(err)
	}
	var g got
	for _, s := range splits {
		if err := r.src.Read(context.Background(), s, &g); err != nil {
			r.t.Fatal(err)
		}
	}
	return g.lines
}

// drain plans and reads batch after batch until nothing is new.
func (r *rig) drain(records int64) (batches [][]string, ends []checkpoint.Position) {
	r.t.Helper()
	var at checkpoint.Position
	for {
		to := r.latest(at, records)
		if to == at {
			return batches, ends
		}
		batches = append(batches, r.read(at, to))
		ends = append(ends, to)
		at = to
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestLines reads small odd files in batches of every size; each must give the same records.
func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		format  Format
		content string
		want    []string
	}{
		"plain":             {JSONL, "{}\n[]\n", []string{"0:{}", "1:[]"}},
		"no last LF":        {JSONL, "1\n2", []string{"0:1", "1:2"}},
		"CRLF":              {JSONL, "1\r\n2\r\n", []string{"0:1", "1:2"}},
		"one CR is cut":     {Lines, "a\r\r\nb\r", []string{"0:a\r", "1:b"}},
		"BOM":               {JSONL, "\xef\xbb\xbf1\n\xef\xbb\xbf2\n", []string{"0:1", "1:\xef\xbb\xbf2"}},
		"BOM alone":         {JSONL, "\xef\xbb\xbf", nil},
		"blank lines":       {JSONL, "\n\n1\n \t\r\n2\n\n", []string{"2:1", "4:2"}},
		"blanks are a line": {Lines, "\n \n\r\nx", []string{"1: ", "3:x"}},
		"nothing but LF":    {Lines, "\n", nil},
		"NUL and not UTF-8": {JSONL, "\x00\n\xff\xfe\n{\n", []string{"0:\x00", "1:\xff\xfe", "2:{"}},
	} {
		t.Run(name, func(t *testing.T) {
			for records := range int64(4) {
				r := newRig(t, c.format)
				r.put("a", c.content)
				batches, _ := r.drain(records)
				same(t, "records", slices.Concat(batches...), c.want)
			}
		})
	}
}
