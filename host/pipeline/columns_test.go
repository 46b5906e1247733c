package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/job"
)

// columnsJob parses a job whose module gives binary rows of a and t, which go to the sink, and whose other input are lines.
func (p *place) columnsJob(sink string) *job.Job {
	p.t.Helper()
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: columns}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  sources: [{name: lines, files: {path: ./in, format: jsonl}}]\n"+
		"  transforms: [{name: rows, from: [lines], module: ./rows.wasm}]\n  sinks: [{name: out, "+sink+"}]\n"+
		"  connections: {db: {sqlite: {path: ./out.db}}}\n"), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

// TestSinksWithoutSchema runs jobs whose sinks take the columns of their rows or of their table. What they took is in the
// revision, and a later look at the checkpoint, which loads no module, finds it there.
func TestSinksWithoutSchema(t *testing.T) {
	wasm, err := os.ReadFile("../../abi/sdk/c/test/rows.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const ofRows = `[{"name":"a","type":"string"},{"name":"t","type":"timestamp(ms) not null"}]`
	for name, c := range map[string]struct{ table, sink, columns string }{
		"parquet":           {"", "from: [rows], files: {path: ./out, format: parquet}", ofRows},
		"csv":               {"", "from: [rows], files: {path: ./out, format: csv}", ofRows},
		"delta":             {"", "from: [rows], delta: {path: ./out}", ofRows},
		"sqlite":            {"", "from: [rows], sqlite: {connection: db, table: out, createTable: true}", ofRows},
		"sqlite upsert":     {"", "from: [rows], mode: upsert, sqlite: {connection: db, table: out, key: [t], createTable: true}", ofRows},
		"jsonl":             {"", "from: [rows], files: {path: ./out, format: jsonl}", ofRows},
		"its own delta":     {"s: int64", "from: [lines], delta: {path: ./out}", `[{"name":"s","type":"int64"}]`},
		"rows before table": {"a: string, t: timestamp, more: int64", "from: [rows], delta: {path: ./out}", ofRows},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.write("rows.wasm", wasm)
			p.input("in", "1.jsonl", "{\"s\":1}\n{\"s\":2}\n")
			if c.table != "" {
				j := p.columnsJob("from: [lines], delta: {path: ./out, schema: {" + c.table + "}}")
				j.Checkpoint = filepath.Join(p.dir, "before")
				was := p.env.NewID
				p.env.NewID = func() string { return "00000000-0000-4000-8000-00000000000b" }
				if err := p.run(j); err != nil {
					t.Fatal(err)
				}
				p.env.NewID = was
			}
			if err := p.run(p.columnsJob(c.sink)); err != nil {
				t.Fatal(err)
			}
			found, err := filepath.Glob(filepath.Join(p.dir, "checkpoint", "revisions", "*"))
			if err != nil || len(found) != 1 {
				t.Fatalf("revisions %v, %v", found, err)
			}
			revision, err := os.ReadFile(found[0])
			if err != nil || !strings.Contains(string(revision), `"schema":`+c.columns) {
				t.Errorf("the revision lacks the columns: %s, %v", revision, err)
			}
			p.prove(p.columnsJob(c.sink))
			if got := p.findings(p.columnsJob(c.sink)); got != "" {
				t.Errorf("findings: %s", got)
			}
			p.input("in", "2.jsonl", "{\"s\":3}\n")
			if err := p.run(p.columnsJob(c.sink)); err != nil {
				t.Errorf("a second run: %v", err)
			}
		})
	}
}

// TestLookBeforeTheFirstBatch: sinks whose columns nobody knows yet are no mistake.
func TestLookBeforeTheFirstBatch(t *testing.T) {
	p := newPlace(t)
	if got := p.findings(p.columnsJob("from: [rows], files: {path: ./out, format: parquet}")); got != "" {
		t.Errorf("findings: %s", got)
	}
}
