package apart

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// passed is the number of the descriptor that the test's program leaves open for its children.
const passed = 200

// childMain is what the test's program does as a child.
func childMain(args []string) int {
	verb := args[0]
	switch verb {
	case good:
		return Child(context.Background(), os.Stdin, os.Stdout, os.Exit)
	case "__unready":
		fmt.Fprintln(os.Stderr, "no limits here")
		return 3
	case "__parent":
		return parentMain(args[1])
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadSlice('\n')
	var t task
	if err == nil {
		err = json.Unmarshal(line, &t)
	}
	if err != nil {
		return 9
	}
	before := isOpen(passed)
	if verb != "__hangloud" { // which tells the test about itself
		if err := bound(t.Limits); err != nil {
			return 8
		}
	}
	fmt.Print(ready)
	return misbehave(verb, before)
}

func misbehave(verb string, before bool) int {
	answer := func(a answer) int {
		if err := json.NewEncoder(os.Stdout).Encode(&a); err != nil {
			return 6
		}
		return 0
	}
	switch verb {
	case "__panic":
		panic("wild")
	case "__segfault":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "__kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "__nomemory":
		fmt.Fprintln(os.Stderr, "runtime: out of memory: cannot allocate 8 bytes\nfatal error: out of memory")
		return 2
	case "__spin":
		for n := 0; n >= 0; n = (n + 1) & 0xffff { // the kernel's own limit ends it, and it holds no other
		}
	case "__hang":
		_, _ = io.Copy(io.Discard, neverEnding{})
	case "__hangloud":
		_, _ = unix.Write(passed, []byte("up\n"))
		_, _ = io.Copy(io.Discard, neverEnding{})
	case "__flood":
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("flood ", 1000))
		}
	case "__trouble":
		return answer(answerTrouble)
	case "__bare":
		pgid, err := unix.Getpgid(0)
		return answer(answerOf("before %t, after %t; environment %v; own group %t", before, isOpen(passed), os.Environ(), err == nil && pgid == os.Getpid()))
	}
	return 7
}

var answerTrouble = answer{Trouble: "the disk is on fire"}

func answerOf(format string, args ...any) answer {
	return answer{Outcome: refused, Reason: fmt.Sprintf(format, args...)}
}

// neverEnding is a reader that blocks for ever.
type neverEnding struct{}

func (neverEnding) Read([]byte) (int, error) {
	for {
		_, _ = unix.Poll(nil, -1) // in the kernel: Go calls goroutines that only wait for each other a deadlock
	}
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// inheritable leaves a descriptor open that children inherit.
func inheritable(t *testing.T) bool {
	t.Helper()
	if err := unix.Dup2(0, passed); err != nil {
		t.Log(err)
		return false
	}
	t.Cleanup(func() { _ = unix.Close(passed) })
	return true
}

// parentMain judges with a child that hangs, and says so on the passed descriptor.
func parentMain(verb string) int {
	program, err := os.Executable()
	if err != nil {
		return 1
	}
	if err := unix.Dup2(3, passed); err != nil {
		return 2
	}
	_ = unix.Close(3)
	j := New(Config{Program: program, Args: []string{program, verb}, Limits: DefaultLimits, Files: durable.OS()})
	if err := j.Compile(context.Background(), echo("compiler", "")); err != nil {
		return 4
	}
	return 0
}

// TestChildEndsWithItsParent kills a parent: the pipe that both hold ends when both are gone.
func TestChildEndsWithItsParent(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(program, "__parent", "__hangloud")
	cmd.ExtraFiles = []*os.File{pipe}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = pipe.Close()
	both := bufio.NewReader(r)
	if line, err := both.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if rest, err := io.ReadAll(both); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestOrphanEnds closes the input of a child that was not started by a judge: it ends, even in the midst of its work.
func TestOrphanEnds(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wasm := deep(60_000)
	head, err := json.Marshal(task{verdictVersion, len(wasm), "compiler", "", DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, good)
	cmd.Stdin = strings.NewReader(string(head) + "\n" + string(wasm))
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || string(out) != ready {
		t.Errorf("%q, %v", out, err)
	}
}

// TestChildTakesNothingOdd feeds a child tasks that no parent gives.
func TestChildTakesNothingOdd(t *testing.T) {
	for _, in := range []string{"", "\n", "{}\n", "[1]\n", `{"version":99,"size":0,"kind":"compiler","limits":{"cpu":1,"memory":1,"time":1}}` + "\n", strings.Repeat("x", maxTask+1)} {
		var out strings.Builder
		if code := Child(t.Context(), strings.NewReader(in), &out, func(int) {}); code != 1 || !strings.Contains(out.String(), `"trouble":"`) {
			t.Errorf("%.20q: %d, %q", in, code, out.String())
		}
	}
}

// FuzzJudge takes whatever a child may say or leave.
// TestStarved: what Go's runtime says when it gets no memory or no thread is no verdict that is kept.
func TestStarved(t *testing.T) {
	for text, passing := range map[string]bool{
		"fatal error: runtime: out of memory\n":                                                                                                              true,
		"runtime: failed to create new OS thread (have 9 already; errno=11)\nfatal error: newosproc\n":                                                       true,
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nPC=0x7f m=0\n":                                                true,
		"SIGSEGV: segmentation violation\nPC=0x43613d m=4 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x2 m=4 mp=0x2 [idle]:\nruntime.(*spanQueue).tryDrain(0x7)\n": true,
		"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4]\n":       false,
		"fatal error: concurrent map writes\n": false,
	} {
		v, err := judge([]byte(ready), text, &ending{err: errors.New("exit status 2")}, DefaultLimits)
		if err != nil || v.passing != passing || (v.Outcome == memOver) != passing {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(ready+`{"outcome":"fine"}`+"\n"), "")
	f.Add([]byte(ready), "fatal error: out of memory")
	f.Add([]byte("read"), "\x1b[2J")
	f.Add([]byte(ready+`{"outcome":"odd"}`), "x")
	f.Fuzz(func(t *testing.T, said []byte, complaints string) {
		v, err := judge(said, complaints, &ending{err: io.ErrUnexpectedEOF}, DefaultLimits)
		if (v == nil) == (err == nil) {
			t.Fatalf("%v, %v", v, err)
		}
		if v == nil {
			return
		}
		err = v.fault("m", "", DefaultLimits)
		if (err == nil) != (v.Outcome == fine) {
			t.Errorf("outcome %q: %v", v.Outcome, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q steers a terminal", err)
		}
	})
}

// FuzzDecode takes whatever lies in a verdict's file behind a checksum that fits.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"outcome":"fine","entry":"wazero-v1-amd64-linux/`+strings.Repeat("ab", 32)+`","sha256":"x"}`), false)
	f.Add([]byte(`{"outcome":"refused","reason":"r"}`), false)
	f.Add([]byte(`{"outcome":"fine","entry":"../../etc/passwd"}`), false)
	f.Add([]byte("wasmill verdict 1 \n"), true)
	f.Fuzz(func(t *testing.T, text []byte, bare bool) {
		if !bare {
			text = append(fmt.Appendf(nil, verdictHead, verdictVersion, sha256.Sum256(text)), text...)
		}
		v, err := decode(text)
		if err != nil {
			return
		}
		if bare {
			t.Error("a checksum was guessed")
		}
		if v.Entry != "" && !filepath.IsLocal(v.Entry) {
			t.Errorf("the entry %q leads out of the folder", v.Entry)
		}
		if err := v.fault("m", "", DefaultLimits); (err == nil) != (v.Outcome == fine) {
			t.Errorf("outcome %q: %v", v.Outcome, err)
		}
	})
}
