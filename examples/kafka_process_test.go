package examples

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is the program at work, in the hands of a test that may do anything to it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  *logBuffer
}

// logBuffer takes what a process writes to stderr, and is read while it runs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts the program on a job file. It is killed when the test ends.
func launch(t *testing.T, env []string, file string) *process {
	t.Helper()
	return launchShowing(t, "none", env, file)
}

// launchShowing is launch with progress of a kind, in the log with all else.
func launchShowing(t *testing.T, progress string, env []string, file string) *process {
	t.Helper()
	p := &process{done: make(chan struct{}), log: &logBuffer{}}
	p.cmd = exec.Command(program, "run", "--progress", progress, "--log-level", "debug", file)
	p.cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+cacheDir(t)), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process and waits for that.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// ended waits for the end of the process, for a time.
func (p *process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// running tells that the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// killed tells that the process, which has ended, was ended by SIGKILL.
func (p *process) killed() bool {
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

func (p *process) exit() int { return p.cmd.ProcessState.ExitCode() }

var (
	rungForm = regexp.MustCompile(`msg=recovered .*?\brung=("[^"]*"|\S+) detail=("[^"]*"|\S+)`)
	codeForm = regexp.MustCompile(`(?m)^error\[([a-z_.]+)\]`)
)

// rungs are the rungs that recovery took, in order. A batch that was planned and not decided was on none.
func (p *process) rungs() []string {
	var out []string
	for _, m := range rungForm.FindAllStringSubmatch(p.log.String(), -1) {
		rung, detail := strings.Trim(m[1], `"`), strings.Trim(m[2], `"`)
		if rung == "rerun" && detail == "planned, not decided" {
			rung = "not decided"
		}
		out = append(out, rung)
	}
	return out
}

// code is the code of the error that the process ended with.
func (p *process) code() string {
	if m := codeForm.FindStringSubmatch(p.log.String()); m != nil {
		return m[1]
	}
	return "none"
}

// tail is the end of what the process has said.
func (p *process) tail() string {
	s := p.log.String()
	return s[max(0, len(s)-4000):]
}
