package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"
)

const (
	// scratchPrefix begins the names of temporary folders.
	scratchPrefix = "wasmill-state-"
	// scratchOwner is a file in such a folder, locked for as long as its owner lives.
	scratchOwner = "owner"
	// scratchYoung is how old a folder must be to be swept: its owner locks it a moment after it has made it.
	scratchYoung = time.Minute
)

// scratch makes a folder among the machine's temporary files, and removes those whose owner was killed.
func (e *Env) scratch() (dir string, done func() error, err error) {
	e.sweepScratch(os.TempDir())
	if dir, err = os.MkdirTemp("", scratchPrefix); err != nil {
		return "", nil, err
	}
	hold, err := e.Files.Lock(filepath.Join(dir, scratchOwner), fmt.Sprintf("pid %d", os.Getpid()))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), hold.Close()) }, nil
}

// sweepScratch removes the folders of this user that nobody holds. What it cannot remove it leaves to the next.
func (e *Env) sweepScratch(tmp string) {
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), scratchPrefix) || !e.abandoned(entry) {
			continue
		}
		dir := filepath.Join(tmp, entry.Name())
		hold, err := e.Files.Lock(filepath.Join(dir, scratchOwner), fmt.Sprintf("pid %d sweeps", os.Getpid()))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = hold.Close()
	}
}

// abandoned says whether a folder is this user's, and old enough that an owner who lives has locked it.
func (e *Env) abandoned(entry fs.DirEntry) bool {
	info, err := entry.Info() // of a link that of the link, which is no folder
	if err != nil || !info.IsDir() || e.Now().Sub(info.ModTime()) < scratchYoung {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid()
}

// cutOff is the signal that a command ended at.
type cutOff struct{ signal syscall.Signal }

func (c *cutOff) Error() string { return "cut off by a signal: " + c.signal.String() }

// tidy is the action of a command that has temporary files: it removes them also when a signal ends it, or when nobody reads
// its output any more. It then says nothing and exits with 128 and the signal's number, as a shell says of one that is
// ended by it. A second signal ends it at once.
func (e *Env) tidy(do func(*ucli.Context) error) ucli.ActionFunc {
	return func(c *ucli.Context) error {
		parent := c.Context
		defer func() { c.Context = parent }()
		ctx, cancel := context.WithCancelCause(parent)
		got := make(chan os.Signal, 2)
		signal.Notify(got, syscall.SIGTERM, os.Interrupt)
		closed := make(chan os.Signal, 1)
		signal.Notify(closed, syscall.SIGPIPE) // a write to a closed stdout then fails, and does not end the process
		ended := make(chan struct{})
		defer func() {
			signal.Stop(got)
			signal.Stop(closed)
			close(ended)
			cancel(nil)
		}()
		go e.watchSignals(got, ended, cancel)
		c.Context = ctx
		err := do(c)
		var cut *cutOff
		switch {
		case err == nil:
			return nil
		case errors.As(context.Cause(ctx), &cut):
			return &exitError{128 + int(cut.signal)}
		case stdoutClosed(err):
			return &exitError{128 + int(syscall.SIGPIPE)}
		}
		return err
	}
}

// watchSignals cancels the work at the first signal, and ends the process at a second that is no echo of it.
func (e *Env) watchSignals(got <-chan os.Signal, ended <-chan struct{}, cancel context.CancelCauseFunc) {
	var first time.Time
	for {
		select {
		case s := <-got:
			number, _ := s.(syscall.Signal)
			if first.IsZero() {
				first = e.Now()
				cancel(&cutOff{number})
			} else if e.Now().Sub(first) >= sameSignal {
				e.exit(128 + int(number))
			}
		case <-ended:
			return
		}
	}
}

// stdoutClosed says whether an error is that nobody reads stdout.
func stdoutClosed(err error) bool {
	f, ok := errors.AsType[*fs.PathError](err)
	return ok && f.Path == os.Stdout.Name() && errors.Is(f, syscall.EPIPE)
}
