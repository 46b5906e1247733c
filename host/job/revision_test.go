package job

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
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
				Tables:  []abi.Table{{Name: "counts", Type: abi.TableBytes}},
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
		"abi and groups":    {func(_ *string, in *RevisionInputs) { in.ABI, in.Groups = 2, 128 }, []string{"compatible abi", "impossible groups"}},
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
		"keyed":             {edit("from: [flights, rows]", "from: [{input: flights, keyBy: {key: true}}, {input: rows, keyBy: {json: /a}}]"), []string{"compatible transforms.clean.keyBy"}},
		"idle":              {edit("lateness: 2h", "lateness: 2h, idle: 5s"), []string{"compatible sources.flights.eventTime"}},
		"table type":        {module(func(m *ModuleInputs) { m.Manifest.Tables = []abi.Table{{Name: "counts", Type: abi.TableI64}} }), []string{"needs-consent transforms.clean.tables.counts"}},
		"renamed table":     {module(func(m *ModuleInputs) { m.Manifest.Tables = []abi.Table{{Name: "sums", Type: abi.TableBytes}} }), []string{"needs-consent transforms.clean.tables.counts", "compatible transforms.clean.tables.sums"}},
		"code":              {module(func(m *ModuleInputs) { m.SHA256, m.Image = strings.Repeat("1", 64), "2" }), []string{"compatible transforms.clean.module"}},
		"image":             {module(func(m *ModuleInputs) { m.Image = "2" }), []string{"compatible transforms.clean.image"}},
		"lost table":        {module(func(m *ModuleInputs) { m.Manifest.Tables = nil }), []string{"needs-consent transforms.clean.tables.counts"}},
		"new sink":          {edit("    - name: dead\n", "    - {name: more, from: [orders], stdout: {}}\n    - name: dead\n"), []string{"compatible sinks.more"}},
		"renamed sink":      {edit("name: lake", "name: pond"), []string{"needs-consent sinks.lake", "compatible sinks.pond"}},
		"sink format":       {edit("format: parquet", "format: csv"), []string{"needs-consent sinks.lake.format"}},
		"sink mode":         {edit("      stdout: {}", "      mode: upsert\n      stdout: {}"), []string{"needs-consent sinks.dead.mode"}},
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

const keyed = "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: t}\nspec:\n  checkpoint: c\n  sources: [{name: a, generator: {}}, {name: b, generator: {}}]\n" +
	"  transforms: [{name: count, from: [{input: a, keyBy: {json: [/x, /y]}}], module: ./m.wasm}, {name: thin, from: [count], module: ./f.wasm}]\n" +
	"  sinks: [{name: o, from: [thin], stdout: {}}]\n"

func keyedInputs() RevisionInputs {
	manifest := func(tables ...abi.Table) *abi.Manifest {
		return &abi.Manifest{Inputs: []abi.InputPort{{Name: "in"}}, Outputs: []abi.OutputPort{{Name: "out"}}, Tables: tables}
	}
	return RevisionInputs{Groups: 64, Modules: map[string]ModuleInputs{
		"count": {SHA256: "1", Manifest: manifest(abi.Table{Name: "counts", Type: abi.TableI64})}, "thin": {SHA256: "2", Manifest: manifest()},
	}}
}

// TestCompareKeyed: what leaves state behind needs the user's word, what takes it along does not.
func TestCompareKeyed(t *testing.T) {
	before, _ := revisionOf(t, keyed, keyedInputs())
	for name, tt := range map[string]struct {
		old, now string
		want     string
	}{
		"lanes":        {"  sources:", "  lanes: 8\n  sources:", "compatible lanes: 4 lanes become 8: output may come in another order; state goes along"},
		"another key":  {"json: [/x, /y]", "json: /x", "needs-consent transforms.count.keyBy: the key changes from /x+/y to /x: state kept under the old keys is not found again"},
		"the own key":  {"json: [/x, /y]", "key: true", "needs-consent transforms.count.keyBy: the key changes from /x+/y to the record's key: state kept under the old keys is not found again"},
		"no key":       {"{input: a, keyBy: {json: [/x, /y]}}", "a", "needs-consent transforms.count.keyBy: the stage has no keys any more: what it has kept, tables and timers, is deleted"},
		"one more":     {"from: [{input: a, keyBy: {json: [/x, /y]}}]", "from: [{input: a, keyBy: {json: [/x, /y]}}, {input: b, keyBy: {header: h}}]", "compatible transforms.count.from: it reads [a b] instead of [a]\ncompatible transforms.count.keyBy: more inputs, with keys of their own; state stays under the keys it has"},
		"another mode": {"from: [thin], stdout", "from: [thin], mode: changelog, stdout", "needs-consent sinks.o.mode: append becomes changelog, beside rows that are already there"},
		"stateless gone": {
			", {name: thin, from: [count], module: ./f.wasm}]\n  sinks: [{name: o, from: [thin]", "]\n  sinks: [{name: o, from: [count]",
			"compatible transforms.thin: the transform is gone\ncompatible sinks.o.from: it takes [count] instead of [thin]",
		},
		"stateful gone": {
			"{name: count, from: [{input: a, keyBy: {json: [/x, /y]}}], module: ./m.wasm}, {name: thin, from: [count]", "{name: thin, from: [a]",
			"needs-consent transforms.count: the transform is gone, and what it has kept, tables and timers, is deleted; under another name it begins empty\n" +
				"compatible transforms.thin.from: it reads [a] instead of [count]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(keyed, tt.old) {
				t.Fatal("nothing to change")
			}
			after, _ := revisionOf(t, strings.Replace(keyed, tt.old, tt.now, 1), keyedInputs())
			changes, err := Compare(before, after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, string(c.Severity)+" "+c.Path+": "+c.What)
			}
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
	stages, err := KeyedStages(before)
	want := []KeyedStage{{Name: "count", KeyBy: "/x+/y", Tables: []StateTable{{"counts", abi.TableI64}}}}
	if diff := cmp.Diff(want, stages); err != nil || diff != "" {
		t.Errorf("keyed stages (-want +got):\n%s%v", diff, err)
	}
	in := keyedInputs()
	in.Groups = 128
	after, _ := revisionOf(t, keyed, in)
	if changes, err := Compare(before, after); err != nil || len(changes) != 1 || changes[0].Severity != Impossible {
		t.Errorf("other key groups: %v, %v", changes, err)
	}
}

// TestCheckState: what keeps state is keyed, and what updates goes where updates are taken.
func TestCheckState(t *testing.T) {
	table := []abi.Table{{Name: "counts", Type: abi.TableI64}, {Name: "seen", Type: abi.TableBytes}}
	facts := func(updates, stateful bool, tables []abi.Table) ModuleFacts {
		return ModuleFacts{Stateful: stateful, Manifest: &abi.Manifest{
			Inputs: []abi.InputPort{{Name: "in"}}, Outputs: []abi.OutputPort{{Name: "out", Updates: updates}, {Name: "late"}}, Tables: tables,
		}}
	}
	bare := facts(false, false, nil)
	const unkey, unkeyed = "{input: a, keyBy: {json: [/x, /y]}}", "a"
	files := func(rest string) string { return "from: [thin], files: {path: out, " + rest + "}" }
	for name, tt := range map[string]struct {
		old, now    string
		count, thin ModuleFacts
		want        string
	}{
		"keyed with tables":   {"", "", facts(false, true, table), bare, ""},
		"keyed without":       {"", "", bare, bare, ""},
		"tables, no key":      {unkey, unkeyed, facts(false, false, table), bare, "job.yaml:7:30: spec.transforms[0].from: the module ./m.wasm has tables (counts, seen), and state is kept by key: give each entry of from a keyBy, as {input: a, keyBy: {json: /id}}"},
		"imports, no key":     {unkey, unkeyed, facts(false, true, nil), bare, "job.yaml:7:30: spec.transforms[0].from: the module ./m.wasm uses state, and state is kept by key: give each entry of from a keyBy, as {input: a, keyBy: {json: /id}}"},
		"updates to append":   {"from: [thin]", "from: [count]", facts(true, true, table), bare, "job.yaml:8:28: spec.sinks[0].from[0]: count gives updates, each in place of the earlier one of its key, and a sink with mode append would keep them all side by side; give the sink mode: upsert or mode: changelog"},
		"updates handed on":   {"", "", facts(true, true, table), bare, "job.yaml:8:28: spec.sinks[0].from[0]: thin passes on the updates of count, each in place of the earlier one of its key, and a sink with mode append would keep them all side by side; give the sink mode: upsert or mode: changelog"},
		"another port":        {"from: [thin]", "from: [count.late]", facts(true, true, table), bare, ""},
		"upsert":              {"from: [thin]", "from: [thin], mode: upsert", facts(true, true, table), bare, ""},
		"into jsonl":          {"from: [thin], stdout: {}", files("format: jsonl"), facts(true, true, table), bare, "job.yaml:8:28: spec.sinks[0].from[0]: thin passes on the updates of count, each in place of the earlier one of its key, and a sink with mode append would keep them all side by side; give the sink mode: changelog"},
		"into parquet":        {"from: [thin], stdout: {}", files("format: parquet, schema: {a: string}"), facts(true, true, table), bare, "job.yaml:8:28: spec.sinks[0].from[0]: thin passes on the updates of count, each in place of the earlier one of its key, and a sink with mode append would keep them all side by side; files of format jsonl take them with mode: changelog, tables with mode: upsert, kafka and stdout with both"},
		"resolved in a stage": {"from: [count], module: ./f", "from: [{input: count, keyBy: {key: true}}], module: ./f", facts(true, true, table), bare, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := Parse("job.yaml", []byte(strings.Replace(keyed, tt.old, tt.now, 1)), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := j.CheckModules(map[string]ModuleFacts{"count": tt.count, "thin": tt.thin}); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
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
	manifest := func(inputs int, outputs ...string) map[string]ModuleFacts {
		m := &abi.Manifest{}
		for range inputs {
			m.Inputs = append(m.Inputs, abi.InputPort{Name: "in"})
		}
		for _, o := range outputs {
			m.Outputs = append(m.Outputs, abi.OutputPort{Name: o})
		}
		return map[string]ModuleFacts{"clean": {Manifest: m}}
	}
	for name, tt := range map[string]struct {
		modules map[string]ModuleFacts
		want    []string
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
			if err := j.CheckModules(tt.modules); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompareStateConfig: a config that state depends on cannot change over it, whatever else of it may.
func TestCompareStateConfig(t *testing.T) {
	with := func(config string) string {
		return strings.Replace(keyed, "module: ./m.wasm}", "module: ./m.wasm, config: "+config+"}", 1)
	}
	in := keyedInputs()
	m := in.Modules["count"]
	m.Manifest.StateConfig = []string{"size", "by"}
	in.Modules["count"] = m
	before, _ := revisionOf(t, with(`{size: 10s, by: [a], note: x}`), in)
	for config, want := range map[string]string{
		`{size: 10s, by: [a], note: y}`: "compatible transforms.count.config",
		`{size: 20s, by: [a], note: x}`: "impossible transforms.count.config",
		`{by: [a], note: x}`:            "impossible transforms.count.config",
		`{size: 10s, by: [a, b]}`:       "impossible transforms.count.config",
	} {
		after, _ := revisionOf(t, with(config), in)
		changes, err := Compare(before, after)
		if err != nil || len(changes) != 1 || string(changes[0].Severity)+" "+changes[0].Path != want {
			t.Errorf("%s: %v, %v; want %s", config, changes, err, want)
		}
	}
	// New code may say so of what the old code did not name, and the other way round.
	for name, members := range map[string][]string{"new": {"size", "by", "note"}, "old": nil} {
		later := keyedInputs()
		m := later.Modules["count"]
		m.Manifest.StateConfig = members
		later.Modules["count"] = m
		after, _ := revisionOf(t, with(`{size: 9s, by: [a], note: z}`), later)
		changes, err := Compare(before, after)
		if err != nil || len(changes) != 1 || changes[0].Severity != Impossible {
			t.Errorf("%s: %v, %v", name, changes, err)
		}
	}
	// Without keys there is no state.
	bare := strings.Replace(with(`{size: 9s}`), "{input: a, keyBy: {json: [/x, /y]}}", "a", 1)
	after, _ := revisionOf(t, bare, in)
	changes, err := Compare(before, after)
	if err != nil || slices.ContainsFunc(changes, func(c Change) bool { return c.Severity == Impossible }) {
		t.Errorf("a stage that loses its keys: %v, %v", changes, err)
	}
}
