package transforms

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Toolchains that built the committed modules.
const (
	builtByGo   = "go1.26.8"
	builtByRust = "rustc 1.96.0 (ac68faa20 2026-05-25)"
)

// transformsBuilt are the transforms that build.sh builds.
var transformsBuilt = []string{"clean", "convert", "f1"}

func TestGoSourcesBuildToTheCommittedModules(t *testing.T) {
	if runtime.Version() != builtByGo {
		t.Skipf("the committed modules were built by %s, this is %s: another compiler writes other bytes", builtByGo, runtime.Version())
	}
	rebuild(t, "go")
}

func TestRustSourcesBuildToTheCommittedModules(t *testing.T) {
	if os.Getenv("WASMILL_REAL") != "1" {
		t.Skip("WASMILL_REAL is not 1: this needs a Rust toolchain")
	}
	rustc := filepath.Join(filepath.Dir(cargo()), "rustc")
	version, err := exec.Command(rustc, "--version").Output()
	if err != nil {
		t.Skipf("no Rust toolchain beside %s: %v", cargo(), err)
	}
	if !strings.HasPrefix(string(version), builtByRust) {
		t.Skipf("the committed modules were built by %s, this is %s: another compiler writes other bytes", builtByRust, version)
	}
	rebuild(t, "rust")
}

// cargo is the one that build.sh uses.
func cargo() string {
	if c := os.Getenv("WASMILL_CARGO"); c != "" {
		return c
	}
	return "/usr/bin/cargo"
}

// modulesOf are the files that build.sh makes of a language, by folder.
func modulesOf(lang string) map[string][]string {
	all := map[string][]string{}
	for _, name := range transformsBuilt {
		all[name] = []string{builds(name)[lang]}
		if lang == "go" {
			all[name] = append(all[name], builds(name)[lang]+".json")
		}
	}
	if lang == "rust" {
		for _, name := range StockNames() {
			all[name] = []string{name + ".wasm"}
		}
	}
	return all
}

// rebuild runs build.sh for one language and compares what it made with what is committed.
func rebuild(t *testing.T, lang string) {
	t.Helper()
	out := t.TempDir()
	if text, err := exec.Command("./build.sh", lang, out).CombinedOutput(); err != nil {
		t.Fatalf("build.sh %s: %v\n%s", lang, err, text)
	}
	for name, files := range modulesOf(lang) {
		for _, f := range files {
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
				t.Errorf("%s is not what its source builds to (%d bytes, built %d): run transforms/build.sh %s", file, len(want), len(got), lang)
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
