package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// task is what the parent tells a child first, as one line of JSON; the module follows it.
type task struct {
	Version int    `json:"version"`
	Size    int    `json:"size"` // of the module, bytes
	Kind    string `json:"kind"`
	Stage   string `json:"stage"` // folder for the compiled code, "" for none
	Limits  Limits `json:"limits"`
}

// answer is the one line that a child ends with. Trouble is the host's, and no verdict.
type answer struct {
	Outcome outcome `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Trouble string  `json:"trouble,omitempty"`
}

// ready is the line that a child says when its limits hold. Before it nothing that goes wrong is the module's doing.
const ready = "ready\n"

const (
	maxSaid   = 64 << 10        // bytes that are kept of what a child writes
	maxReason = 300             // bytes that are shown of it
	killWait  = 5 * time.Second // for the pipes of a child that was killed
)

// run has a child compile the work. Its error is the host's trouble or the context's.
func (j *Judge) run(ctx context.Context, w *sandbox.Work, stage string) (*verdict, error) {
	limits := j.config.Limits
	timed, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	cmd := exec.CommandContext(timed, j.config.Program)
	cmd.Args = j.config.Args
	cmd.Env = []string{"GOTRACEBACK=none"}
	said, complaints := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = said, complaints
	cmd.WaitDelay = killWait
	confine(cmd)
	// The child is told of its parent's end by the end of its input, and on Linux killed at the end of the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, startFault(w.Name, err)
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("compile %s: %w", w.Name, ctx.Err())
		}
		return nil, startFault(w.Name, err)
	}
	go func() {
		head, err := json.Marshal(task{verdictVersion, len(w.Wasm), w.Kind, stage, limits})
		if err == nil {
			_, err = in.Write(append(head, '\n'))
		}
		if err == nil {
			_, _ = in.Write(w.Wasm) // a child that does not read has its own reasons
		}
	}()
	waited := cmd.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("compile %s: %w", w.Name, ctx.Err())
	}
	v, err := judge(said.b.Bytes(), complaints.b.String(), &ending{
		err: waited, timeOut: timed.Err() != nil, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), killed: killed(cmd.ProcessState),
	}, limits)
	if err != nil {
		return nil, startFault(w.Name, err)
	}
	return v, nil
}

func startFault(name string, err error) error {
	return fault.New(sandbox.CodeCompileStart, name, fmt.Errorf("a process to compile it in could not be started: %w", err),
		"let this user start processes, and leave a gigabyte of memory for one; --compile-here does without, for modules that you trust")
}

// ending is how a child came to its end.
type ending struct {
	err     error
	timeOut bool // it was ended at its limit of time
	killed  bool // by a signal that cannot be caught
	cpu     time.Duration
}

// judge makes a verdict of what a child said and of how it ended.
func judge(said []byte, complaints string, end *ending, l Limits) (*verdict, error) {
	said, ok := bytes.CutPrefix(said, []byte(ready))
	if !ok {
		why := firstLine(complaints)
		if end.err != nil {
			why = strings.TrimSuffix(end.err.Error()+": "+why, ": ")
		}
		return nil, errors.New("it was not ready: " + why)
	}
	v := &verdict{}
	var a answer
	if err := json.Unmarshal(said, &a); err == nil {
		if a.Trouble != "" {
			return nil, errors.New(a.Trouble)
		}
		v.Outcome, v.Reason = a.Outcome, abi.EscapeText([]byte(a.Reason), maxReason)
		return v, nil
	}
	switch {
	case end.timeOut:
		v.Outcome, v.passing = timeOut, true
	case end.cpu >= l.CPU-l.CPU/20: // the kernel ended it, by a less exact count of its own
		v.Outcome = cpuOver
	case outOfMemory(complaints), starved(complaints):
		v.Outcome, v.passing = memOver, true // of what the machine had: the child itself tells of its limit
	case end.killed:
		v.Outcome, v.Reason, v.passing = crashed, "its process was killed from outside", true
	default:
		v.Outcome, v.Reason = crashed, firstLine(complaints)
		if v.Reason == "" {
			v.Reason = fmt.Sprint("its process ended without an answer: ", end.err)
		}
	}
	return v, nil
}

// outOfMemory knows the words of Go's runtime and of the system.
func outOfMemory(text string) bool {
	return strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory")
}

// starved says whether Go's runtime broke off by itself for want of memory or of threads, which a machine may lack as well:
// it could not make a thread, or the garbage collector of Go 1.26 followed a pointer to a queue that it had no memory for.
func starved(text string) bool {
	noThread := strings.Contains(text, "pthread_create failed") || strings.Contains(text, "failed to create new OS thread")
	return noThread || strings.HasPrefix(text, "SIGSEGV: segmentation violation") && strings.Contains(text, "addr=0x0\n") && strings.Contains(text, "runtime.(*spanQueue)")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return abi.EscapeText([]byte(line), maxReason)
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ b bytes.Buffer }

// Write takes everything.
func (b *bounded) Write(p []byte) (int, error) {
	b.b.Write(p[:min(len(p), max(maxSaid-b.b.Len(), 0))])
	return len(p), nil
}

var _ io.Writer = (*bounded)(nil)
