package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

// wired is a job whose transforms stand in the file in another order than data flows.
const wired = `apiVersion: wasmill/v1
kind: Job
metadata: {name: wired}
spec:
  lanes: 3
  checkpoint: ./checkpoint
  trigger: {availableNow: true}
  sources:
    - {name: a, files: {path: ./a, format: jsonl, onDataLoss: skip}, batch: {maxRecords: 10, maxBytes: 1MiB}}
    - {name: b, generator: {records: 5}, eventTime: {json: /at, unit: ms, lateness: 1s}}
  transforms:
    - {name: last, from: [split.odd, first, b], module: m.wasm}
    - {name: split, from: [first], module: m.wasm, limits: {fuel: {call: 7000, record: 8}}}
    - {name: aside, from: [b], module: m.wasm}
    - {name: first, from: [a, b], module: m.wasm}
  sinks:
    - {name: dead, stdout: {}}
    - {name: all, from: [last, a, split.odd], stdout: {}}
  errors: {policy: dead-letter, deadLetters: dead, max: 9}
`

func parseJob(t *testing.T, text string) *job.Job {
	t.Helper()
	j, err := job.Parse("job.yaml", []byte(text), job.Env{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// namedTarget is a target that only says its name.
type namedTarget struct {
	sink.Target
	id string
}

func partsOf(j *job.Job, ports map[string][]string) parts {
	p := parts{
		sources: map[string]source.Source{}, programs: map[string]sandbox.Program{}, modules: map[string]string{}, targets: map[string]sink.Target{},
	}
	for i := range j.Transforms {
		name := j.Transforms[i].Name
		outputs := ports[name]
		if outputs == nil {
			outputs = []string{"out"}
		}
		p.programs[name], p.modules[name] = manifestOnly{outputs: outputs}, "digest of "+name
	}
	for i := range j.Sinks {
		p.targets[j.Sinks[i].Name] = namedTarget{id: j.Sinks[i].Name}
	}
	return p
}

func TestWire(t *testing.T) {
	j := parseJob(t, wired)
	g, policy, err := wire(j, partsOf(j, map[string][]string{"split": {"even", "odd"}}))
	if err != nil {
		t.Fatal(err)
	}
	if g.Lanes != 3 || policy != (engine.ErrorPolicy{Policy: engine.DeadLetter, Sink: 0, Max: 9}) {
		t.Errorf("%d lanes, policy %+v", g.Lanes, policy)
	}
	var stages []string
	inputs := map[string][]engine.Edge{}
	for i := range g.Stages {
		s := &g.Stages[i]
		stages = append(stages, s.Name)
		inputs[s.Name] = s.Inputs
		if s.Module != "digest of "+s.Name || s.Program == nil {
			t.Errorf("stage %s has module %q, program %v", s.Name, s.Module, s.Program)
		}
	}
	for i := range g.Sinks {
		inputs[g.Sinks[i].Name] = g.Sinks[i].Inputs
		if got := g.Sinks[i].Target.(namedTarget).id; got != g.Sinks[i].Name {
			t.Errorf("sink %s has the target of %s", g.Sinks[i].Name, got)
		}
	}
	// The first of the file that is ready comes first: aside before first, which split and last wait for.
	if want := []string{"aside", "first", "split", "last"}; !slices.Equal(stages, want) {
		t.Fatalf("stages %v, want %v", stages, want)
	}
	a, b, first, odd := engine.FromSource(0), engine.FromSource(1), engine.FromPort(1, 0), engine.FromPort(2, 1)
	want := map[string][]engine.Edge{
		"aside": {b}, "first": {a, b}, "split": {first}, "last": {odd, first, b}, "dead": nil, "all": {engine.FromPort(3, 0), a, odd},
	}
	if d := cmp.Diff(want, inputs); d != "" {
		t.Errorf("inputs, in the order of from (-want +got):\n%s", d)
	}
	if got := g.Stages[2].Fuel; got != (engine.Fuel{Call: 7000, Record: 8}) {
		t.Errorf("fuel %+v", got)
	}
	if s := g.Sources[0]; s.Name != "a" || s.Limit != (source.Limit{Records: 10, Bytes: 1 << 20}) || !s.SkipLost || s.EventTime != nil {
		t.Errorf("source a: %+v", s)
	}
	if s := g.Sources[1]; s.Name != "b" || s.SkipLost || s.EventTime == nil || *s.EventTime != (engine.EventTime{Pointer: "/at", Unit: abi.TimeUnit("ms"), LatenessMS: 1000}) {
		t.Errorf("source b: %+v, %+v", s, s.EventTime)
	}
	if got, want := UnreadPorts(g), []string{"aside.out", "split.even"}; !slices.Equal(got, want) {
		t.Errorf("unread ports %v, want %v", got, want)
	}
}

// TestWireKeyed: keys and event time come to the engine as the job file has them. What has a time of its own has it also
// where nothing is said of it; files without a pointer have none.
func TestWireKeyed(t *testing.T) {
	j := parseJob(t, `apiVersion: wasmill/v1
kind: Job
metadata: {name: keyed}
spec:
  checkpoint: ./ck
  trigger: {availableNow: true}
  connections: {main: {kafka: {brokers: ["b:9092"]}}}
  sources:
    - {name: files, files: {path: in, format: jsonl}}
    - {name: timed, files: {path: on, format: jsonl}, eventTime: {json: /at, unit: s, lateness: 2s, idle: 1500ms, complete: true}}
    - {name: made, generator: {records: 5}}
    - {name: topic, kafka: {connection: main, topics: [t]}, eventTime: {timestamp: true, lateness: 1s}}
  transforms:
    - name: first
      from: [{input: files, keyBy: {json: [/a, /b]}}, {input: timed, keyBy: {header: h}}, {input: made, keyBy: {key: true}}, {input: topic, keyBy: {json: /a}}]
      module: ./m.wasm
    - {name: last, from: [first], module: ./m.wasm}
  sinks: [{name: all, from: [last], stdout: {}}]
`)
	g, _, err := wire(j, partsOf(j, nil))
	if err != nil {
		t.Fatal(err)
	}
	keys := []*engine.KeyBy{{JSON: []string{"/a", "/b"}}, {Header: "h"}, {Key: true}, {JSON: []string{"/a"}}}
	for i, e := range g.Stages[0].Inputs {
		if diff := cmp.Diff(keys[i], e.KeyBy); diff != "" || e.Source != i {
			t.Errorf("input %d (-want +got):\n%s", i, diff)
		}
	}
	times := []*engine.EventTime{nil, {Pointer: "/at", Unit: abi.TimeUnit("s"), LatenessMS: 2000, IdleMS: 1500, Complete: true}, {}, {LatenessMS: 1000}}
	for i := range g.Sources {
		if diff := cmp.Diff(times[i], g.Sources[i].EventTime); diff != "" {
			t.Errorf("event time of %s (-want +got):\n%s", g.Sources[i].Name, diff)
		}
	}
	if !g.Stages[0].Keyed() || g.Stages[1].Keyed() || !hasKeys(g) || len(UnreadPorts(g)) != 0 {
		t.Errorf("keyed %t and %t, unread %v", g.Stages[0].Keyed(), g.Stages[1].Keyed(), UnreadPorts(g))
	}
}

// TestWireRefuses what the job's own check has better words for.
func TestWireRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(j *job.Job)
		want   string
	}{
		"an unknown port of a transform": {func(j *job.Job) { j.Transforms[0].From[0].Port = "third" }, "wire split.third: there is no such port"},
		"an unknown port of a sink":      {func(j *job.Job) { j.Sinks[1].From[0].Port = "third" }, "wire last.third: there is no such port"},
		"an unknown name":                {func(j *job.Job) { j.Sinks[1].From[0].Name = "nobody" }, "wire nobody: there is no such source or transform"},
		"a cycle":                        {func(j *job.Job) { j.Transforms[3].From[0].Name = "last" }, "a cycle among them"},
		"nobody to wait for":             {func(j *job.Job) { j.Transforms[2].From[0].Name = "nobody" }, "a cycle among them"},
	} {
		t.Run(name, func(t *testing.T) {
			j := parseJob(t, wired)
			c.change(j)
			_, _, err := wire(j, partsOf(j, map[string][]string{"split": {"even", "odd"}}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestWireWithoutDeadLetters(t *testing.T) {
	j := parseJob(t, strings.Replace(strings.Split(wired, "  errors:")[0], "    - {name: dead, stdout: {}}\n", "", 1))
	g, policy, err := wire(j, partsOf(j, map[string][]string{"split": {"even", "odd"}}))
	if err != nil || policy.Sink != -1 || policy.Policy != engine.Stop || len(g.Sinks) != 1 {
		t.Errorf("%d sinks, policy %+v, %v", len(g.Sinks), policy, err)
	}
}
