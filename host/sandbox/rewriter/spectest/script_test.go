package spectest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the suite is known to hold. A run that finds less has not found the suite.
const (
	wantScripts = 148
	wantModules = 4_500 // files; the suite in the engine's release of today has 4,581
)

// script is one file of the suite.
type script struct {
	name     string
	Commands []command `json:"commands"`
}

// command is one step of a script, as wast2json writes it.
type command struct {
	Type       string  `json:"type"`
	Line       int     `json:"line"`
	Name       string  `json:"name"`
	As         string  `json:"as"`
	Filename   string  `json:"filename"`
	ModuleType string  `json:"module_type"`
	Text       string  `json:"text"`
	Action     action  `json:"action"`
	Expected   []value `json:"expected"`
}

// action is a call of an exported function, or the reading of an exported global.
type action struct {
	Type   string  `json:"type"`
	Module string  `json:"module"`
	Field  string  `json:"field"`
	Args   []value `json:"args"`
}

// suiteDir is the folder of the suite. That there is none is a failure: a suite that was not run proves nothing.
func suiteDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("find the engine's module, which holds the suite: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest", "v2", "testdata")
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil || len(files) < wantModules {
		t.Fatalf("the suite is not in %s: %d modules are there, at least %d are expected (%v)", dir, len(files), wantModules, err)
	}
	return dir
}

// loadScripts reads all scripts.
func loadScripts(t *testing.T, dir string) []script {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < wantScripts {
		t.Fatalf("the suite in %s has %d scripts, at least %d are expected (%v)", dir, len(files), wantScripts, err)
	}
	scripts := make([]script, 0, len(files))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := script{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		scripts = append(scripts, s)
	}
	return scripts
}
