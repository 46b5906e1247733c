package cli

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ucli "github.com/urfave/cli/v2"
)

func commandContext(ctx context.Context) *ucli.Context {
	c := ucli.NewContext(nil, flag.NewFlagSet("test", flag.ContinueOnError), nil)
	c.Context = ctx
	return c
}

// TestCutOffCommandEndsTidily: a command learns of a signal, and exits as a shell would say of it.
func TestCutOffCommandEndsTidily(t *testing.T) {
	e := System()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		removed := false
		err := e.tidy(func(c *ucli.Context) error {
			defer func() { removed = true }()
			if err := syscall.Kill(os.Getpid(), sig); err != nil {
				return err
			}
			<-c.Context.Done()
			return c.Context.Err()
		})(commandContext(t.Context()))
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != 128+int(sig) || !removed {
			t.Errorf("%v: %v, removed %v", sig, err, removed)
		}
	}
}

func TestTidyPassesOtherErrorsOn(t *testing.T) {
	e := System()
	mine := errors.New("mine")
	pipe := &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}
	for _, tc := range []struct{ err, want error }{
		{nil, nil},
		{mine, mine},
		{&fs.PathError{Op: "write", Path: "elsewhere", Err: syscall.EPIPE}, syscall.EPIPE},
	} {
		if got := e.tidy(func(*ucli.Context) error { return tc.err })(commandContext(t.Context())); !errors.Is(got, tc.want) {
			t.Errorf("%v became %v", tc.err, got)
		}
	}
	var exit *exitError
	if err := e.tidy(func(*ucli.Context) error { return pipe })(commandContext(t.Context())); !errors.As(err, &exit) || exit.code != 128+int(syscall.SIGPIPE) {
		t.Errorf("a closed stdout: %v", err)
	}
}

// TestScratchSweeps: folders whose owner is gone are removed, others are not.
func TestScratchSweeps(t *testing.T) {
	tmp, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	e := System()
	held, done, err := e.scratch()
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{scratchPrefix + "left", "other"} {
		if err := os.MkdirAll(filepath.Join(tmp, name, "state"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(tmp, scratchPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(tmp, scratchPrefix+"young"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Base(held), scratchPrefix + "left", "other"} {
		if err := os.Chtimes(filepath.Join(tmp, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(elsewhere, old, old); err != nil {
		t.Fatal(err)
	}
	_, again, err := e.scratch()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{filepath.Base(held): true, scratchPrefix + "left": false, scratchPrefix + "young": true, scratchPrefix + "link": true, "other": true} {
		if _, err := os.Lstat(filepath.Join(tmp, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("through the link: %v %v", left, err)
	}
	if err := errors.Join(done(), again()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(held); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
}
