package cli

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
)

func TestRequireCompiler(t *testing.T) {
	if err := requireCompiler("compiler", "linux/amd64"); err != nil {
		t.Error(err)
	}
	var f *fault.Error
	if err := requireCompiler("interpreter", "linux/riscv64"); !errors.As(err, &f) || f.ErrCode != CodeNoCompiler || f.Place != "linux/riscv64" || f.WayOut == "" {
		t.Errorf("%v", err)
	}
}

// TestReadyz asks a job for its health in each of its states.
func TestReadyz(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := newStatus("interpreter", func() time.Time { return now })
	get := func(query string) (int, string) {
		w := httptest.NewRecorder()
		s.readyz(w, httptest.NewRequest("GET", "/readyz"+query, nil))
		return w.Code, w.Body.String()
	}
	if code, text := get(""); code != 503 || text != "starting\n" {
		t.Errorf("%d %q", code, text)
	}
	s.set(true, "running")
	s.step(engine.StepRun, false)
	if code, text := get("?verbose"); code != 200 || text != "running\nengine=interpreter\nstep=run\nversion="+buildVersions().Version+"\n" {
		t.Errorf("%d %q", code, text)
	}
	s.step(engine.StepRun, true)
	if _, text := get("?verbose=1"); !strings.Contains(text, "step=between steps\n") {
		t.Errorf("%q", text)
	}
	s.step(engine.StepRun, false)
	now = now.Add(time.Hour)
	if code, text := get(""); code != 200 {
		t.Errorf("a long run: %d %q", code, text)
	}
	s.step(engine.StepPlan, false)
	now = now.Add(longStep + time.Second)
	if code, text := get(""); code != 503 || text != "step plan has been under way for 11s\n" {
		t.Errorf("a source that does not answer: %d %q", code, text)
	}
	s.step(engine.StepPlan, true)
	s.set(false, "no space left")
	if code, text := get(""); code != 503 || text != "no space left\n" {
		t.Errorf("%d %q", code, text)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home")
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"": filepath.Join(user, "wasmill", "modules"), "none": "", "./here": "./here"} {
		if got := cacheDir(flag); got != want {
			t.Errorf("%q: %q, want %q", flag, got, want)
		}
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got := cacheDir(""); got != "" {
		t.Errorf("without a home: %q", got)
	}
}

// TestOwnProgram: a child must be this very program.
func TestOwnProgram(t *testing.T) {
	program, err := ownProgram()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.Stat(executable); err != nil || !os.SameFile(have, want) {
		t.Errorf("%s is not %s: %v", program, executable, err)
	}
}
