package apart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// TestMain makes the test's program its own child, well behaved or not.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(childMain(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

const good = "__compile"

// patience is a limit of time that a child on a busy machine has begun within.
const patience = 3 * time.Second

// judgeOf makes a judge whose children run that part of childMain.
func judgeOf(t *testing.T, verb string, l Limits) *Judge {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Program: program, Args: append([]string{program}, strings.Fields(verb)...), Limits: l, Files: durable.OS()})
}

// cacheDir is a private folder.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func echo(kind, dir string) sandbox.Work {
	return sandbox.Work{Name: "echo.wasm", Wasm: w.Transform(w.Const(0), w.Echo()).Bytes(), Kind: kind, CacheDir: dir}
}

// wantFault checks the form of an error and returns it.
func wantFault(t *testing.T, err error, code string) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.ErrCode != code || f.Place == "" || f.WayOut == "" {
		t.Fatalf("the error is %v, want a fault with %s", err, code)
	}
	return f
}

// forbidden is a judge that has no children to ask.
func forbidden(l Limits) *Judge {
	return New(Config{Program: "/nowhere/at/all", Args: []string{"none"}, Limits: l, Files: durable.OS()})
}

// TestVerdicts has real modules compiled: good ones, one that is not valid, and those that a compiler chokes on.
func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wasm   []byte
		limits Limits
		kinds  string
		code   string
		text   string
		kept   bool // in a file too
	}{
		{"good", echo("", "").Wasm, DefaultLimits, "compiler interpreter", "", "", true},
		{"not valid", w.Transform(w.Const(0), w.Add).Bytes(), DefaultLimits, "compiler interpreter", sandbox.CodeInvalid, "the module is not valid: ", true},
		{"processor time", deep(30_000), Limits{CPU: time.Second, Memory: 1 << 30, Time: time.Minute}, "compiler", sandbox.CodeCompileLimit, "more than 1s of processor time", true},
		{"little memory", wide(10_000_000), Limits{CPU: time.Minute, Memory: 128 << 20, Time: time.Minute}, "compiler", sandbox.CodeCompileLimit, "more than 128 MiB of memory", true},
		{"the clock", deep(60_000), Limits{CPU: time.Minute, Memory: 1 << 30, Time: patience}, "compiler", sandbox.CodeCompileLimit, "not come to its end after 3s", false},
	} {
		for _, kind := range strings.Fields(tt.kinds) {
			t.Run(tt.name+" on "+kind, func(t *testing.T) {
				dir := cacheDir(t)
				work := sandbox.Work{Name: "m.wasm", Wasm: tt.wasm, Kind: kind, CacheDir: dir}
				check := func(err error) {
					t.Helper()
					if tt.code == "" {
						if err != nil {
							t.Fatal(err)
						}
						return
					}
					if f := wantFault(t, err, tt.code); f.Place != "m.wasm" || !strings.Contains(f.Error(), tt.text) {
						t.Fatalf("the fault is %v", f)
					}
				}
				j := judgeOf(t, good, tt.limits)
				check(j.Compile(t.Context(), work))
				// The second time there is no child to ask: in the same process always, in another one for what is kept.
				j.config.Program = "/nowhere/at/all"
				check(j.Compile(t.Context(), work))
				err := forbidden(tt.limits).Compile(t.Context(), work)
				if !tt.kept {
					wantFault(t, err, sandbox.CodeCompileStart)
					return
				}
				check(err)
			})
		}
	}
}

// TestMemoryAtOnce asks for far more than the limit in one piece: whether the child sees it or the system refuses it first,
// it ends, and quickly.
func TestMemoryAtOnce(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector ends the child in its own words")
	}
	f := wantFault(t, judgeOf(t, good, DefaultLimits).Compile(t.Context(), sandbox.Work{Name: "m.wasm", Wasm: wide(200_000_000), Kind: "compiler"}), sandbox.CodeCompileLimit)
	if !strings.Contains(f.Error(), "more than 1024 MiB of memory") {
		t.Error(f)
	}
}

// TestWithoutFolder keeps verdicts in memory, good and bad.
func TestWithoutFolder(t *testing.T) {
	j := judgeOf(t, good, DefaultLimits)
	bad := sandbox.Work{Name: "bad.wasm", Wasm: []byte(w.Header + "\x01"), Kind: "compiler"}
	for range 2 {
		if err := j.Compile(t.Context(), echo("compiler", "")); err != nil {
			t.Fatal(err)
		}
		wantFault(t, j.Compile(t.Context(), bad), sandbox.CodeInvalid)
		j.config.Program = "/nowhere/at/all"
	}
}

// TestChildren judges children that end in every other way.
func TestChildren(t *testing.T) {
	quick := Limits{CPU: time.Minute, Memory: 1 << 30, Time: patience}
	for _, tt := range []struct {
		verb   string
		limits Limits
		code   string
		text   string
		kept   bool
	}{
		{"__panic", DefaultLimits, sandbox.CodeCompileCrash, "the compiler broke off over it: panic: wild", true},
		{"__segfault", DefaultLimits, sandbox.CodeCompileCrash, "SIGSEGV", true},
		{"__exit", DefaultLimits, sandbox.CodeCompileCrash, "exit status 7", true},
		{"__kill", DefaultLimits, sandbox.CodeCompileCrash, "killed from outside", false},
		{"__nomemory", DefaultLimits, sandbox.CodeCompileLimit, "MiB of memory", false},
		{"__spin", Limits{CPU: time.Second, Memory: 1 << 30, Time: time.Minute}, sandbox.CodeCompileLimit, "1s of processor time", true},
		{"__hang", quick, sandbox.CodeCompileLimit, "after 3s", false},
		{"__flood", quick, sandbox.CodeCompileLimit, "", false},
		{"__unready", DefaultLimits, sandbox.CodeCompileStart, "exit status 3: no limits here", false},
		{"__trouble", DefaultLimits, sandbox.CodeCompileStart, "the disk is on fire", false},
	} {
		t.Run(tt.verb, func(t *testing.T) {
			dir := cacheDir(t)
			j := judgeOf(t, tt.verb, tt.limits)
			f := wantFault(t, j.Compile(t.Context(), echo("compiler", dir)), tt.code)
			if !strings.Contains(f.Error(), tt.text) {
				t.Errorf("the fault is %v", f)
			}
			files, err := filepath.Glob(filepath.Join(dir, verdicts, "*"))
			if err != nil || (len(files) == 1) != tt.kept {
				t.Fatalf("%d verdicts are kept, %v", len(files), err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if !tt.kept {
				return
			}
			if !strings.Contains(f.WayOut, files[0]) {
				t.Errorf("the way out does not name the file: %s", f.WayOut)
			}
			if err := os.Remove(files[0]); err != nil {
				t.Fatal(err)
			}
			if err := judgeOf(t, good, tt.limits).Compile(t.Context(), echo("compiler", dir)); err != nil {
				t.Errorf("after the verdict was removed: %v", err)
			}
		})
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"/nowhere/at/all", file} {
		j := New(Config{Program: program, Args: []string{"x"}, Limits: DefaultLimits, Files: durable.OS()})
		f := wantFault(t, j.Compile(t.Context(), echo("compiler", "")), sandbox.CodeCompileStart)
		if !strings.Contains(f.Error(), "could not be started") {
			t.Errorf("%v", f)
		}
		if len(j.known) != 0 {
			t.Error("that is no verdict")
		}
	}
}

func TestCancelled(t *testing.T) {
	j := judgeOf(t, "__hang", DefaultLimits)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for range 3 { // one has a child, the others wait for their turn
		group.Go(func() {
			if err := j.Compile(ctx, echo("compiler", "")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	group.Wait()
	if len(j.known) != 0 {
		t.Error("a cancelled child is no verdict")
	}
}

// TestChildHasNothing looks at what a child is born with.
func TestChildHasNothing(t *testing.T) {
	t.Setenv("SECRET", "x")
	j := judgeOf(t, "__bare", DefaultLimits)
	inherited := inheritable(t)
	f := wantFault(t, j.Compile(t.Context(), echo("compiler", "")), sandbox.CodeInvalid)
	if want := "before true, after false; environment [GOTRACEBACK=none]; own group true"; inherited && !strings.HasSuffix(f.Error(), want) {
		t.Errorf("%v, want %s", f, want)
	}
}

// deep is a module with blocks in blocks, which take the compiler more than linear time.
func deep(n int) []byte {
	m := w.Transform(w.Const(0), strings.Repeat("\x02\x40", n)+strings.Repeat(w.End, n)+w.Const(0))
	return m.Bytes()
}

// wide is a module of few bytes with a function of n locals.
func wide(n uint32) []byte {
	body := w.Vec(w.U32(n)+"\x7f") + w.End
	return []byte(w.Header + w.Section(w.Type, w.Vec(w.FuncType("", ""))) + w.Section(w.Function, w.Vec("\x00")) + w.Section(w.Code, w.Vec(w.Name(body))))
}
