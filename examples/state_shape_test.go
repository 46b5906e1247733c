package examples

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/cli"
)

// stateScale is how many times as much the tests of shapes take as in CI: WASMILL_STATE_SCALE.
func stateScale(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("WASMILL_STATE_SCALE")); err == nil {
		return n
	}
	return 1
}

// generous lets one call of the ledger go through all entries of a key.
const generous = ", limits: {memory: 256MiB, fuel: {call: 20000000000}}"

// mostMemory is what a run of the shapes may take at most, in MiB.
const mostMemory = 500

// measured runs the program to a good end and returns how much memory it took, in MiB.
func measured(t *testing.T, args ...string) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheDir(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
}

func last(batch, batches int) bool { return batch == batches-1 }

// shape runs a job in one go and holds it against the oracle.
func shape(t *testing.T, l *ledgerSpec) *ledgerOracle {
	t.Helper()
	dir := t.TempDir()
	start := time.Now()
	memory := measured(t, "run", l.write(t, dir))
	took := time.Since(start)
	o := l.check(t, dir, last)
	t.Logf("%d entries, %d timers, in %v and %d MiB", len(l.entries), o.fired, took.Round(time.Millisecond), memory)
	if memory > mostMemory {
		t.Errorf("it took %d MiB, at most %d are allowed", memory, mostMemory)
	}
	return o
}

// TestStateHotKey: half of all entries have one key.
func TestStateHotKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	entries := make([]ledgerEntry, 20_000*stateScale(t))
	for i := range entries {
		entries[i] = ledgerEntry{"hot", 1_700_000_000_000 + int64(i)*10 + rng.Int64N(2000), rng.Int64N(90) + 1}
		if i%2 == 0 {
			entries[i].key = fmt.Sprintf("k%d", rng.IntN(5000))
		}
	}
	o := shape(t, &ledgerSpec{entries: entries, batch: 7000, lateness: 1000, limits: generous})
	if o.fired < 1000 {
		t.Errorf("%d timers", o.fired)
	}
}

// TestStateLargeKey: one key gets a great number of entries, which are read in one scan and removed in one operation.
func TestStateLargeKey(t *testing.T) {
	const base = 1_700_000_000_000
	entries := make([]ledgerEntry, 50_000*stateScale(t))
	for i := range entries {
		entries[i] = ledgerEntry{"large", base + int64(i)%ledgerWindow, 1}
	}
	entries = append(entries, ledgerEntry{"other", base + 5*ledgerWindow, 1}, ledgerEntry{"other", base + 5*ledgerWindow, 1})
	o := shape(t, &ledgerSpec{entries: entries, batch: 10_000, limits: generous})
	if o.fired != 1 || len(o.windows) != 1 {
		t.Errorf("%d timers, %d windows", o.fired, len(o.windows))
	}
}

// TestStateTimersAtOneInstant: as many keys have a timer at the same time, and all fire in one batch, in order. A lane takes
// 20,000 a batch, so four lanes take no more than 70,000 with certainty.
func TestStateTimersAtOneInstant(t *testing.T) {
	entries := make([]ledgerEntry, 10_000*min(stateScale(t), 7))
	for i := range entries {
		entries[i] = ledgerEntry{fmt.Sprintf("k%d", i), 1_700_000_000_000, 1}
	}
	entries = append(entries, ledgerEntry{"other", 1_700_000_030_000, 1})
	o := shape(t, &ledgerSpec{entries: entries, batch: 4000})
	if o.fired != len(entries)-1 {
		t.Errorf("%d timers, want %d", o.fired, len(entries)-1)
	}
}

// TestStateClockSetBack sets the clock back and ahead between runs, and kills some of them: neither batch times nor
// watermarks go back, and alarms ring once.
func TestStateClockSetBack(t *testing.T) {
	l := &ledgerSpec{entries: someEntries(300), files: 6, batch: 20, lateness: 3000}
	dir := t.TempDir()
	file := l.write(t, dir)
	held := filepath.Join(t.TempDir(), "held")
	for f := 1; f < l.files; f++ {
		name := fmt.Sprintf("%03d.jsonl", f)
		if err := os.Rename(filepath.Join(dir, "in", name), held+name); err != nil {
			t.Fatal(err)
		}
	}
	for f, shift := range []time.Duration{0, -time.Hour, -2 * time.Hour, time.Hour, -24 * time.Hour, 2 * time.Hour} {
		if f > 0 {
			name := fmt.Sprintf("%03d.jsonl", f)
			if err := os.Rename(held+name, filepath.Join(dir, "in", name)); err != nil {
				t.Fatal(err)
			}
		}
		var stderr strings.Builder
		env := cli.System()
		env.Stdout, env.Stderr = io.Discard, &stderr
		env.Now = func() time.Time { return time.Now().Add(shift) }
		if code := cli.Run(t.Context(), []string{"wasmill", "run", "--compile-here", file}, env); code != 0 {
			t.Fatalf("clock off by %v: %s", shift, stderr.String())
		}
		if r := run(t, []string{"WASMILL_FAILPOINT=publish:after"}, "run", file); !r.killed && r.code != 0 {
			t.Fatal(r.stderr)
		}
	}
	mustRun(t, "run", file)
	if o := l.check(t, dir, func(int, int) bool { return true }); o.lateN == 0 || o.fired == 0 {
		t.Errorf("%d late entries, %d timers", o.lateN, o.fired)
	}
}

// TestStateIdle: the input ends, and the windows of an idle source close by the clock, in batches without data.
func TestStateIdle(t *testing.T) {
	const base = 1_700_000_000_000
	l := &ledgerSpec{batch: 50, lateness: 200, trigger: "{interval: 20ms}", idle: ", idle: 100ms"}
	for i := range 200 {
		l.entries = append(l.entries, ledgerEntry{fmt.Sprintf("k%d", i%20), base + int64(i)*50 - 100, 1})
	}
	dir := t.TempDir()
	file := l.write(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", file)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheDir(t))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	closed := func() bool {
		names, _ := filepath.Glob(filepath.Join(dir, "out", "part-*"))
		text := ""
		for _, n := range names {
			text += mustRead(t, n)
		}
		return strings.Count(text, `"window":1700000000000,`) == 20
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !closed() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the windows of an idle source do not close: %s", stderr.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	o := l.check(t, dir, last)
	if o.fired != 22 || len(o.windows) != 0 {
		t.Errorf("%d timers fired, %d windows are open", o.fired, len(o.windows))
	}
}
