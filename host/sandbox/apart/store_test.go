package apart

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sandbox"
)

// filled is a folder with one good verdict and its entry.
func filled(t *testing.T) (dir, file, entry string) {
	t.Helper()
	dir = cacheDir(t)
	if err := judgeOf(t, good, DefaultLimits).Compile(t.Context(), echo("compiler", dir)); err != nil {
		t.Fatal(err)
	}
	one := func(pattern string) string {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		return list[0]
	}
	return dir, one("verdicts/*"), one("wazero-*/*")
}

// TestModes: nobody else may read what is written, for the folder alone may be opened by mistake.
func TestModes(t *testing.T) {
	dir, file, entry := filled(t)
	for name, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700, entry: 0o600, filepath.Dir(entry): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := forbidden(DefaultLimits).Compile(t.Context(), echo("compiler", dir)); err != nil {
		t.Error(err)
	}
}

// TestVerdictsThatDoNotHold: whatever is wrong with a verdict or with its code, the module is compiled again, and what was
// wrong is replaced.
func TestVerdictsThatDoNotHold(t *testing.T) {
	flip := func(at func(size int) int) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text[at(len(text))] ^= 1
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := func(size int64) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			if err := os.Truncate(name, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, middle, last := func(int) int { return 0 }, func(n int) int { return n / 2 }, func(n int) int { return n - 1 }
	remove := func(t *testing.T, name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	open := func(t *testing.T, name string) {
		if err := os.Chmod(name, 0o604); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, name string) {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name+".away", name); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		wrong func(t *testing.T, name string)
		file  bool // of the verdict, else of the code
	}{
		{"verdict cut to nothing", cut(0), true},
		{"verdict cut", cut(40), true},
		{"first byte of the verdict", flip(first), true},
		{"a byte of the verdict", flip(middle), true},
		{"last byte of the verdict", flip(last), true},
		{"verdict open to others", open, true},
		{"verdict that is a link", link, true},
		{"no verdict", remove, true},
		{"no code", remove, false},
		{"code cut to nothing", cut(0), false},
		{"code cut", cut(50), false},
		{"first byte of the code", flip(first), false},
		{"an offset in the code", flip(func(int) int { return 30 }), false},
		{"a byte of the code", flip(middle), false},
		{"last byte of the code", flip(last), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, file, entry := filled(t)
			name := entry
			if tt.file {
				name = file
			}
			tt.wrong(t, name)
			wantFault(t, forbidden(DefaultLimits).Compile(t.Context(), echo("compiler", dir)), sandbox.CodeCompileStart)
			if err := judgeOf(t, good, DefaultLimits).Compile(t.Context(), echo("compiler", dir)); err != nil {
				t.Fatal(err)
			}
			if err := forbidden(DefaultLimits).Compile(t.Context(), echo("compiler", dir)); err != nil {
				t.Errorf("it was not mended: %v", err)
			}
		})
	}
}

// TestEveryBitOfTheEntryCounts flips each byte of an entry: the engine never sees one that differs.
func TestEveryBitOfTheEntryCounts(t *testing.T) {
	dir, _, entry := filled(t)
	text, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	work := echo("compiler", dir)
	s := &store{files: durable.OS(), dir: dir, key: key(circumstances(DefaultLimits), &work), code: true}
	for i := range text {
		text[i] ^= 0x10
		if err := os.WriteFile(entry, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if s.read() != nil {
			t.Fatalf("byte %d of %d does not count", i, len(text))
		}
		text[i] ^= 0x10
	}
}

// TestKeys: what a verdict depends on is in its name.
func TestKeys(t *testing.T) {
	base := echo("compiler", "")
	seen := map[string]string{}
	add := func(what, key string) {
		if other, twice := seen[key]; twice {
			t.Errorf("%s has the name of %s", what, other)
		}
		seen[key] = what
	}
	c := circumstances(DefaultLimits)
	add("base", key(c, &base))
	other := base
	other.Kind = "interpreter"
	add("kind", key(c, &other))
	other = base
	other.Wasm = append([]byte{}, base.Wasm...)
	other.Wasm[20] ^= 1
	add("bytes", key(c, &other))
	for i, l := range []Limits{{1, DefaultLimits.Memory, DefaultLimits.Time}, {DefaultLimits.CPU, 1, DefaultLimits.Time}, {DefaultLimits.CPU, DefaultLimits.Memory, 1}} {
		add(fmt.Sprint("limit ", i), key(circumstances(l), &base))
	}
	other = base
	other.Name, other.CacheDir = "other", "elsewhere"
	if key(c, &other) != key(c, &base) {
		t.Error("a name or a place counts")
	}
}

// TestSharedFolder lets many judges, as of many processes, work on the same modules in one folder.
func TestSharedFolder(t *testing.T) {
	dir := cacheDir(t)
	bad := sandbox.Work{Name: "bad.wasm", Wasm: []byte("\x00asm\x01\x00\x00\x00\x01"), Kind: "compiler", CacheDir: dir}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			j := judgeOf(t, good, DefaultLimits)
			if err := j.Compile(t.Context(), echo("compiler", dir)); err != nil {
				t.Error(err)
			}
			if err := j.Compile(t.Context(), bad); err == nil {
				t.Error("the bad module is taken")
			}
		})
	}
	group.Wait()
	if err := forbidden(DefaultLimits).Compile(t.Context(), echo("compiler", dir)); err != nil {
		t.Error(err)
	}
	wantFault(t, forbidden(DefaultLimits).Compile(t.Context(), bad), sandbox.CodeInvalid)
	for pattern, want := range map[string]int{"verdicts/*": 2, "verdicts/.*": 0, "wazero-*/*": 1, "stage-*": 0} {
		if list, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(list) != want {
			t.Errorf("%s: %v, %v", pattern, list, err)
		}
	}
}

// TestSweep removes what a killed process left, and nothing that a living one works in.
func TestSweep(t *testing.T) {
	dir := cacheDir(t)
	s := &store{files: durable.OS(), dir: dir, code: true}
	alive := s.stage()
	dead := filepath.Join(dir, stagePrefix+"dead", "wazero-x")
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "entry"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweep()
	if _, err := os.Stat(filepath.Dir(dead)); !os.IsNotExist(err) {
		t.Errorf("the dead one is still there: %v", err)
	}
	if _, err := os.Stat(alive.path()); err != nil {
		t.Error(err)
	}
	alive.close()
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestFolderThatCannotBeWritten costs time, not the job.
func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(cacheDir(t), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := judgeOf(t, good, DefaultLimits)
	if err := j.Compile(t.Context(), echo("compiler", dir)); err != nil {
		t.Error(err)
	}
}

// TestEngineLoadsWhatTheChildLeft runs the whole way, with a real engine.
func TestEngineLoadsWhatTheChildLeft(t *testing.T) {
	for _, config := range []sandbox.Config{{}, {CacheDir: cacheDir(t)}, {CacheDir: cacheDir(t), Interpreter: true}} {
		for range 2 {
			config.Apart = judgeOf(t, good, DefaultLimits)
			e, err := sandbox.New(config)
			if err != nil {
				t.Fatal(err)
			}
			m, err := e.Compile(t.Context(), sandbox.Binary{Name: "echo.wasm", Wasm: echo("", "").Wasm})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
