//go:build failpoints

package cli

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
)

// partition is the value of a partition folder: a point is named alike for all of them.
var partition = regexp.MustCompile(`=[^/]*`)

// failpoints makes the process kill itself at a named point. WASMILL_FAILPOINT is NAME or NAME=N: the N-th time the point
// is reached. Points are the steps of a batch ("run:before", "decide:after") and the file operations by the class of their
// path ("sync:before offsets/.N.tmp"). WASMILL_FAILPOINT_TRACE names a file that gets every point reached, one a line.
func failpoints(e *Env, events *engine.Events) func(durable.Files) durable.Files {
	name, count := e.getenv("WASMILL_FAILPOINT"), int64(1)
	if base, n, ok := strings.Cut(name, "="); ok {
		name = base
		if v, err := strconv.ParseInt(n, 10, 64); err == nil {
			count = v
		}
	}
	trace := openTrace(e.getenv("WASMILL_FAILPOINT_TRACE"))
	var reached atomic.Int64
	hit := func(point string) {
		if trace != nil {
			fmt.Fprintln(trace, point)
		}
		if point == name && reached.Add(1) == count {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
	inner := events.Step
	events.Step = func(b checkpoint.BatchID, s engine.Step, done bool) {
		if inner != nil {
			inner(b, s, done)
		}
		hit(string(s) + map[bool]string{false: ":before", true: ":after"}[done])
	}
	return func(files durable.Files) durable.Files {
		return durable.Tap(files, func(op, path string) error {
			if strings.HasPrefix(op, "read") || strings.HasPrefix(op, "stat") || strings.HasPrefix(op, "list") || strings.HasPrefix(op, "open") || strings.HasPrefix(op, "close") {
				return nil
			}
			hit(op + " " + partition.ReplaceAllString(durable.Class(path), "=V"))
			return nil
		})
	}
}

func openTrace(name string) *os.File {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return f
}
