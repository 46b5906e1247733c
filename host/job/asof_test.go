package job

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// TestAsOfGivesTheOldRevisionBack: whatever may change in between, the job as of a revision has that revision.
func TestAsOfGivesTheOldRevisionBack(t *testing.T) {
	for name, change := range map[string][2]string{
		"nothing":          {"name: revised", "name: revised"},
		"lanes":            {"  sources:", "  lanes: 8\n  sources:"},
		"event time":       {"lateness: 2h", "lateness: 3h"},
		"idle":             {"lateness: 2h", "lateness: 2h, idle: 5s"},
		"config":           {"min: 100", "min: 101"},
		"the module":       {"./clean.wasm", "./other.wasm"},
		"limits":           {"      config", "      limits: {memory: 1MiB}\n      config"},
		"inputs":           {"from: [flights, rows]", "from: [rows]"},
		"what sinks take":  {"from: [clean.flights, orders]", "from: [flights]"},
		"errors":           {"deadLetters: dead}", "deadLetters: dead, max: 7}"},
		"paths":            {"path: out,", "path: out2,"},
		"a further source": {"    - name: orders", "    - {name: more, generator: {}}\n    - name: orders"},
		"a new transform":  {"  sinks:", "    - {name: more, from: [clean], module: ./m.wasm}\n  sinks:"},
	} {
		t.Run(name, func(t *testing.T) {
			before, digest := revisionOf(t, revised, revisionInputs())
			if !strings.Contains(revised, change[0]) {
				t.Fatalf("nothing to change")
			}
			now, err := Parse("job.yaml", []byte(strings.Replace(revised, change[0], change[1], 1)), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			old, err := now.AsOf(before)
			if err != nil {
				t.Fatal(err)
			}
			b, got, err := old.Revision(revisionInputs())
			if err != nil || got != digest {
				t.Errorf("%v\n got %s\nwant %s", err, b, before)
			}
			if m := old.Transforms[0].Module; m.SHA256 != strings.Repeat("ab", 32) || m.Path != "" {
				t.Errorf("the module is %+v, not the one that ran", m)
			}
			if old.Checkpoint != now.Checkpoint || old.Sinks[0].Files.Path != now.Sinks[0].Files.Path {
				t.Errorf("paths are not those of now")
			}
		})
	}
}

func TestAsOfKeepsKeys(t *testing.T) {
	text := strings.Replace(revised, "from: [flights, rows]", "from: [{input: flights, keyBy: {header: h}}, {input: rows, keyBy: {json: [/a, /b]}}]", 1)
	before, digest := revisionOf(t, text, revisionInputs())
	j, err := Parse("job.yaml", []byte(revised), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	old, err := j.AsOf(before)
	if err != nil {
		t.Fatal(err)
	}
	if b, got, err := old.Revision(revisionInputs()); err != nil || got != digest {
		t.Errorf("%v\n got %s\nwant %s", err, b, before)
	}
}

func TestAsOfRefuses(t *testing.T) {
	before, _ := revisionOf(t, revised, revisionInputs())
	for name, tt := range map[string]struct{ old, now, want string }{
		"another source format": {"path: in, format: jsonl", "path: in, format: lines", "source flights has another format"},
		"another seed":          {"seed: 9223372036854775807", "seed: 1", "source orders has another format"},
		"a lost source":         {"orders", "bought", "a source that it read is no longer in the job"},
		"another schema":        {"decimal(9,2)", "decimal(8,2)", "sink lake has another schema"},
		"a renamed sink":        {"name: lake", "name: pond", "sink lake, which it wrote to, is no longer in the job"},
		"a lost sink":           {"    - name: dead\n      stdout: {}\n  errors: {policy: dead-letter, deadLetters: dead}\n", "", "sink dead, which it wrote to, is no longer in the job"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := Parse("job.yaml", []byte(strings.ReplaceAll(revised, tt.old, tt.now)), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.AsOf(before); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	j, err := Parse("job.yaml", []byte(revised), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"transforms":[{"name":"x"}],"sources":{"flights":{"format":"jsonl"}}}`} {
		if _, err := j.AsOf([]byte(text)); err == nil {
			t.Errorf("%q is taken for a revision", text)
		}
	}
}

// TestAsOfTakesTheLogLimitOfNow: no revision holds it.
func TestAsOfTakesTheLogLimitOfNow(t *testing.T) {
	before, _ := revisionOf(t, revised, revisionInputs())
	for _, tt := range []struct {
		name string
		edit *strings.Replacer
		want int64
	}{
		{"the default", strings.NewReplacer(), 64 << 10},
		{"raised", strings.NewReplacer("      config", "      limits: {log: 1MiB}\n      config"), 1 << 20},
		{"a transform that is gone", strings.NewReplacer("name: clean", "name: other", "clean.flights", "other.flights"), 0},
	} {
		text := tt.edit.Replace(revised)
		now, err := Parse("job.yaml", []byte(text), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		old, err := now.AsOf(before)
		if err != nil {
			t.Fatal(err)
		}
		if l := old.Transforms[0].Limits; l.Log != tt.want || l.Memory != 64<<20 {
			t.Errorf("%s: limits %+v", tt.name, l)
		}
	}
}

// TestAsOfLinesAsTheyAre: a jsonl sink without a schema that took no binary rows has none as of then either, also when it takes
// such rows now.
func TestAsOfLinesAsTheyAre(t *testing.T) {
	const text = `apiVersion: wasmill/v1
kind: Job
metadata: {name: j}
spec:
  checkpoint: ./c
  sources: [{name: a, files: {path: ./in, format: jsonl}}]
  transforms: [{name: t, from: [a], module: ./m.wasm}]
  sinks: [{name: s, from: [t], files: {path: out, format: jsonl}}]
`
	in := RevisionInputs{Modules: map[string]ModuleInputs{"t": {Manifest: &abi.Manifest{Inputs: []abi.InputPort{{Name: "in"}}, Outputs: []abi.OutputPort{{Name: "out"}}}}}}
	before, digest := revisionOf(t, text, in)
	for name, rows := range map[string]int{"lines now": 0, "rows now": abi.RowsVersion} {
		now, err := Parse("job.yaml", []byte(text), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		now.TakeColumns(map[string]ModuleFacts{"t": {Manifest: &abi.Manifest{Outputs: []abi.OutputPort{{Name: "out", Rows: rows, Columns: "id: int64"}}}}})
		if took := now.Sinks[0].Columns() != nil; took != (rows > 0) {
			t.Fatalf("%s: the sink has columns: %t", name, took)
		}
		old, err := now.AsOf(before)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := old.CheckModules(map[string]ModuleFacts{"t": {Manifest: in.Modules["t"].Manifest}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, got, err := old.Revision(in); err != nil || got != digest {
			t.Errorf("%s: another revision: %v", name, err)
		}
		if looked, err := now.WithColumns(before); err != nil || len(looked.Sinks) != 1 {
			t.Errorf("%s: a look leaves the sink out: %v", name, err)
		}
	}
}
