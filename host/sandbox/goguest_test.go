package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// goGuest builds testdata/goguest.go.txt with the Go that runs the tests. The source is no package of this repository, for
// it does what nothing here may do.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "goguest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, err := os.ReadFile(filepath.Join("testdata", "goguest.go.txt"))
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"main.go": source, "go.mod": []byte("module guest\n\ngo 1.26\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", "guest.wasm", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "guest.wasm"))
})

func builtGoGuest(t testing.TB) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a guest")
	}
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestGoGuest shows that what a Go guest sees of the world is a function of its lane alone: on both engines, in each
// instance, and whatever ran before.
func TestGoGuest(t *testing.T) {
	wasm := builtGoGuest(t)
	first := ""
	onEach(t, func(t *testing.T, e Engine) {
		var logs []string
		p := started(t, e, wasm, Options{Config: []byte(`{"a":1}`), Log: func(_ int, text string) { logs = append(logs, text) }})
		run := func(l Lane) string {
			in, err := p.New(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			all := ""
			for range 2 {
				err = in.Call(context.Background(), Call{Records: records(2)}, func(r *abi.Record) error { all += string(r.Value) + "\n"; return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := in.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			return all
		}
		l := Lane{Seed: [2]uint64{5, 6}, Time: 1_700_000_000_000_000}
		got := run(l)
		if first == "" {
			first = got
		}
		for _, want := range []string{"calls 1, config {\"a\":1}, at 2023-11-14T22:13:20Z, slept 3s", "args 0, env 0", "calls 2,"} {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		}
		if got != first {
			t.Errorf("the engines differ:\n%s\n%s", got, first)
		}
		for range 3 {
			if again := run(l); again != got {
				t.Errorf("the instances differ:\n%s\n%s", again, got)
			}
		}
		if other := run(Lane{Seed: l.Seed, Time: l.Time + 60_000_000}); !strings.Contains(other, "22:14:20Z") {
			t.Errorf("another time: %s", other)
		}
		if len(logs) == 0 || logs[0] != "said 1" {
			t.Errorf("logs %q", logs)
		}
	})
}
