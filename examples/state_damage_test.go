package examples

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damages are what can happen to a file between two runs.
var damages = []struct {
	name string
	do   func(b []byte, rng *rand.Rand) []byte // nil: the file is gone
}{
	{"missing", func([]byte, *rand.Rand) []byte { return nil }},
	{"empty", func([]byte, *rand.Rand) []byte { return []byte{} }},
	{"torn", func(b []byte, rng *rand.Rand) []byte { return b[:rng.IntN(len(b))] }},
	{"cut by a byte", func(b []byte, _ *rand.Rand) []byte { return b[:len(b)-1] }},
	{"bit flipped", func(b []byte, rng *rand.Rand) []byte {
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return b
	}},
	{"zeros inside", func(b []byte, rng *rand.Rand) []byte {
		at := rng.IntN(len(b))
		clear(b[at:min(at+512, len(b))])
		return b
	}},
	{"garbage behind", func(b []byte, _ *rand.Rand) []byte { return append(b, "garbage of some bytes"...) }},
}

// halfway is a checkpoint and a table in the middle of a run: a first run ended well, a second one was killed over a decided
// batch, with changelogs that the store has not got yet.
type halfway struct {
	ledgerSpec
	dir, file, kept string
	env             []string // of runs
}

// makeHalfway makes one. With small sizes and little retention it has snapshots and tables, and decisions that are gone.
func makeHalfway(t *testing.T, small bool) *halfway {
	t.Helper()
	h := &halfway{dir: t.TempDir(), kept: t.TempDir(), ledgerSpec: ledgerSpec{entries: someEntries(300), files: 5, batch: 20, lateness: 3000}}
	if small {
		h.batch, h.retention = 8, fmt.Sprintf("{batches: %d, age: 0s}", retainedBatches)
		h.env = []string{smallState, "WASMILL_FAILPOINT_KEEP=" + filepath.Join(h.dir, keptPlans)}
	}
	h.file = h.write(t, h.dir)
	later := filepath.Join(t.TempDir(), "later")
	for _, name := range []string{"003.jsonl", "004.jsonl"} {
		if err := os.Rename(filepath.Join(h.dir, "in", name), later+name); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, h.env, "run", h.file); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, name := range []string{"003.jsonl", "004.jsonl"} {
		if err := os.Rename(later+name, filepath.Join(h.dir, "in", name)); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, append(slices.Clone(h.env), "WASMILL_FAILPOINT=decide:after@3"), "run", h.file); !r.killed {
		t.Fatalf("not killed: %s", r.stderr)
	}
	h.copy(t, h.dir, h.kept)
	return h
}

// copy makes the checkpoint and the table of one folder those of another.
func (h *halfway) copy(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"checkpoint", "out", keptPlans} {
		if err := os.RemoveAll(filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))); err != nil {
			t.Fatal(err)
		}
	}
}

// stateFiles are the files of the state, without locks.
func (h *halfway) stateFiles(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join(h.kept, "checkpoint", "state")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "lock") {
			return err
		}
		name, err := filepath.Rel(root, path)
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestStateDamage damages every file of the state in several ways between two runs. Then the next run either goes on and
// ends with what the oracle says, or stops and names the file, and goes on when that is put back. WASMILL_STATE_DAMAGE=all
// damages every file in every way.
func TestStateDamage(t *testing.T) {
	testStateDamage(t, makeHalfway(t, false))
}

// TestStateDamageSmall does the same where there are snapshots and retention has thrown things away; only with all damages.
func TestStateDamageSmall(t *testing.T) {
	if os.Getenv("WASMILL_STATE_DAMAGE") != "all" {
		t.Skip("WASMILL_STATE_DAMAGE=all")
	}
	testStateDamage(t, makeHalfway(t, true))
}

func testStateDamage(t *testing.T, h *halfway) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	went, refused := 0, 0
	all := os.Getenv("WASMILL_STATE_DAMAGE") == "all"
	names := h.stateFiles(t)
	for i, name := range names {
		for d := range damages {
			// In CI each file gets two kinds of damage, and neighbours others.
			if !all && d != i%len(damages) && d != (i+3)%len(damages) {
				continue
			}
			if h.damage(t, name, d, rng) {
				went++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d files damaged in %d ways: %d runs went on to the right end, %d stopped, named the file and went on when it was back", len(names), went+refused, went, refused)
	if len(names) < 10 {
		t.Errorf("only %d files of state: %v", len(names), names)
	}
}

// damage damages one file and reports whether the next run went on without it.
func (h *halfway) damage(t *testing.T, name string, d int, rng *rand.Rand) (went bool) {
	t.Helper()
	h.copy(t, h.kept, h.dir)
	path := filepath.Join(h.dir, "checkpoint", "state", name)
	was := []byte(mustRead(t, path))
	what := name + " " + damages[d].name
	if len(was) == 0 {
		was = []byte("x")
	}
	b := damages[d].do(slices.Clone(was), rng)
	if b == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	} else if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, h.env, "run", h.file)
	if r.killed {
		t.Fatalf("%s: killed", what)
	}
	if r.code != 0 {
		t.Logf("%s: stops", what)
		named := filepath.Base(name)
		if strings.HasPrefix(name, "badger") {
			named = "badger" // which of its files it is, does not help anybody
		}
		if !strings.Contains(r.stderr, named) || strings.Contains(r.stderr, "goroutine ") {
			t.Fatalf("%s: the run stops and does not name the file:\n%s", what, r.stderr)
		}
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := run(t, h.env, "run", h.file); r.code != 0 {
			t.Fatalf("%s: with the file put back: %s", what, r.stderr)
		}
	}
	h.check(t, h.dir, func(batch, batches int) bool { return batch == batches-1 })
	return r.code == 0
}
