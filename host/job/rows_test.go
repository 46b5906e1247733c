package job

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// TestBinaryRowsGoWhereTheyFit: to sinks with the same columns in the same order.
func TestBinaryRowsGoWhereTheyFit(t *testing.T) {
	const text = `apiVersion: wasmill/v1
kind: Job
metadata: {name: j}
spec:
  checkpoint: ./c
  sources: [{name: a, files: {path: ./in, format: jsonl}}]
  transforms: [{name: t, from: [a], module: ./m.wasm}, {name: u, from: [t.plain], module: ./m.wasm}]
  sinks: [{name: s, from: [t], files: {path: out, format: parquet, schema: SCHEMA}}]
`
	const columns = "id: int64 not null, at: timestamp, tags: list<string>"
	for name, c := range map[string]struct{ columns, schema, old, now, want string }{
		"the same":     {columns, `{id: int64, at: timestamp(ms), tags: "list<string>"}`, "", "", ""},
		"another type": {columns, `{id: int32, at: timestamp, tags: "list<string>"}`, "", "", `"id" int64 not null as column 1, and the sink has "id" int32 there`},
		"other order":  {columns, `{at: timestamp, id: int64, tags: "list<string>"}`, "", "", `"id" int64 not null as column 1, and the sink has "at" timestamp there`},
		"one more":     {columns, `{id: int64, at: timestamp, tags: "list<string>", z: date}`, "", "", `t does not give the column "z"`},
		"one less":     {columns, `{id: int64, at: timestamp}`, "", "", `t gives the column "tags", which the sink does not have`},
		"no columns":   {columns, `{id: int64}`, "files: {path: out, format: parquet, schema: {id: int64}}", "stdout: {}", "the sink has no columns"},
		"a transform":  {columns, `{id: int64, at: timestamp, tags: "list<string>"}`, "from: [t.plain]", "from: [t]", "spec.transforms[1].from[0]: t gives binary rows, which sinks with columns take, and no transform"},
		"not short":    {"id:int64", `{id: int64}`, "", "", "the output rows of the module ./m.wasm: the columns must be written in their shortest form, as id: int64"},
	} {
		j, err := Parse("job.yaml", []byte(strings.Replace(strings.Replace(text, "SCHEMA", c.schema, 1), c.old, c.now, 1)), testEnv())
		if err != nil {
			t.Fatal(name, err)
		}
		facts := ModuleFacts{Manifest: &abi.Manifest{
			Inputs:  []abi.InputPort{{Name: "in"}},
			Outputs: []abi.OutputPort{{Name: "rows", Rows: abi.RowsVersion, Columns: c.columns}, {Name: "plain"}},
		}}
		got := ""
		if err := j.CheckModules(map[string]ModuleFacts{"t": facts}); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Count(got, "job.yaml:") > 1 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestColumnsOfBinaryRows: a sink without a schema has the columns of the rows that it takes; its key and its partitions are
// held against those.
func TestColumnsOfBinaryRows(t *testing.T) {
	const text = `apiVersion: wasmill/v1
kind: Job
metadata: {name: j}
spec:
  checkpoint: ./c
  sources: [{name: a, files: {path: ./in, format: jsonl}}]
  transforms: [{name: t, from: [a], module: ./m.wasm}]
  sinks: [{name: s, from: [FROM], SINK}]
  connections: {db: {sqlite: {path: ./x.db}}}
`
	for name, c := range map[string]struct{ from, sink, want string }{
		"parquet":               {"t", "files: {path: out, format: parquet, partitionBy: [day]}", ""},
		"csv":                   {"t", "files: {path: out, format: csv}", ""},
		"jsonl":                 {"t", "files: {path: out, format: jsonl}", ""},
		"jsonl, after another":  {"t.plain, t", "files: {path: out, format: jsonl}", ""},
		"delta":                 {"t", "mode: upsert, delta: {path: out, partitionBy: [day], key: [id], schemaEvolution: add-columns}", ""},
		"sqlite":                {"t", "sqlite: {connection: db, table: t, createTable: true}", ""},
		"a statement":           {"t", `sqlite: {connection: db, statement: "insert into t values (:id)"}`, ""},
		"after another input":   {"t.plain, t", "files: {path: out, format: parquet}", ""},
		"jsonl, no rows":        {"t.plain", "files: {path: out, format: jsonl}", ""},
		"sqlite upsert":         {"t", "mode: upsert, sqlite: {connection: db, table: t, key: [id], createTable: true}", ""},
		"no such partition":     {"t", "files: {path: out, format: parquet, partitionBy: [dai]}", `spec.sinks[0].files.partitionBy[0]: no column "dai" in the schema; did you mean "day"?`},
		"partition by a list":   {"t", "delta: {path: out, partitionBy: [day, tags]}", `spec.sinks[0].delta.partitionBy[1]: column "tags" is a list, which makes no folder name`},
		"no such key":           {"t", "mode: upsert, sqlite: {connection: db, table: t, key: [no]}", `spec.sinks[0].sqlite.key[0]: no column "no" in the schema`},
		"key of a list":         {"t", "mode: upsert, delta: {path: out, key: [id, tags]}", `spec.sinks[0].delta.key[1]: column "tags" is a list, which is no key`},
		"parquet, no rows":      {"t.plain", "files: {path: out, format: parquet}", "spec.sinks[0].files: parquet needs a schema"},
		"evolution, no rows":    {"t.plain", "delta: {path: out, schemaEvolution: add-columns}", "spec.sinks[0].delta.schemaEvolution: columns are added from the schema, and there is none"},
		"created, no rows":      {"t.plain", "sqlite: {connection: db, table: t, createTable: true}", "spec.sinks[0].sqlite.createTable: a table is made from a schema"},
		"statement, no rows":    {"t.plain", `sqlite: {connection: db, statement: "insert into t values (:id)"}`, "spec.sinks[0].sqlite: a statement needs a schema"},
		"its table's, no rows":  {"t.plain", "sqlite: {connection: db, table: t}", ""},
		"its own schema counts": {"t", "delta: {path: out, schema: {id: int64}}", `t gives the column "day", which the sink does not have`},
	} {
		j, err := Parse("job.yaml", []byte(strings.NewReplacer("FROM", c.from, "SINK", c.sink).Replace(text)), testEnv())
		if err != nil {
			t.Fatal(name, err)
		}
		modules := map[string]ModuleFacts{"t": {Manifest: &abi.Manifest{
			Inputs:  []abi.InputPort{{Name: "in"}},
			Outputs: []abi.OutputPort{{Name: "rows", Rows: abi.RowsVersion, Columns: "id: int64 not null, day: date, tags: list<string>"}, {Name: "plain"}},
		}}}
		j.TakeColumns(modules)
		got := ""
		if err := j.CheckModules(modules); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Count(got, "job.yaml:") > 1 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if c.want != "" || c.from == "t.plain" {
			continue
		}
		canonical, _, err := j.Revision(RevisionInputs{Modules: map[string]ModuleInputs{"t": {}}})
		if want := `"schema":[{"name":"id","type":"int64 not null"},{"name":"day","type":"date"},{"name":"tags","type":"list<string>"}]`; err != nil || !strings.Contains(string(canonical), want) {
			t.Errorf("%s: the revision lacks the columns: %s, %v", name, canonical, err)
		}
	}
}
