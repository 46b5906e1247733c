package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// roleVariable makes the test binary one of the programs that a demo meets.
const roleVariable = "DEMO_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "engine": // tells of two batches, having said who it is, and ends with its input
		fmt.Fprintln(os.Stderr, "engine of", os.Args[len(os.Args)-1])
		fmt.Println(`{"batchId":0,"numInputRows":3,"sources":[{"endOffset":{"orders":{"0":7}}}],"wasmill":{"durationUs":{"total":1500}}}`)
		fmt.Println(`{"batchId":1,"unknown":[]}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // has not yet come to hear signals
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "broken":
		fmt.Fprintln(os.Stderr, "first words")
		fmt.Fprintln(os.Stderr, "error[x.y]: it does not work")
		os.Exit(1)
	case "parent": // starts an engine, says so, and waits to be killed
		dir := os.Args[len(os.Args)-1]
		_, err := startProcess(testProgram(), dir, "orders.yaml", role("engine"), func(b *batchLine, _ *ending) {
			if b != nil && b.Batch == 1 {
				fmt.Println("up")
			}
		})
		if err != nil {
			fmt.Println(err)
		}
		select {}
	}
	os.Exit(0)
}

func testProgram() Program { return Program{Path: os.Args[0], Args: []string{os.Args[0], "-"}} }

func role(name string) []string { return append(os.Environ(), roleVariable+"="+name) }

// told is what a process said.
type told struct {
	batch *batchLine
	end   *ending
}

func startTest(t *testing.T, dir, name string) (*process, <-chan told) {
	t.Helper()
	ch := make(chan told, 16)
	p, err := startProcess(testProgram(), dir, "orders.yaml", role(name), func(b *batchLine, e *ending) { ch <- told{b, e} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(); <-p.done })
	return p, ch
}

func TestProcessTellsBatchesAndItsEnd(t *testing.T) {
	dir := t.TempDir()
	p, ch := startTest(t, dir, "engine")
	first, second := <-ch, <-ch
	if first.batch == nil || first.batch.Batch != 0 || first.batch.position("orders")[0] != 7 || first.batch.Wasmill.Micros["total"] != 1500 {
		t.Errorf("first batch %+v", first.batch)
	}
	if second.batch == nil || second.batch.Batch != 1 || second.batch.position("orders") != nil {
		t.Errorf("second batch %+v", second.batch)
	}
	p.kill()
	if e := (<-ch).end; e == nil || !e.killed || e.ok {
		t.Errorf("it ended as %+v", e)
	}
	said, err := os.ReadFile(filepath.Join(dir, "orders.log"))
	if want := "engine of " + filepath.Join(dir, "orders.yaml"); err != nil || strings.TrimSpace(string(said)) != want || p.log.last(5) != want {
		t.Errorf("log %q, %v; last %q", said, err, p.log.last(5))
	}
}

func TestProcessThatFails(t *testing.T) {
	p, ch := startTest(t, t.TempDir(), "broken")
	if e := (<-ch).end; e == nil || e.killed || e.ok || e.text != "exit status 1" || p.log.last(1) != "error[x.y]: it does not work" {
		t.Errorf("ended %+v, last words %q", e, p.log.last(1))
	}
}

func TestProcessThatIsAskedTooEarly(t *testing.T) {
	p, ch := startTest(t, t.TempDir(), "deaf")
	p.finish()
	if e := (<-ch).end; e == nil || !e.early || e.killed || e.ok {
		t.Errorf("ended %+v", e)
	}
}

func TestProcessEndsWithItsInput(t *testing.T) {
	p, ch := startTest(t, t.TempDir(), "engine")
	<-ch
	<-ch
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if e := (<-ch).end; e == nil || !e.ok || e.killed {
		t.Errorf("ended %+v", e)
	}
}

// TestNoOrphans kills a parent that cannot tidy up. A pipe that parent and child hold ends only when both are gone.
func TestNoOrphans(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parent := exec.Command(os.Args[0], "-", t.TempDir())
	parent.Env, parent.ExtraFiles = role("parent"), []*os.File{w}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Errorf("the parent says %q, %v", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("the child outlives its parent: %v", err)
	}
}

func testEnv(log io.Writer, name string) Env {
	return Env{Program: testProgram(), Environ: role(name), Files: durable.OS(), Now: time.Now, Log: log}
}

func testConfig(t *testing.T) Config {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return Config{Records: 100, Rate: 100, Seed: 1}
}

func code(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	return f.ErrCode
}

// TestEngineThatFails ends the demo with the engine's words, and leaves the folder to be looked at.
func TestEngineThatFails(t *testing.T) {
	c := testConfig(t)
	r, err := Run(t.Context(), c, testEnv(io.Discard, "broken"))
	if r != nil || code(err) != CodeEngine || !strings.Contains(err.Error(), "error[x.y]: it does not work") {
		t.Fatalf("result %v, error %v", r, err)
	}
	logs, _ := filepath.Glob(filepath.Join(os.TempDir(), "wasmill-demo-*", "*.log"))
	if len(logs) == 0 {
		t.Error("the logs are gone")
	}
}

// TestStopped stops the demo in the middle: nothing of it stays.
func TestStopped(t *testing.T) {
	c := testConfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lines atomic.Int64
	log := writer(func(b []byte) {
		if lines.Add(1); strings.Contains(string(b), "orders 0 ") && strings.Contains(string(b), "batch 2)") {
			cancel()
		}
	})
	r, err := Run(ctx, c, testEnv(log, "engine"))
	if r != nil || code(err) != CodeStopped {
		t.Fatalf("result %v, error %v", r, err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestFolders(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"not empty": {Dir: top}, "a file": {Dir: file}, "below a file": {Dir: filepath.Join(file, "x")},
	} {
		if _, err := Run(t.Context(), c, testEnv(io.Discard, "broken")); code(err) != CodeFolder {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(top, "none"))
	if _, err := Run(t.Context(), Config{}, testEnv(io.Discard, "broken")); code(err) != CodeFolder {
		t.Errorf("no place for temporary files: %v", err)
	}
}

// TestNoProgram is a program that cannot be started.
func TestNoProgram(t *testing.T) {
	e := testEnv(io.Discard, "engine")
	e.Program.Path = filepath.Join(t.TempDir(), "none")
	if _, err := Run(t.Context(), testConfig(t), e); code(err) != CodeEngine {
		t.Errorf("error %v", err)
	}
}
