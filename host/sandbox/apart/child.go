package apart

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/wasmill/wasmill/host/sandbox"
)

// maxTask bounds the first line of a child's input, in bytes.
const maxTask = 64 << 10

// watchEvery is how often a child looks at what it has used.
const watchEvery = 10 * time.Millisecond

// Child is the program's part in a child process: it takes a task from in, bounds the process that it runs in, compiles,
// and says on out what came of it. Exit ends the process at once. It returns the exit status.
func Child(ctx context.Context, in io.Reader, out io.Writer, exit func(int)) int {
	c := &child{out: out, exit: exit}
	if err := c.work(ctx, bufio.NewReaderSize(in, maxTask)); err != nil {
		c.say(&answer{Trouble: err.Error()})
		return 1
	}
	return 0
}

type child struct {
	out  io.Writer
	exit func(int)
	once sync.Once
}

// say says the one answer.
func (c *child) say(a *answer) {
	c.once.Do(func() {
		if text, err := json.Marshal(a); err == nil {
			_, _ = c.out.Write(append(text, '\n')) // nobody is left to be told
		}
	})
}

func (c *child) work(ctx context.Context, in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	if t.Version != verdictVersion || t.Size < 0 || t.Limits.CPU <= 0 || t.Limits.Memory <= 0 {
		return errors.New("the task is not one for this version")
	}
	if err := bound(t.Limits); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	debug.SetMemoryLimit(t.Limits.Memory / 4 * 3)
	if _, err := io.WriteString(c.out, ready); err != nil {
		return fmt.Errorf("say that all is ready: %w", err)
	}
	go c.watch(t.Limits)
	wasm := make([]byte, t.Size)
	if _, err := io.ReadFull(in, wasm); err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	go c.orphaned(in)
	reason, err := sandbox.Precompile(ctx, sandbox.Config{CacheDir: t.Stage, Interpreter: t.Kind == sandbox.KindInterpreter}, wasm)
	switch {
	case err != nil:
		return err
	case outOfMemory(reason):
		c.say(&answer{Outcome: memOver})
	case reason != "":
		c.say(&answer{Outcome: refused, Reason: reason})
	default:
		c.say(&answer{Outcome: fine})
	}
	return nil
}

// orphaned ends the process with its parent, which keeps the input open for as long as it lives.
func (c *child) orphaned(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	c.exit(1)
}

// watch ends the process at its limits, with an answer that says which. The system's own limits stand behind it.
func (c *child) watch(l Limits) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(samples)
		switch {
		case samples[0].Value.Uint64()-samples[1].Value.Uint64() > uint64(l.Memory):
			c.say(&answer{Outcome: memOver})
			c.exit(1)
		case used() >= l.CPU:
			c.say(&answer{Outcome: cpuOver})
			c.exit(1)
		}
	}
}
