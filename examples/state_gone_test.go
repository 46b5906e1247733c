package examples

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goneKeys are more than a batch deletes by itself, so that the deletion takes several.
const goneKeys = 11_000

// goneJob is a job that sums by key, or, without the sums, copies.
const goneJob = `apiVersion: wasmill/v1
kind: Job
metadata: {name: gone}
spec:
  checkpoint: ./checkpoint
  trigger: {availableNow: true}
  sources: [{name: in, files: {path: ./in, format: jsonl}, batch: {maxRecords: %d}}]
%s  sinks: [{name: out, from: [%s], mode: %s, files: {path: ./out, format: jsonl}}]
`

const goneSums = `  transforms:
    - {name: sums, from: [{input: in, keyBy: {json: /k}}], module: "stock:aggregate", config: {key: k, aggregates: [{sum: {sum: /n}}]}}
`

// gone is the folder of a job that has lost its only stage with state, before it has run so.
type gone struct{ dir, kept, with, without string }

func makeGone(t *testing.T) *gone {
	t.Helper()
	g := &gone{dir: t.TempDir(), kept: t.TempDir()}
	g.with, g.without = filepath.Join(g.dir, "with.yaml"), filepath.Join(g.dir, "without.yaml")
	writeFile(t, g.with, fmt.Sprintf(goneJob, goneKeys, goneSums, "sums", "changelog"))
	writeFile(t, g.without, fmt.Sprintf(goneJob, 2, "", "in", "append"))
	if err := os.Mkdir(filepath.Join(g.dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range goneKeys {
		fmt.Fprintf(&b, "{\"k\":\"k%d\",\"n\":1}\n", i)
	}
	g.feed(t, "a", b.String())
	mustRun(t, "run", g.with)
	for _, name := range []string{"checkpoint", "out"} {
		if err := os.CopyFS(filepath.Join(g.kept, name), os.DirFS(filepath.Join(g.dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	g.feed(t, "b", strings.Repeat("{\"k\":\"k1\",\"n\":2}\n", 6))
	return g
}

func (g *gone) feed(t *testing.T, name, lines string) {
	t.Helper()
	writeFile(t, filepath.Join(g.dir, "in", name+".jsonl"), lines)
}

// back puts checkpoint and output back as they were before the run without the stage.
func (g *gone) back(t *testing.T) {
	t.Helper()
	_ = os.Remove(filepath.Join(g.dir, "in", "c.jsonl"))
	for _, name := range []string{"checkpoint", "out"} {
		if err := os.RemoveAll(filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(g.dir, name), os.DirFS(filepath.Join(g.kept, name))); err != nil {
			t.Fatal(err)
		}
	}
}

// check ends the run without the stage, and brings the stage back: it begins empty.
func (g *gone) check(t *testing.T) {
	t.Helper()
	mustRun(t, "run", "--allow-changes", g.without)
	if left := mustRun(t, "state", "export", g.without).stdout; left != "" {
		t.Fatalf("it still keeps\n%.200s", left)
	}
	if before := strings.Count(mustRun(t, "state", "export", "--batch", "0", g.without).stdout, "\n"); before != goneKeys {
		t.Fatalf("the batch before kept %d entries, not %d", before, goneKeys)
	}
	mustRun(t, "replay", "1", g.without)
	g.feed(t, "c", "{\"k\":\"k1\",\"n\":5}\n{\"k\":\"k2\",\"n\":6}\n")
	mustRun(t, "run", "--allow-changes", g.with)
	kept := mustRun(t, "state", "export", g.with).stdout
	if strings.Count(kept, "\n") != 2 || !strings.Contains(kept, `"key":"k1"`) || !strings.Contains(kept, `"key":"k2"`) {
		t.Fatalf("the stage that comes again keeps\n%.400s", kept)
	}
	out, err := filepath.Glob(filepath.Join(g.dir, "out", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range out {
		all.WriteString(mustRead(t, name))
	}
	for _, want := range []string{`"sum":5`, `"sum":6`} {
		if strings.Count(all.String(), want) != 1 {
			t.Fatalf("%s is there %d times", want, strings.Count(all.String(), want))
		}
	}
}

// TestStateGone takes the last stage with keys out of a job and kills the program at the named points of the batches that
// delete what it has kept: at the end nothing is left, and the stage begins empty when it comes again.
func TestStateGone(t *testing.T) {
	g, name := makeGone(t), filepath.Join(t.TempDir(), "trace")
	if r := run(t, []string{"WASMILL_FAILPOINT_TRACE=" + name}, "run", "--allow-changes", g.without); r.code != 0 {
		t.Fatal(r.stderr)
	}
	g.check(t)
	points := map[string]int{}
	for line := range strings.Lines(mustRead(t, name)) {
		points[strings.TrimSuffix(line, "\n")]++
	}
	plan := []string{"state seal@2", "state apply-begin", "state apply-chunk", "state apply-marker", "sync:after changelog/N-H", "decide:after", "seal:after"}
	for _, p := range plan {
		if p, _, _ := strings.Cut(p, "@"); points[p] == 0 {
			t.Fatalf("the run does not pass the point %s: %v", p, points)
		}
	}
	if stateKills(t) >= 100 {
		plan = append(plan, slices.Collect(maps.Keys(points))...)
	} else {
		all := slices.Sorted(maps.Keys(points))
		for range 3 {
			plan = append(plan, all[rand.IntN(len(all))]) //nolint:gosec // any points will do
		}
	}
	for _, point := range plan {
		g.back(t)
		if r := run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", "--allow-changes", g.without); !r.killed {
			t.Fatalf("%s: not killed: %s", point, r.stderr)
		}
		g.check(t)
	}
	t.Logf("killed at %d points, of %d", len(plan), len(points))
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
