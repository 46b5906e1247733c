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
		"no columns":   {columns, `{id: int64}`, "format: parquet, schema: {id: int64}", "format: jsonl", "the sink has no columns"},
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
