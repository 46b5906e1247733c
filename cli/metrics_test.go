package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
)

var update = flag.Bool("update", false, "write the golden files")

const metricsJob = `apiVersion: wasmill/v1
kind: Job
metadata: {name: measured}
spec:
  checkpoint: ./checkpoint
  sources: [{name: orders, generator: {}}]
  transforms:
    - {name: first, from: [orders], module: ./first.wasm}
    - {name: second, from: [first], module: ./second.wasm, limits: {memory: 1MiB, fuel: {call: 5000, record: 7}, depth: 99, output: 2MiB, log: 3KiB}}
  sinks: [{name: screen, from: [second], stdout: {}}]
`

func measuredJob(t *testing.T) *job.Job {
	t.Helper()
	j, err := job.Parse("job.yaml", []byte(metricsJob), job.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func measuredBatch(id checkpoint.BatchID, n int64) engine.BatchStats {
	return engine.BatchStats{
		Batch: id, TimeMS: 1_767_225_600_000 + int64(id)*1000, Digest: strings.Repeat("d", 32), Total: time.Second,
		Sources: []engine.SourceStats{{Name: "orders", Records: 10 * n}}, Sinks: []engine.SinkStats{{Name: "screen", Records: 7 * n}},
		Steps: map[engine.Step]time.Duration{engine.StepRun: 500 * time.Millisecond},
		Stages: []engine.StageStats{
			{
				Name: "first", Records: 10 * n, Emitted: 8 * n, Instances: 4, Calls: 9, Fuel: 1_000_000 * uint64(n), Output: 800 * n,
				Log: 55, Lost: 2, Memory: (10 - n) << 16, Traps: map[abi.TrapName]int64{abi.TrapFuel: n, abi.TrapDivide: 1},
			},
			{Name: "second", Records: 8 * n, Emitted: 7 * n, Instances: 4, Calls: 8, Fuel: 5, Output: 700 * n, Memory: 1 << 16},
		},
	}
}

// TestMetrics holds what is exported to a golden file: names, help, types, labels and values, in their order.
func TestMetrics(t *testing.T) {
	j := measuredJob(t)
	m := newMetrics(j, "compiler", newStateWatch(j))
	m.batch(measuredBatch(0, 1))
	m.lags.told("orders", []pipeline.Lag{{Topic: "orders", Partition: 0, From: 3, Offset: 10, End: 50}, {Topic: "orders", Partition: 11, From: 7, Offset: 9, End: 9}})
	m.batch(measuredBatch(1, 2))
	m.lags.told("more", []pipeline.Lag{{Topic: "more", From: 5, Offset: 8, End: 8}}) // not sealed
	m.verify(nil)
	m.verify(errors.New("they differ"))
	m.recovered(engine.Recovery{Rung: "done"})
	m.warning()
	s, err := listen(t.Context(), "127.0.0.1:0", m, newStatus("compiler", time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	goldenScrape(t, s, "metrics.golden")
}

// goldenScrape holds what is exported to a golden file.
func goldenScrape(t *testing.T, s *server, name string) {
	t.Helper()
	got := scrape(t, s)
	if again := scrape(t, s); !bytes.Equal(again, got) {
		t.Error("two scrapes of the same differ")
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("what is exported (-want +got):\n%s", diff)
	}
}

var ownMetric = regexp.MustCompile(`^(# (HELP|TYPE) )?wasmill_`)

// scrape returns our own metrics, as a Prometheus server gets them, without the program's version.
func scrape(t *testing.T, s *server) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	var own bytes.Buffer
	for line := range bytes.Lines(text) {
		if ownMetric.Match(line) {
			own.Write(bytes.Replace(line, []byte(strconv.Quote(buildVersions().Version)), []byte(`"VERSION"`), 1))
		}
	}
	return own.Bytes()
}

// TestSourceLags: what is planned counts as behind until it is sealed, and partitions that are gone leave nothing behind.
func TestSourceLags(t *testing.T) {
	var none *sourceLags
	if n, known := none.behind(); n != 0 || known {
		t.Error("nobody has told, and it is known")
	}
	l := newSourceLags(nil)
	want := func(n int64, latest, average string) {
		t.Helper()
		text, metrics := l.spark("in")
		if got, known := l.behind(); got != n || !known || string(text) != latest || metrics["avgOffsetsBehindLatest"] != average {
			t.Errorf("%d behind, latest %s, %v", got, text, metrics)
		}
	}
	l.told("in", []pipeline.Lag{{Topic: "a", From: 10, Offset: 20, End: 30}, {Topic: "a", Partition: 1, From: 5, Offset: 5, End: 6}})
	want(21, `{"a":{"0":30,"1":6}}`, "5.5")
	l.batch()
	want(11, `{"a":{"0":30,"1":6}}`, "5.5")
	l.told("in", []pipeline.Lag{{Topic: "a", From: 20, Offset: 20, End: 20}})
	want(0, `{"a":{"0":20}}`, "0.0")
	if text, metrics := l.spark("files"); text != nil || metrics != nil {
		t.Errorf("a source that tells nothing: %s, %v", text, metrics)
	}
}

// TestJavaDouble holds texts to those of Java's Double.toString.
func TestJavaDouble(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0": 0, "1.0": 1, "0.5": 0.5, "0.001": 0.001, "5.0E-4": 0.0005, "123.25": 123.25, "9999999.0": 9_999_999, "1.0E7": 1e7, "1.25E9": 1.25e9,
	} {
		if got := javaDouble(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// TestMetricNames holds the names to Prometheus' rules: counters end with _total and nothing else does, times are in
// seconds, sizes in bytes.
func TestMetricNames(t *testing.T) {
	j := measuredJob(t)
	families, err := newMetrics(j, "compiler", newStateWatch(j)).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^wasmill_[a-z]+(_[a-z]+)*$`)
	checked := 0
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "wasmill_") {
			continue
		}
		checked++
		counter := f.GetType().String() == "COUNTER"
		if !form.MatchString(name) || counter != strings.HasSuffix(name, "_total") || f.GetHelp() == "" || strings.Contains(name, "milli") {
			t.Errorf("%s of type %s with help %q", name, f.GetType(), f.GetHelp())
		}
	}
	if checked < 20 {
		t.Errorf("only %d metrics are there before the first batch", checked)
	}
}

// TestTrapNames: the list of traps is all of them, so that none appears as a new series in the night.
func TestTrapNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "abi", "abi.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "TrapName" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, text)
		}
		return true
	})
	var got []string
	for _, name := range trapNames {
		got = append(got, string(name))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("the traps (-abi +metrics):\n%s", diff)
	}
}

// TestProgressOfTransforms: what transforms used stands in the progress, under wasmill, in topological order.
func TestProgressOfTransforms(t *testing.T) {
	var out bytes.Buffer
	p := &jsonProgress{w: &out, job: "measured"}
	p.batch(measuredBatch(0, 1))
	p.batch(engine.BatchStats{Batch: 1})
	var got struct {
		Wasmill struct {
			Transforms []map[string]any `json:"transforms"`
		} `json:"wasmill"`
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 2 || !bytes.Contains(lines[1], []byte(`"transforms":[]`)) {
		t.Fatalf("the progress is %s", out.Bytes())
	}
	if err := json.Unmarshal(lines[0], &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{
			"name": "first", "numInputRows": 10.0, "numOutputRows": 8.0, "instances": 4.0, "calls": 9.0, "fuel": 1e6, "memoryBytes": 9.0 * 65536,
			"outputBytes": 800.0, "logBytes": 55.0, "logLinesDropped": 2.0, "traps": map[string]any{"fuel": 1.0, "divide": 1.0},
		},
		{
			"name": "second", "numInputRows": 8.0, "numOutputRows": 7.0, "instances": 4.0, "calls": 8.0, "fuel": 5.0, "memoryBytes": 65536.0,
			"outputBytes": 700.0, "logBytes": 0.0, "logLinesDropped": 0.0,
		},
	}
	if diff := cmp.Diff(want, got.Wasmill.Transforms); diff != "" {
		t.Errorf("the transforms (-want +got):\n%s", diff)
	}
}

// TestProgressOfTopics: a Kafka source stands in the progress as Spark prints it.
func TestProgressOfTopics(t *testing.T) {
	var out bytes.Buffer
	lags := newSourceLags(nil)
	lags.told("in", []pipeline.Lag{{Topic: "orders", From: 0, Offset: 100, End: 150}, {Topic: "orders", Partition: 1, From: 7, Offset: 9, End: 9}})
	src := job.Source{Name: "in", Kafka: &job.KafkaSource{Topics: []string{"orders", "returns"}}}
	p := &jsonProgress{w: &out, job: "topics", sources: map[string]string{"in": describe(&src)}, lags: lags}
	p.batch(engine.BatchStats{Batch: 3, Total: 100 * time.Millisecond, Sources: []engine.SourceStats{{
		Name: "in", Records: 102, Start: checkpoint.Position{Line: `{"orders":{"0":0,"1":7}}`}, End: checkpoint.Position{Line: `{"orders":{"0":100,"1":9}}`},
	}}})
	const want = `"sources":[{"description":"KafkaV2[Subscribe[orders, returns]]","startOffset":{"orders":{"0":0,"1":7}},"endOffset":{"orders":{"0":100,"1":9}},` +
		`"latestOffset":{"orders":{"0":150,"1":9}},"numInputRows":102,"inputRowsPerSecond":0,"processedRowsPerSecond":1020,` +
		`"metrics":{"avgOffsetsBehindLatest":"25.0","maxOffsetsBehindLatest":"50","minOffsetsBehindLatest":"0"}}]`
	if !strings.Contains(out.String(), want) {
		t.Errorf("the progress is %s\nwithout  %s", out.String(), want)
	}
	src.Kafka = &job.KafkaSource{Pattern: "ev.*"}
	if got := describe(&src); got != "KafkaV2[SubscribePattern[ev.*]]" {
		t.Error(got)
	}
	l := lineProgress{now: time.Now, lags: lags}
	if text := l.text(0); !strings.HasSuffix(text, "   152 behind") {
		t.Error(text)
	}
}
