package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sink"
)

func TestWhatIsWaitedFor(t *testing.T) {
	away := fmt.Errorf("batch 3: %w", fault.Passing("kafka.unreachable", "connection main", errors.New("refused"), "start it"))
	lost := fmt.Errorf("publish: %w", sink.ErrLost)
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		err          error
		opened, ends bool
		want         string
	}{
		"nothing wrong":             {nil, true, false, ""},
		"away after it has run":     {away, true, false, "out of reach"},
		"away at the start":         {away, false, false, ""},
		"away under availableNow":   {away, true, true, "out of reach"},
		"away when that begins":     {away, false, true, ""},
		"something to mend":         {fault.New("kafka.auth", "x", errors.New("no"), "y"), true, false, ""},
		"staged output lost":        {lost, true, false, "what was staged is lost"},
		"lost under availableNow":   {lost, true, true, "what was staged is lost"},
		"disk full":                 {full, false, false, "no space left"},
		"disk full, availableNow":   {full, false, true, ""},
		"a sync failed for want of": {errors.Join(full, durable.ErrSync), true, false, ""},
	} {
		r := &running{job: &job.Job{Trigger: job.Trigger{AvailableNow: c.ends}}, opened: c.opened}
		if got := r.passes(c.err, &backOff{}); got != c.want {
			t.Errorf("%s: waits for %q, want %q", name, got, c.want)
		}
	}
}

// TestRunOnceEnds: a job that runs once waits for what passes, but not for ever.
func TestRunOnceEnds(t *testing.T) {
	away := fault.Passing("sql.server", "connection db", errors.New("deadlock"), "none")
	for _, once := range []bool{true, false} {
		r := &running{job: &job.Job{Trigger: job.Trigger{AvailableNow: once}}, opened: true}
		var b backOff
		for range mostRecoveries {
			if r.passes(away, &b) == "" {
				t.Fatalf("it ends after %d times", b.failed)
			}
			b.next()
		}
		if ends := r.passes(away, &b) == ""; ends != once {
			t.Errorf("availableNow %t: it ends after %d times: %t", once, b.failed, ends)
		}
	}
}

// TestHasRun: progress is a decision in the checkpoint, not its directory.
func TestHasRun(t *testing.T) {
	dir := t.TempDir()
	e, j := &Env{Files: durable.OS()}, &job.Job{Checkpoint: dir}
	if e.hasRun(j) || e.hasRun(&job.Job{Checkpoint: filepath.Join(dir, "nothing")}) {
		t.Error("an empty folder has progress")
	}
	commits := filepath.Join(dir, "commits")
	if err := os.MkdirAll(commits, 0o755); err != nil {
		t.Fatal(err)
	}
	if e.hasRun(j) {
		t.Error("a checkpoint without a decision has progress")
	}
	if err := os.WriteFile(filepath.Join(commits, "0"), []byte("v1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !e.hasRun(j) {
		t.Error("a checkpoint with a decision has none")
	}
}

// TestLostAgainAndAgain: what is lost each time anew is no passing trouble.
func TestLostAgainAndAgain(t *testing.T) {
	r := &running{job: &job.Job{}, opened: true}
	var b backOff
	for range mostRecoveries {
		if r.passes(sink.ErrLost, &b) == "" {
			t.Fatalf("it ends after %d times", b.failed)
		}
		b.next()
	}
	if what := r.passes(sink.ErrLost, &b); what != "" {
		t.Errorf("after %d times it waits for %q", b.failed, what)
	}
}

func TestBackOff(t *testing.T) {
	var b backOff
	want := []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000}
	for i, ms := range want {
		if got := b.next(); got != ms*time.Millisecond {
			t.Errorf("wait %d is %s, want %d ms", i, got, ms)
		}
	}
}
