package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := w.Transform(w.Const(0), w.Echo()).Bytes()
	run := func() error {
		e, err := New(Config{CacheDir: dir})
		if err != nil {
			return err
		}
		defer e.Close(t.Context())
		if e.Kind() != "compiler" {
			t.Skip("the interpreter has no cache")
		}
		m, err := e.Compile(t.Context(), Binary{Name: "test.wasm", Wasm: wasm})
		if err != nil {
			return err
		}
		return m.Close(t.Context())
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", info, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in the cache, %v", len(files), err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(); err != nil {
		t.Errorf("with a damaged cache: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if err := run(); !errors.As(err, &f) || f.ErrCode != CodeCache || f.WayOut == "" {
		t.Errorf("with an open cache: %v", err)
	}
}

func TestCacheOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Skipf("only root can give a folder away: %v", err)
	}
	_, err := New(Config{CacheDir: dir})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.ErrCode != CodeCache || f.Err.Error() != "the compile cache belongs to another user (uid 12345)" {
		t.Errorf("%v", err)
	}
}

// TestSidecarIsTheSection shows that a module with a sidecar is, once stored, the module with the section: the same bytes
// to run, the same manifest, the same digest.
func TestSidecarIsTheSection(t *testing.T) {
	e := engines(t)["interpreter"]
	info := func(b Binary) *Info {
		t.Helper()
		m, err := e.Compile(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(t.Context())
		return m.Info()
	}
	beside := Binary{Name: "test.wasm", Wasm: good().Bytes(), Sidecar: []byte(manifest)}
	inside := good()
	inside.Customs = [][2]string{{"wasmill", manifest}}
	a, b, stored := info(beside), info(Binary{Name: "test.wasm", Wasm: inside.Bytes()}), info(Binary{Name: "test.wasm", Wasm: beside.Stored()})
	if a.Digest != b.Digest || a.Digest != stored.Digest || len(a.Digest) != 64 {
		t.Errorf("digests %s, %s, %s", a.Digest, b.Digest, stored.Digest)
	}
	if a.Manifest.Name != "t" || stored.Manifest.Name != "t" {
		t.Errorf("manifests %+v, %+v", a.Manifest, stored.Manifest)
	}
	if plain := info(Binary{Name: "test.wasm", Wasm: good().Bytes()}); plain.Digest == a.Digest {
		t.Error("the sidecar does not count")
	}
}

func TestInfo(t *testing.T) {
	m := w.Transform(w.Const(0), w.Echo())
	m.MaxPages = 20
	mod, err := engines(t)["interpreter"].Compile(t.Context(), Binary{Name: "test.wasm", Wasm: m.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(t.Context())
	info := mod.Info()
	if want := []string{"wasmill_1.emit (i32, i32, i32) -> ()", "wasmill_1.log (i32, i32, i32) -> ()"}; !slices.Equal(info.Imports, want) {
		t.Errorf("imports %q", info.Imports)
	}
	want := []string{"memory memory", "wasmill_alloc (i32) -> (i32)", "wasmill_batch (i32, i32) -> (i32)", "wasmill_init (i32, i32, i32) -> (i32)"}
	if !slices.Equal(info.Exports, want) {
		t.Errorf("exports %q", info.Exports)
	}
	if info.MemoryMin != 8 || info.MemoryMax != 20 || info.Size != len(m.Bytes()) || len(info.Digest) != 64 {
		t.Errorf("%+v", info)
	}
}
