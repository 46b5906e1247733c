package job

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
)

const revised = `apiVersion: wasmill/v1
kind: Job
metadata: {name: revised}
spec:
  checkpoint: ckpt
  sources:
    - name: flights
      files: {path: in, format: jsonl}
      eventTime: {json: /at, lateness: 2h}
    - name: rows
      files: {path: rows, format: csv, csv: {delimiter: ";", columns: [a, b]}}
      attach: [path]
    - name: orders
      generator: {seed: 9223372036854775807, rate: 10}
  transforms:
    - name: clean
      from: [flights, rows]
      module: ./clean.wasm
      config: {min: 100, "é": 1.50}
  sinks:
    - name: lake
      from: [clean.flights, orders]
      files: {path: out, format: parquet, schema: {z: string, a: "decimal(9,2)"}, partitionBy: [z]}
    - name: dead
      stdout: {}
  errors: {policy: dead-letter, deadLetters: dead}
`

func revisionInputs() RevisionInputs {
	return RevisionInputs{
		ABI: 1, Semantics: 1, Groups: 64,
		Modules: map[string]ModuleInputs{"clean": {
			SHA256: strings.Repeat("ab", 32), Image: strings.Repeat("cd", 32),
			Manifest: &abi.Manifest{
				ABI: 1, Name: "clean", Version: "1.0.0",
				Inputs:  []abi.InputPort{{Name: "in", Content: "json", Fields: []string{"/a"}}},
				Outputs: []abi.OutputPort{{Name: "flights", Content: "json"}, {Name: "late"}},
				Tables:  []abi.Table{{Name: "counts"}},
			},
		}},
	}
}

func revisionOf(t *testing.T, text string, in RevisionInputs) ([]byte, string) {
	t.Helper()
	j, err := Parse("job.yaml", []byte(text), testEnv())
	if j == nil {
		t.Fatal(err)
	}
	b, digest, err := j.Revision(in)
	if err != nil {
		t.Fatal(err)
	}
	return b, digest
}

// TestRevisionIsStable pins the bytes: another binary must come to the same digest for the same job.
func TestRevisionIsStable(t *testing.T) {
	b, digest := revisionOf(t, revised, revisionInputs())
	golden(t, filepath.Join("testdata", "revision.json"), append(b, '\n'))
	golden(t, filepath.Join("testdata", "revision.sha256"), []byte(digest+"\n"))
	canonical, err := abi.CanonicalJSON(b)
	if err != nil || !bytes.Equal(canonical, b) {
		t.Errorf("the revision is not canonical: %v", err)
	}
}

// TestRevisionIgnores what does not shape output.
func TestRevisionIgnores(t *testing.T) {
	_, want := revisionOf(t, revised, revisionInputs())
	for name, change := range map[string][2]string{
		"the job's name":   {"name: revised", "name: other"},
		"the checkpoint":   {"checkpoint: ckpt", "checkpoint: other"},
		"the trigger":      {"  sources:", "  trigger: {interval: 5s}\n  sources:"},
		"paths":            {"path: in,", "path: in2,"},
		"a rate":           {"rate: 10", "rate: 11"},
		"batch limits":     {"      attach: [path]", "      batch: {maxRecords: 7}\n      attach: [path]"},
		"log limits":       {"      config", "      limits: {log: 1MiB}\n      config"},
		"connections":      {"  sources:", "  connections: {main: {kafka: {brokers: [\"b:9092\"], sasl: {mechanism: plain, username: u, password: \"${file:/run/secrets/password}\"}}}}\n  sources:"},
		"part sizes":       {"partitionBy: [z]", "partitionBy: [z], maxPartRows: 10"},
		"the module's ref": {"./clean.wasm", "./other/clean.wasm"},
		"config order":     {`{min: 100, "é": 1.50}`, `{"é": 1.5, "min": 0x64}`},
	} {
		text := strings.Replace(revised, change[0], change[1], 1)
		if text == revised {
			t.Fatalf("%s: nothing changed", name)
		}
		if b, got := revisionOf(t, text, revisionInputs()); got != want {
			t.Errorf("%s changes the revision to %s", name, b)
		}
	}
}

func TestRevisionHoldsNoSecret(t *testing.T) {
	text := strings.Replace(revised, "  sources:", "  connections: {main: {kafka: {brokers: [\"b:9092\"], sasl: {mechanism: plain, username: u, password: \"${file:/run/secrets/password}\"}}}}\n  sources:", 1)
	j, err := Parse("job.yaml", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(j.Connections[0].Settings), "s3cret") {
		t.Fatal("the connection has no password")
	}
	b, _, err := j.Revision(revisionInputs())
	if err != nil || strings.Contains(string(b), "s3cret") {
		t.Errorf("the revision holds the password, or failed: %v", err)
	}
}

// TestRevisionOfTopics: what is read and how counts, where it lies does not.
func TestRevisionOfTopics(t *testing.T) {
	const text = "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: t}\nspec:\n  checkpoint: c\n" +
		"  connections: {main: {kafka: {brokers: [\"b:9092\"]}}, other: {kafka: {brokers: [\"c:9092\"]}}}\n" +
		"  sources: [{name: s, kafka: {connection: main, topics: [orders]}}]\n  sinks: [{name: o, from: [s], stdout: {}}]\n"
	b, want := revisionOf(t, text, RevisionInputs{})
	if !strings.Contains(string(b), `"sources":{"s":{"eventTime":null,"format":"kafka"}}`) {
		t.Errorf("the revision is %s", b)
	}
	for change, same := range map[string]bool{
		"connection: other, topics: [orders]": true, "connection: main, topics: [orders, refunds]": true,
		"connection: main, pattern: orders, group: g, onDataLoss: skip, from: latest": true,
		"connection: main, topics: [orders], isolation: read_uncommitted":             false,
	} {
		_, got := revisionOf(t, strings.Replace(text, "connection: main, topics: [orders]", change, 1), RevisionInputs{})
		if (got == want) != same {
			t.Errorf("%s: the revision is the same: %t", change, got == want)
		}
	}
}

func TestRevisionNeedsModules(t *testing.T) {
	j, err := Parse("job.yaml", []byte(revised), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Revision(RevisionInputs{}); err == nil || !strings.Contains(err.Error(), `transform "clean"`) {
		t.Errorf("error %v", err)
	}
}

func TestCompare(t *testing.T) {
	edit := func(old, now string) func(*string, *RevisionInputs) {
		return func(text *string, _ *RevisionInputs) {
			if !strings.Contains(*text, old) {
				panic("no " + old)
			}
			*text = strings.Replace(*text, old, now, 1)
		}
	}
	module := func(change func(*ModuleInputs)) func(*string, *RevisionInputs) {
		return func(_ *string, in *RevisionInputs) {
			m := in.Modules["clean"]
			manifest := *m.Manifest
			m.Manifest = &manifest
			change(&m)
			in.Modules["clean"] = m
		}
	}
	for name, tt := range map[string]struct {
		change func(*string, *RevisionInputs)
		want   []string // severity and path
	}{
		"nothing":           {func(*string, *RevisionInputs) {}, nil},
		"semantics":         {func(_ *string, in *RevisionInputs) { in.Semantics = 2 }, []string{"compatible semantics"}},
		"abi and groups":    {func(_ *string, in *RevisionInputs) { in.ABI, in.Groups = 2, 128 }, []string{"compatible abi", "needs-consent groups"}},
		"lanes":             {edit("  sources:", "  lanes: 8\n  sources:"), []string{"compatible lanes"}},
		"errors":            {edit("deadLetters: dead}", "deadLetters: dead, max: 5}"), []string{"compatible errors"}},
		"new source":        {edit("    - name: rows", "    - {name: more, generator: {}}\n    - name: rows"), []string{"compatible sources.more"}},
		"renamed source":    {func(text *string, _ *RevisionInputs) { *text = strings.ReplaceAll(*text, "orders", "other") }, []string{"needs-consent sources.orders", "compatible sources.other", "compatible sinks.lake.from"}},
		"source format":     {edit("path: in, format: jsonl", "path: in, format: lines"), []string{"needs-consent sources.flights.format"}},
		"source details":    {edit("      attach: [path]\n", "      eventTime: {json: /a}\n"), []string{"compatible sources.rows.attach", "compatible sources.rows.eventTime"}},
		"csv":               {edit(`delimiter: ";"`, `delimiter: "|"`), []string{"compatible sources.rows.csv"}},
		"compression":       {edit("path: in, format: jsonl", "path: in, format: jsonl, compression: gzip"), []string{"compatible sources.flights.compression"}},
		"seed":              {edit("seed: 9223372036854775807", "seed: 8"), []string{"compatible sources.orders.generator"}},
		"lateness":          {edit("lateness: 2h", "lateness: 3h"), []string{"compatible sources.flights.eventTime"}},
		"config":            {edit("min: 100", "min: 101"), []string{"compatible transforms.clean.config"}},
		"limits":            {edit("      config", "      limits: {memory: 1MiB}\n      config"), []string{"compatible transforms.clean.limits"}},
		"from":              {edit("from: [flights, rows]", "from: [rows, flights]"), []string{"compatible transforms.clean.from"}},
		"keyBy":             {edit("from: [flights, rows]", "from: [flights, {input: rows, keyBy: {json: /a}}]"), []string{"needs-consent transforms.clean.keyBy"}},
		"code":              {module(func(m *ModuleInputs) { m.SHA256, m.Image = strings.Repeat("1", 64), "2" }), []string{"compatible transforms.clean.module"}},
		"image":             {module(func(m *ModuleInputs) { m.Image = "2" }), []string{"compatible transforms.clean.image"}},
		"lost table":        {module(func(m *ModuleInputs) { m.Manifest.Tables = nil }), []string{"needs-consent transforms.clean.tables.counts"}},
		"new sink":          {edit("    - name: dead\n", "    - {name: more, from: [orders], stdout: {}}\n    - name: dead\n"), []string{"compatible sinks.more"}},
		"renamed sink":      {edit("name: lake", "name: pond"), []string{"needs-consent sinks.lake", "compatible sinks.pond"}},
		"sink format":       {edit("format: parquet", "format: csv"), []string{"needs-consent sinks.lake.format"}},
		"sink mode":         {edit("      files: {path: out", "      mode: upsert\n      files: {path: out"), []string{"needs-consent sinks.lake.mode"}},
		"partitions":        {edit(", partitionBy: [z]", ""), []string{"needs-consent sinks.lake.partitionBy"}},
		"new column":        {edit("{z: string,", "{z: string, n: int32,"), []string{"compatible sinks.lake.schema.n"}},
		"lost column":       {edit(`, a: "decimal(9,2)"}, partitionBy: [z]`, `, b: int32}, partitionBy: [z]`), []string{"needs-consent sinks.lake.schema.a", "compatible sinks.lake.schema.b"}},
		"column type":       {edit("decimal(9,2)", "decimal(10,2)"), []string{"needs-consent sinks.lake.schema.a"}},
		"schema altogether": {edit(`format: parquet, schema: {z: string, a: "decimal(9,2)"}, partitionBy: [z]`, "format: jsonl"), []string{"needs-consent sinks.lake.format", "needs-consent sinks.lake.partitionBy", "needs-consent sinks.lake.schema"}},
		"renamed transform": {edit("    - name: clean\n", "    - name: other\n"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := revisionOf(t, revised, revisionInputs())
			text, in := revised, revisionInputs()
			tt.change(&text, &in)
			if name == "renamed transform" {
				in.Modules["other"] = in.Modules["clean"]
				text = strings.Replace(text, "clean.flights", "other.flights", 1)
				tt.want = []string{"needs-consent transforms.clean", "compatible transforms.other", "compatible sinks.lake.from"}
			}
			after, _ := revisionOf(t, text, in)
			changes, err := Compare(before, after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, string(c.Severity)+" "+c.Path)
				if c.What == "" {
					t.Errorf("%s says nothing", c.Path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompareMissesNothing: different bytes never compare as equal.
func TestCompareMissesNothing(t *testing.T) {
	before, _ := revisionOf(t, revised, revisionInputs())
	after := bytes.Replace(before, []byte(`"abi":1`), []byte(`"abi":1,"later":2`), 1)
	changes, err := Compare(before, after)
	if err != nil || len(changes) != 1 {
		t.Errorf("%v, %v", changes, err)
	}
	if _, err := Compare(before, []byte("{")); !errors.Is(err, ErrNoRevision) {
		t.Errorf("error %v", err)
	}
}

func TestCheckModules(t *testing.T) {
	j, err := Parse("job.yaml", []byte(revised), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(inputs int, outputs ...string) map[string]*abi.Manifest {
		m := &abi.Manifest{}
		for range inputs {
			m.Inputs = append(m.Inputs, abi.InputPort{Name: "in"})
		}
		for _, o := range outputs {
			m.Outputs = append(m.Outputs, abi.OutputPort{Name: o})
		}
		return map[string]*abi.Manifest{"clean": m}
	}
	for name, tt := range map[string]struct {
		manifests map[string]*abi.Manifest
		want      []string
	}{
		"fits one input":  {manifest(1, "flights", "late"), nil},
		"fits two inputs": {manifest(2, "flights"), nil},
		"unknown module":  {nil, nil},
		"three inputs":    {manifest(3, "flights"), []string{`job.yaml:17:7: spec.transforms[0].from: the module ./clean.wasm has 3 inputs (in, in, in), and from has 2 entries; they match by position`}},
		"misspelt port":   {manifest(1, "flight"), []string{`job.yaml:22:14: spec.sinks[0].from[0]: the module of clean has no output "flights"; did you mean "clean.flight"?`}},
		"another port":    {manifest(1, "a", "b"), []string{`job.yaml:22:14: spec.sinks[0].from[0]: the module of clean has no output "flights"; there are clean.a, clean.b`}},
		"no outputs":      {manifest(1), []string{`job.yaml:22:14: spec.sinks[0].from[0]: the module of clean has no outputs`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := j.CheckModules(tt.manifests); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
