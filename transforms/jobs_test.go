package transforms

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// programs is where the built program lies; "" until it is built.
var programs string

// builtProgram builds wasmill once, and returns where it lies.
var builtProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wasmill-transforms-")
	if err != nil {
		return "", err
	}
	programs = dir
	program := filepath.Join(dir, "wasmill")
	if text, err := exec.Command("go", "build", "-o", program, "../cli/wasmill").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build wasmill: %w\n%s", err, text)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if programs != "" {
		_ = os.RemoveAll(programs)
	}
	os.Exit(code)
}

// wasmill runs the program; a test ends when it fails.
func wasmill(t *testing.T, args ...string) string {
	t.Helper()
	program, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("wasmill %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// stockConfigs are a configuration for each stock transform, to try it out with.
var stockConfigs = map[string]string{
	"aggregate": `{"key":"k","aggregates":[{"n":"count"}]}`,
	"dedup":     `{"within":"10s"}`,
	"filter":    `{"where":"/a is not null","else":true}`,
	"join":      `{"type":"full","within":{"before":"10s","after":"10s"}}`,
	"lookup":    `{"missing":"wait"}`,
	"map":       `{"set":{"/b":"text(/a)"},"drop":["/c"]}`,
	"session":   `{"gap":"10s","key":"k","aggregates":[{"n":"count"}]}`,
	"sliding":   `{"size":"10s","slide":"2s","key":"k","aggregates":[{"n":"count"}]}`,
	"top":       `{"n":3,"order":"/a desc"}`,
	"tumbling":  `{"size":"10s","key":"k","aggregates":[{"n":"count"}]}`,
}

func TestStockModulesPassTheCheck(t *testing.T) {
	for _, name := range StockNames() {
		t.Run(name, func(t *testing.T) {
			text := wasmill(t, "transform", "check", "stock:"+name, "--config", stockConfigs[name])
			if strings.Contains(text, "fail ") || !strings.Contains(text, "runs alike on compiler and interpreter") {
				t.Error(text)
			}
		})
	}
}

// stockJob is a job over files of JSON lines. %d are lanes and records a batch.
type stockJob struct {
	lanes, records int
	dir            string
}

// run writes the job with these sources and transforms, and runs it over what there is. Each output goes to a folder of its
// name; those that are updated as changes.
func (j *stockJob) run(t *testing.T, sources, transforms string, outputs, updated []string) {
	t.Helper()
	var sinks strings.Builder
	for _, o := range outputs {
		mode := "append"
		if slices.Contains(updated, o) {
			mode = "changelog"
		}
		fmt.Fprintf(&sinks, "    - {name: %s, from: [%s], mode: %s, files: {path: ./out/%s, format: jsonl}}\n", strings.ReplaceAll(o, ".", "-"), o, mode, o)
	}
	text := fmt.Sprintf(`apiVersion: wasmill/v1
kind: Job
metadata: {name: stock}
spec:
  checkpoint: ./checkpoint
  lanes: %d
  trigger: {availableNow: true}
  sources:
%s
  transforms:
%s
  sinks:
%s
    - {name: dead, files: {path: ./out/dead, format: jsonl}}
  errors: {policy: dead-letter, deadLetters: dead}
`, j.lanes, strings.ReplaceAll(sources, "RECORDS", fmt.Sprint(j.records)), transforms, sinks.String())
	file := filepath.Join(j.dir, "job.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wasmill(t, "run", file)
}

// put writes an input file.
func (j *stockJob) put(t *testing.T, path string, lines ...string) {
	t.Helper()
	file := filepath.Join(j.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rows are the lines of an output, sorted.
func (j *stockJob) rows(t *testing.T, output string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(j.dir, "out", output, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	slices.Sort(rows)
	return rows
}

func (j *stockJob) want(t *testing.T, output string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := j.rows(t, output); !slices.Equal(got, want) {
		t.Errorf("%s with %d lanes and %d records a batch:\n got %s\nwant %s", output, j.lanes, j.records, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

const stockSources = `    - {name: airlines, files: {path: ./airlines, format: jsonl}}
    - {name: left, files: {path: ./left, format: jsonl}, eventTime: {json: /at, unit: s, lateness: 2s}, batch: {maxRecords: RECORDS}}
    - {name: right, files: {path: ./right, format: jsonl}, eventTime: {json: /at, unit: s, lateness: 2s}, batch: {maxRecords: RECORDS}}`

const stockTransforms = `    - {name: cheap, from: [left], module: "stock:filter", config: {where: "/p < 100", else: true}}
    - {name: text, from: [cheap], module: "stock:map", config: {fields: [{k: /k}, {eur: "/p * 0.92"}]}}
    - {name: once, from: [{input: left, keyBy: {json: /k}}], module: "stock:dedup", config: {by: /p, within: 10s}}
    - {name: best, from: [{input: left, keyBy: {json: /k}}], module: "stock:top", config: {n: 2, order: ["/p desc", /id], rank: r}}
    - name: pair
      from: [{input: left, keyBy: {json: /k}}, {input: right, keyBy: {json: /k}}]
      module: stock:join
      config: {type: full, within: {before: 3s, after: 1s}, fields: [{l: left/id}, {r: right/id}]}
    - name: named
      from: [{input: airlines, keyBy: {json: /k}}, {input: left, keyBy: {json: /k}}]
      module: stock:lookup
      config: {missing: wait, fields: [stream/id, table/name]}`

// TestStockJobs runs all of them in one job, over two runs of the program with state between them, for several batch sizes and
// lanes: the result hangs on none of these.
func TestStockJobs(t *testing.T) {
	for _, j := range []*stockJob{{lanes: 1, records: 1000}, {lanes: 4, records: 1000}, {lanes: 4, records: 2}, {lanes: 1, records: 1}} {
		t.Run(fmt.Sprintf("%d lanes, %d records", j.lanes, j.records), func(t *testing.T) {
			j.dir = t.TempDir()
			outputs := []string{"text", "cheap.else", "once", "once.late", "best", "pair", "pair.late", "named"}
			j.put(t, "airlines/1.jsonl", `{"k":"a","name":"Alpha"}`)
			j.put(t, "left/1.jsonl", `{"id":1,"k":"a","p":10,"at":100}`, `{"id":2,"k":"b","p":20.5,"at":101}`, `{"id":3,"k":"a","p":10.0,"at":102}`, `{"id":4,"k":"a","p":300,"at":103}`, `{"id":5,"k":"b","p":"x","at":103}`)
			j.put(t, "right/1.jsonl", `{"id":11,"k":"a","at":99}`, `{"id":12,"k":"b","at":103}`)
			j.run(t, stockSources, stockTransforms, outputs, []string{"best"})
			j.put(t, "airlines/2.jsonl", `{"k":"b","name":"Beta"}`)
			j.put(t, "left/2.jsonl", `{"id":6,"k":"a","p":10,"at":104}`, `{"id":7,"k":"b","p":99,"at":130}`, `{"id":8,"k":"a","p":10,"at":131}`)
			j.put(t, "right/2.jsonl", `{"id":13,"k":"b","at":102}`, `{"id":14,"k":"b","at":131}`)
			j.run(t, strings.ReplaceAll(stockSources, "lateness: 2s}", "lateness: 2s, complete: true}"), stockTransforms, outputs, []string{"best"})

			j.want(t, "text", `{"k":"a","eur":9.20}`, `{"k":"a","eur":9.20}`, `{"k":"a","eur":9.200}`, `{"k":"a","eur":9.20}`, `{"k":"b","eur":18.860}`, `{"k":"b","eur":91.08}`)
			j.want(t, "cheap.else", `{"id":4,"k":"a","p":300,"at":103}`)
			j.want(t, "once", `{"id":1,"k":"a","p":10,"at":100}`, `{"id":2,"k":"b","p":20.5,"at":101}`, `{"id":4,"k":"a","p":300,"at":103}`, `{"id":5,"k":"b","p":"x","at":103}`,
				`{"id":7,"k":"b","p":99,"at":130}`, `{"id":8,"k":"a","p":10,"at":131}`)
			j.want(t, "once.late")
			j.want(t, "pair", `{"l":1,"r":11}`, `{"l":2,"r":13}`, `{"l":3,"r":11}`, `{"l":4,"r":null}`, `{"l":5,"r":13}`, `{"l":5,"r":12}`, `{"l":6,"r":null}`, `{"l":7,"r":14}`, `{"l":8,"r":null}`)
			j.want(t, "pair.late")
			j.want(t, "named", `{"id":1,"name":"Alpha"}`, `{"id":3,"name":"Alpha"}`, `{"id":4,"name":"Alpha"}`, `{"id":6,"name":"Alpha"}`, `{"id":8,"name":"Alpha"}`,
				`{"id":2,"name":"Beta"}`, `{"id":5,"name":"Beta"}`, `{"id":7,"name":"Beta"}`)
			best := j.rows(t, "best")
			for _, row := range []string{`{"id":4,"k":"a","p":300,"at":103,"r":1}`, `{"id":5,"k":"b","p":"x","at":103,"r":1}`, `{"id":7,"k":"b","p":99,"at":130,"r":2}`} {
				if !slices.Contains(best, row) {
					t.Errorf("best has no %s: %s", row, best)
				}
			}
			dead := j.rows(t, "dead")
			if len(dead) != 1 || !strings.Contains(dead[0], "where, column 1: /p is") {
				t.Errorf("dead letters: %s", dead)
			}
		})
	}
}
