//go:build failpoints

package cli

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/statestore"
)

// What makes two paths of one kind differ: partition values, digests and random names, numbers.
var (
	partition = regexp.MustCompile(`=[^/]*`)
	random    = regexp.MustCompile(`[0-9a-f]{8,}`)
	numbers   = regexp.MustCompile(`[0-9]+`)
)

// class names the kind of a path, the same for every batch and attempt: its last two elements without what is unique.
func class(name string) string {
	short := path.Join(path.Base(path.Dir(name)), path.Base(name))
	short = partition.ReplaceAllString(short, "=V")
	return numbers.ReplaceAllString(random.ReplaceAllString(short, "H"), "N")
}

// failpoints makes the process kill itself at a named point. WASMILL_FAILPOINT is NAME or NAME@N: the N-th time the point
// is reached. Points are the steps of a batch ("run:before", "decide:after") and the file operations by the class of their
// path ("sync:before offsets/.N.tmp"), and those of the state store ("state apply-marker"). WASMILL_FAILPOINT_TRACE names a file that gets every point reached, one a line.
func failpoints(e *Env, events *engine.Events, state *statestore.Events) func(durable.Files) durable.Files {
	point, count := e.getenv("WASMILL_FAILPOINT"), int64(1)
	if base, n, ok := strings.Cut(point, "@"); ok {
		point = base
		if v, err := strconv.ParseInt(n, 10, 64); err == nil {
			count = v
		}
	}
	trace := openTrace(e.getenv("WASMILL_FAILPOINT_TRACE"))
	var passed atomic.Int64
	hit := func(reached string) {
		if trace != nil {
			fmt.Fprintln(trace, reached)
		}
		if reached == point && passed.Add(1) == count {
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
	state.Point = func(name string) { hit("state " + name) }
	return func(files durable.Files) durable.Files {
		return durable.Tap(files, func(op, name string) error {
			if strings.HasPrefix(op, "read") || strings.HasPrefix(op, "stat") || strings.HasPrefix(op, "list") || strings.HasPrefix(op, "open") || strings.HasPrefix(op, "close") {
				return nil
			}
			hit(op + " " + class(name))
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
