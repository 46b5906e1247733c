package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program is how an engine is started: this program, with a verb that runs a job and ends when its standard input does.
type Program struct {
	Path string
	Args []string // from the program's name on; what a run of a job takes is added
}

// batchLine is what the demo reads of a job's progress, one object a batch.
type batchLine struct {
	Batch   int64 `json:"batchId"`
	Input   int64 `json:"numInputRows"`
	Sources []struct {
		End json.RawMessage `json:"endOffset"`
	} `json:"sources"`
	Wasmill struct {
		Micros map[string]int64 `json:"durationUs"`
	} `json:"wasmill"`
}

// position is where the batch ends, by partition, of a job that reads a topic.
func (b *batchLine) position(topic string) map[int32]int64 {
	var at map[string]map[int32]int64
	if len(b.Sources) != 1 || json.Unmarshal(b.Sources[0].End, &at) != nil {
		return nil
	}
	return at[topic]
}

// notice is what an engine's process does: a batch, or its end.
type notice struct {
	job   int
	batch *batchLine
	ended *ending
	at    time.Time
}

// ending is how a process ended.
type ending struct {
	killed bool // by SIGKILL, which only the demo sends
	early  bool // by SIGTERM, which came before it could take it as the wish to end
	ok     bool
	text   string // its status in words
}

// process is one run of an engine.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   *tail
	done  chan struct{}
}

// killWait is how long output of a dead process is waited for.
const killWait = 2 * time.Second

// startProcess runs a job in a process of its own. Every batch and the end are told to `tell`, the end last.
func startProcess(p Program, dir, file string, env []string, tell func(*batchLine, *ending)) (*process, error) {
	args := append(p.Args[1:len(p.Args):len(p.Args)], "--progress", "json", "--cache", filepath.Join(dir, "cache"), filepath.Join(dir, file))
	cmd := exec.Command(p.Path, args...)
	cmd.Args[0], cmd.Env, cmd.WaitDelay = p.Args[0], env, killWait
	job, _, _ := strings.Cut(file, ".")
	run := &process{cmd: cmd, log: &tail{name: filepath.Join(dir, job+".log")}, done: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	run.stdin = stdin
	cmd.Stdout = &lines{each: func(line []byte) {
		var b batchLine
		if json.Unmarshal(line, &b) == nil {
			tell(&b, nil)
		}
	}}
	cmd.Stderr = run.log
	bind(cmd)
	started := make(chan error)
	go run.live(started, tell)
	return run, <-started
}

// live stays on one thread from start to end: on Linux the kernel ends a child with the thread that started it.
func (p *process) live(started chan<- error, tell func(*batchLine, *ending)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	err := p.cmd.Wait()
	_ = p.log.close()
	e := &ending{ok: err == nil, text: p.cmd.ProcessState.String()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.killed, e.early = status.Signal() == syscall.SIGKILL, status.Signal() == syscall.SIGTERM
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		e.ok = p.cmd.ProcessState.Success()
	}
	close(p.done)
	tell(nil, e)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill is kill -9.
func (p *process) kill() { _ = p.cmd.Process.Signal(syscall.SIGKILL) } // an error means that it has ended

// finish asks it to end after its batch.
func (p *process) finish() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// lines cuts what is written to it into lines.
type lines struct {
	each func([]byte)
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.each(line)
		l.rest = rest
	}
}

// tail keeps the end of what an engine says on standard error, and appends all of it to a file.
type tail struct {
	name string
	mu   sync.Mutex
	end  []byte
	file *os.File
}

const tailLength = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		f, err := os.OpenFile(t.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			t.file = f
		}
	}
	if t.file != nil {
		_, _ = t.file.Write(b) // a full disk shows in the job itself
	}
	t.end = append(t.end, b...)
	if n := len(t.end) - tailLength; n > 0 {
		t.end = append(t.end[:0], t.end[n:]...)
	}
	return len(b), nil
}

func (t *tail) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// last is the end of what was said, at most n lines.
func (t *tail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Split(strings.TrimSpace(string(t.end)), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
