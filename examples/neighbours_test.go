package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoConnectionsToOneTable: plan and the start refuse a job whose connections would wait for each other.
func TestTwoConnectionsToOneTable(t *testing.T) {
	url := os.Getenv("WASMILL_POSTGRES")
	if url == "" {
		t.Skip("WASMILL_POSTGRES does not name a server")
	}
	dir := t.TempDir()
	sink := func(name, connection, table string) string {
		return fmt.Sprintf("    - {name: %s, from: [lines], mode: upsert, postgres: {connection: %s, table: %s, schema: {k: int32}, key: [k], createTable: true}}\n", name, connection, table)
	}
	table := fmt.Sprintf("neighbours_%d", os.Getpid())
	file := filepath.Join(dir, "job.yaml")
	for name, text := range map[string]string{
		"in.jsonl": `{"k":1}` + "\n",
		"job.yaml": "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: neighbours}\nspec:\n  checkpoint: ./checkpoint\n  trigger: {availableNow: true}\n" +
			"  connections:\n" + fmt.Sprintf("    a: {postgres: {url: %q, lockTimeout: 1s}}\n    b: {postgres: {url: %q, lockTimeout: 1s}}\n", url, url) +
			"  sources: [{name: lines, files: {path: ./in.jsonl, format: jsonl}}]\n  sinks:\n" + sink("one", "a", table) + sink("two", "b", "public."+table),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"plan", "run"} {
		r := run(t, nil, verb, file)
		if said := r.stdout + r.stderr; r.code == 0 || !strings.Contains(said, "leads to the same table") || !strings.Contains(said, "share one connection") {
			t.Errorf("%s: %d\n%s", verb, r.code, said)
		}
	}
}
