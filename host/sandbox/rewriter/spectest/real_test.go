package spectest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// leastReal is how many modules of toolchains and of the kit must at least have been rewritten.
const leastReal = 100

// TestRealModules rewrites all modules of the repository and lets a second validator, of wabt, judge what is written. Where
// wabt is not installed, the engine alone judges.
func TestRealModules(t *testing.T) {
	tool, err := exec.LookPath("wasm-validate")
	if err != nil {
		t.Log("wasm-validate of wabt is not installed: only the engine judges")
	}
	runtime := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() { _ = runtime.Close(context.Background()) })
	rewritten, read, written := 0, 0, 0
	for _, file := range realModules(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := binary.Parse(b)
		if err != nil {
			continue // the kit also holds what must be refused
		}
		ok := takes(t, runtime, tool, file, m, rewriter.Options{Plain: true, KeepData: true})
		o := rewriter.Options{MaxPages: 1024, MaxTable: binary.MaxTable, KeepData: !m.Capturable()}
		if takes(t, runtime, tool, file, m, o) != ok {
			t.Errorf("%s is valid only before or only after it is rewritten", file)
		}
		out, err := rewriter.Rewrite(m, o)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		rewritten, read, written = rewritten+1, read+len(b), written+len(out.Wasm)
	}
	t.Logf("%d modules of %d bytes became %d bytes", rewritten, read, written)
	if rewritten < leastReal {
		t.Errorf("%d modules were rewritten, at least %d are expected", rewritten, leastReal)
	}
}

// realModules are all modules of the repository.
func realModules(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	var files []string
	for _, pattern := range []string{"transforms/*/*.wasm", "abi/kit/wasm/*.wasm", "host/sandbox/guests/*/*.wasm", "host/sandbox/guests/*/*/*.wasm"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// takes says whether engine and tool find a rewritten module valid; they must agree.
func takes(t *testing.T, runtime wazero.Runtime, tool, file string, m *binary.Module, o rewriter.Options) bool {
	t.Helper()
	out, err := rewriter.Rewrite(m, o)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return false
	}
	compiled, err := runtime.CompileModule(context.Background(), out.Wasm)
	if err == nil {
		err = compiled.Close(context.Background())
	}
	if tool == "" {
		return err == nil
	}
	path := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(path, out.Wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	said, validateErr := exec.Command(tool, path).CombinedOutput()
	if (err == nil) != (validateErr == nil) {
		t.Errorf("%s: the engine says %v, wasm-validate %v: %s", file, err, validateErr, said)
	}
	return err == nil
}
