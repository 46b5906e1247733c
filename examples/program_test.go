package examples

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program is the real binary, built so that it can be told to kill itself.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wasmill-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "wasmill")
	if out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", program, "../cli/wasmill").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// result is how a process ended.
type result struct {
	killed         bool
	code           int
	stdout, stderr string
}

// deadline is far beyond any run; a process that needs it hangs.
const deadline = 2 * time.Minute

// runFor runs the program and kills it after a time, if that is not 0.
func runFor(t *testing.T, after time.Duration, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+cacheDir(t)), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	_ = cmd.Wait() // how it ended is in ProcessState
	if ctx.Err() != nil {
		t.Fatalf("%v hangs:\n%s", args, stderr.String())
	}
	return result{
		killed: cmd.ProcessState.ExitCode() == -1, code: cmd.ProcessState.ExitCode(),
		stdout: stdout.String(), stderr: stderr.String(),
	}
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runFor(t, 0, env, args...)
}

// killOnTheWay runs a job that has at least four batches for each of n kills, and kills it at points of the batches to come. A
// named point is passed on any machine; an instant comes too late on a fast one.
func killOnTheWay(t *testing.T, file string, n int) {
	t.Helper()
	points := []string{"plan:after", "run:after", "stage:after", "decide:after", "publish:before", "seal:before"}
	for range n {
		point := fmt.Sprintf("%s@%d", points[rand.IntN(len(points))], 1+rand.IntN(3))
		if r := run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", file); !r.killed {
			t.Fatalf("not killed at %s: %d\n%s", point, r.code, r.stderr)
		}
		t.Logf("killed at %s", point)
	}
}

// mustRun runs the program to a good end.
func mustRun(t *testing.T, args ...string) result {
	t.Helper()
	r := run(t, nil, args...)
	if r.code != 0 {
		t.Fatalf("%v ended with %d (killed %v):\n%s", args, r.code, r.killed, r.stderr)
	}
	return r
}

// cacheDir is one folder of compiled modules for all runs, as a user has it.
func cacheDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(filepath.Dir(program), "cache")
}
