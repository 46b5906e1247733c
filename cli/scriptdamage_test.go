package cli_test

import (
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// damage changes one byte in the middle of each file of compiled code in a cache: damage CACHE
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage CACHE")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "wazero-*", "*"))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("%s holds no compiled code", args[0])
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		ts.Check(err)
		text[len(text)/2] ^= 0x40
		ts.Check(os.WriteFile(name, text, 0o600))
	}
}
