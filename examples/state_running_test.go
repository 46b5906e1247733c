package examples

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const runningJob = `apiVersion: wasmill/v1
kind: Job
metadata: {name: looked-into}
spec:
  checkpoint: ./checkpoint
  trigger: {availableNow: true}
  sources: [{name: in, files: {path: ./in, format: jsonl}, batch: {maxRecords: 200}, eventTime: {json: /at, unit: ms, lateness: 1s}}]
  transforms:
    - {name: sums, from: [{input: in, keyBy: {json: /k}}], module: "stock:tumbling", config: {key: k, size: 7s, aggregates: [{sum: {sum: /n}}]}}
  sinks: [{name: out, from: [sums], files: {path: ./out, format: jsonl}}]
  retention: {batches: 1000}
`

// TestStateOfARunningJob looks into a job's state again and again while it runs, with snapshots that come and go. Each look
// shows what the store of the job shows for that batch when it has ended, or says why it shows nothing; the output is that
// of a job that nobody looks into.
func TestStateOfARunningJob(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "job.yaml")
	writeFile(t, file, runningJob)
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	records := 12_000
	for i := range records {
		fmt.Fprintf(&b, "{\"k\":\"k%d\",\"n\":1,\"at\":%d}\n", i*i%311, 1_700_000_000_000+int64(i)*20)
	}
	writeFile(t, filepath.Join(dir, "in", "a.jsonl"), b.String())
	job := exec.CommandContext(t.Context(), program, "run", "--progress", "none", file)
	job.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheDir(t), "WASMILL_STATE_SIZES=snapshotBatches=5,memTable=65536")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	shown, refused := map[int]string{}, map[string]int{}
	running := true
	for n := 0; running; n++ {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
			continue
		default:
		}
		batch := newestPlan(t, dir) - []int{1, 2, 9}[n%3]
		if batch < 0 {
			continue // there is nothing to look at yet
		}
		r := run(t, []string{"TMPDIR=" + temp}, "state", "export", "--batch", strconv.Itoa(batch), file)
		code, _, coded := strings.Cut(r.stderr, "]")
		switch {
		case r.code == 0:
			shown[batch] = r.stdout
		case coded && (code == "error[state.not_sealed" || code == "error[state.not_retained"):
			refused[code]++
		default:
			t.Fatalf("batch %d: %s", batch, r.stderr)
		}
	}
	for _, batch := range slices.Sorted(maps.Keys(shown)) {
		if want := mustRun(t, "state", "export", "--batch", strconv.Itoa(batch), file).stdout; shown[batch] != want {
			t.Errorf("batch %d: shown were %d bytes, there are %d", batch, len(shown[batch]), len(want))
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	mustRun(t, "checkpoint", "verify", file)
	t.Logf("%d batches shown while the job ran, refused: %v", len(shown), refused)
	if len(shown) < 5 {
		t.Errorf("only %d batches were shown", len(shown))
	}
}

// newestPlan is the newest planned batch of a checkpoint, -1 for none.
func newestPlan(t *testing.T, dir string) int {
	t.Helper()
	newest := -1
	list, _ := os.ReadDir(filepath.Join(dir, "checkpoint", "offsets")) // it may not be there yet
	for _, e := range list {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}
