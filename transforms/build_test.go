package transforms

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// builtByGo is the toolchain that built the committed modules of Go. Those of Rust are rebuilt and compared by `.ci/test real`.
const builtByGo = "go1.26.8"

// transformsBuilt are the transforms that build.sh builds in both languages.
var transformsBuilt = []string{"clean", "convert", "f1"}

func TestGoSourcesBuildToTheCommittedModules(t *testing.T) {
	if runtime.Version() != builtByGo {
		t.Skipf("the committed modules were built by %s, this is %s: another compiler writes other bytes", builtByGo, runtime.Version())
	}
	out := t.TempDir()
	if text, err := exec.Command("./build.sh", "go", out).CombinedOutput(); err != nil {
		t.Fatalf("build.sh go: %v\n%s", err, text)
	}
	for _, name := range transformsBuilt {
		module := builds(name)["go"]
		for _, f := range []string{module, module + ".json"} {
			file := filepath.Join(name, f)
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what its source builds to (%d bytes, built %d): run transforms/build.sh go", file, len(want), len(got))
			}
		}
	}
}

// TestOneManifest: each language has the manifest beside its source, and it is the same one.
func TestOneManifest(t *testing.T) {
	for _, name := range transformsBuilt {
		a, err := os.ReadFile(filepath.Join(name, "go", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(name, "rust", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: the manifests of go and rust differ", name)
		}
		wasm, err := os.ReadFile(filepath.Join(name, builds(name)["rust"]))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(wasm, append([]byte("\x07wasmill"), a...)) {
			t.Errorf("%s from Rust has no section with this manifest", name)
		}
	}
}
