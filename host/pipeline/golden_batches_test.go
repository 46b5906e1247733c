package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/statestore/mem"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenFile holds what every golden batch came to, under one number of the host's semantics.
const goldenFile = "testdata/golden/batches.json"

// goldenShare is the part of the batches that a short run takes, and pickVariable chooses which: a number, such as that of
// the commit, so that they all have their turn.
const (
	goldenShare  = 6
	pickVariable = "WASMILL_PICK"
)

// golden is one job over committed input with a committed module.
type golden struct {
	name   string
	module string // path from here
	job    string // path of a job file over ./data; "" stands for text
	input  string // a folder of testdata/golden, or a pattern of files
	from   string // what the sink reads; "" stands for t
	extra  string // more of the transform
	policy string // "" stands for dead-letter
	keys   string // what the transform reads, with keys; "" stands for in
	source string // "" stands for the files of input
	lanes  int    // 0 stands for the default
	slow   bool   // left out by short runs
}

const (
	kit        = "../../abi/kit/wasm/"
	guests     = "../sandbox/guests/wasm/"
	stock      = "../../transforms/"
	flightsJob = "../../examples/flights/job.yaml"
)

// goldens are few enough to run on an emulated processor, and together do all that guests may: emit to several ports,
// refuse, fail, trap in each way that replays, draw random numbers, look at clocks, log, hold state in memory, grow it.
var goldens = []golden{
	{name: "flights", module: "../../transforms/clean/clean.wasm", job: flightsJob, input: "../../examples/flights/data/2013-01-0[12].jsonl.gz"},
	{name: "flights-go", module: "../../transforms/clean/clean-go.wasm", job: flightsJob, input: "../../examples/flights/data/2013-01-01.jsonl.gz", slow: true},
	{name: "f1", module: "../../transforms/f1/f1.wasm", input: "events"},
	{name: "f1-go", module: "../../transforms/f1/f1-go.wasm", input: "events", slow: true},
	{name: "echo", module: kit + "echo.wasm", input: "words"},
	{name: "echo-copy", module: kit + "echo-copy.wasm", input: "orders"},
	{name: "odd", module: kit + "odd.wasm", input: "words"},
	{name: "ports", module: kit + "ports.wasm", input: "words", from: "t.even, t.odd"},
	{name: "dead", module: kit + "dead.wasm", input: "words"},
	{name: "nulls", module: kit + "nulls.wasm", input: "words"},
	{name: "times", module: kit + "times.wasm", input: "orders"},
	{name: "fields", module: kit + "fields.wasm", input: "words"},
	{name: "frame", module: kit + "context.wasm", input: "words"},
	{name: "records", module: kit + "frame-shape.wasm", input: "words"},
	{name: "count", module: kit + "count.wasm", input: "orders"},
	{name: "random", module: kit + "virtual.wasm", input: "words"},
	{name: "random-init", module: kit + "virtual-init.wasm", input: "words"},
	{name: "config", module: kit + "config.wasm", input: "words", extra: `, config: {b: [1, 2.50, "é"], a: null}`},
	{name: "wasi", module: kit + "wasi.wasm", input: "words"},
	{name: "log", module: kit + "log.wasm", input: "words"},
	{name: "log-flood", module: kit + "log-flood.wasm", input: "words", extra: ", limits: {log: 2KiB}"},
	{name: "stdio", module: kit + "stdio.wasm", input: "words"},
	{name: "grow", module: kit + "grow.wasm", input: "words"},
	{name: "poison", module: kit + "poison.wasm", input: "words"},
	{name: "poison-progress", module: kit + "poison-progress.wasm", input: "words"},
	{name: "poison-status", module: kit + "poison-status.wasm", input: "words"},
	{name: "poison-stop", module: kit + "poison.wasm", input: "words", policy: "stop"},
	{name: "emit-port", module: kit + "emit-port.wasm", input: "words"},
	{name: "end-divide", module: kit + "end-divide.wasm", input: "words"},
	{name: "end-depth", module: kit + "end-depth.wasm", input: "words"},
	{name: "end-loop", module: kit + "end-loop.wasm", input: "words", extra: ", limits: {fuel: {call: 20000, record: 1}}"},
	{name: "traps-c", module: "../sandbox/guests/debug/trap-c.wasm", input: "traps", extra: ", limits: {fuel: {call: 3000000, record: 1000}, depth: 200}"},
	{name: "traps-rust", module: "../sandbox/guests/debug/trap-rust.wasm", input: "traps", extra: ", limits: {fuel: {call: 3000000, record: 1000}, depth: 200}"},
	{name: "floats-c", module: guests + "c-floats.wasm", input: "orders"},
	{name: "floats-rust", module: guests + "rust-floats.wasm", input: "orders"},
	{name: "floats-as", module: guests + "as-floats.wasm", input: "orders"},
	{name: "simd-c", module: guests + "c-simd.wasm", input: "orders"},
	{name: "json-as", module: guests + "as-json.wasm", input: "orders", slow: true},
	{name: "json-rust", module: guests + "rust-serde.wasm", input: "orders"},
	{name: "hashmap-rust", module: guests + "rust-hashmap.wasm", input: "orders"},
	{name: "containers-cpp", module: guests + "cpp-containers.wasm", input: "orders"},
	{name: "state", module: kit + "state.wasm", input: "state", keys: "{input: in, keyBy: {header: path}}"},
	{name: "state-count", module: kit + "state-count.wasm", source: "{name: in, generator: {seed: 7, records: 200}, eventTime: {complete: true}, batch: {maxRecords: 90}}", keys: "{input: in, keyBy: {json: /currency}}"},
	{name: "window-c", module: "../../abi/sdk/c/example/window.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /bidder}}", from: "t.counts, t.late"},
	{name: "window-c-1", module: "../../abi/sdk/c/example/window.wasm", source: nexmark, keys: "{input: in, keyBy: {json: [/auction, /channel]}}", from: "t.counts, t.late", lanes: 1},
	{name: "dedup", module: stock + "dedup/dedup.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /bidder}}", extra: ", config: {within: 3s}", from: "t, t.late"},
	{name: "top", module: stock + "top/top.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /auction}}", extra: `, config: {n: 2, order: ["/price desc"], rank: rank}`},
	{name: "top-final", module: stock + "top/top.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /channel}}", extra: `, config: {order: "/price desc", ties: all, final: true}`, from: "t.final, t.late", lanes: 1},
	{name: "join", module: stock + "join/join.wasm", source: persons + ", " + auctions, keys: "{input: persons, keyBy: {json: /id}}, {input: auctions, keyBy: {json: /seller}}", extra: ", config: {type: full, within: {before: 5s, after: 5s}}", from: "t, t.late"},
	{name: "lookup", module: stock + "lookup/lookup.wasm", source: persons + ", " + auctions, keys: "{input: persons, keyBy: {json: /id}}, {input: auctions, keyBy: {json: /seller}}", extra: ", config: {as: person, missing: wait, timeout: 1h}"},
	{name: "tumbling", module: stock + "tumbling/tumbling.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /auction}}", extra: ", config: {size: 10s, key: auction, start: s, aggregates: [{n: count}, {sum: {sum: /price}}, {mean: {avg: /price, digits: 2, round: half-up}}, {bidders: {distinct: /bidder}}]}", from: "t, t.late"},
	{name: "sliding", module: stock + "sliding/sliding.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /auction}}", extra: ", config: {size: 10s, slide: 2s, key: auction, start: s, aggregates: [{n: count}, {sum: {sum: /price}}, {mean: {avg: /price, digits: 2, round: half-up}}, {bidders: {distinct: /bidder}}]}", from: "t, t.late"},
	{name: "session", module: stock + "session/session.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /bidder}}", extra: ", config: {gap: 1s, key: bidder, start: s, end: e, aggregates: [{n: count}]}", from: "t, t.late"},
	{name: "aggregate", module: stock + "aggregate/aggregate.wasm", source: nexmark, keys: "{input: in, keyBy: {json: /channel}}", extra: ", config: {key: channel, aggregates: [{n: count}, {best: {max: /price}}]}"},
	{name: "quickjs", module: guests + "quickjs.wasm", input: "orders", slow: true},
}

// nexmark makes bids for half a minute, so that windows close and some bids are late, and comes to an end.
const nexmark = "{name: in, generator: {kind: nexmark, seed: 7, records: 1500, nexmark: {eventRate: 50, outOfOrder: 400, only: bid, flat: true}}, " +
	"eventTime: {timestamp: true, lateness: 0s, complete: true}, batch: {maxRecords: 150}}"

// persons and auctions are two streams that can be joined.
const (
	persons  = "{name: persons, generator: {kind: nexmark, seed: 7, records: 4000, nexmark: {eventRate: 100, only: person, flat: true}}, eventTime: {timestamp: true, complete: true}, batch: {maxRecords: 25}}"
	auctions = "{name: auctions, generator: {kind: nexmark, seed: 7, records: 4000, nexmark: {eventRate: 100, only: auction, flat: true}}, eventTime: {timestamp: true, complete: true, lateness: 1s}, batch: {maxRecords: 90}}"
)

// text is the job file.
func (g *golden) text(t *testing.T) string {
	if g.job != "" {
		return strings.Replace(string(readAll(t, g.job)), "../../transforms/clean/clean.wasm", "./m.wasm", 1)
	}
	from, policy := g.from, "policy: dead-letter, deadLetters: dead, max: 100000"
	if from == "" {
		from = "t"
	}
	source := orElse(g.source, "{name: in, files: {path: data, format: lines}, batch: {maxRecords: 40}, attach: [path]}")
	dead := "    - {name: dead, files: {path: dead, format: jsonl}}\n"
	if g.policy != "" {
		policy, dead = "policy: "+g.policy, ""
	}
	return "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: golden}\nspec:\n  checkpoint: checkpoint\n  trigger: {availableNow: true}\n" +
		g.lanesText() + "  sources: [" + source + "]\n" +
		"  transforms: [{name: t, from: [" + orElse(g.keys, "in") + "], module: ./m.wasm" + g.extra + "}]\n" +
		"  sinks:\n    - {name: out, from: [" + from + "]" + g.mode() + ", files: {path: out, format: jsonl}}\n" + dead + "  errors: {" + policy + "}\n"
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// mode takes the updates of stages with keys.
func (g *golden) mode() string {
	if g.keys == "" {
		return ""
	}
	return ", mode: changelog"
}

func (g *golden) lanesText() string {
	if g.lanes == 0 {
		return ""
	}
	return fmt.Sprintf("  lanes: %d\n", g.lanes)
}

// goldenDir is where a golden job lies, in memory: paths stand in records and dead letters.
const goldenDir = "/golden"

// lay puts what the job needs on a fresh disk in memory. It returns the digest of all of it.
func (g *golden) lay(t *testing.T) (files durable.Files, given string) {
	t.Helper()
	disk := faulty.New()
	disk.SetClock(func() time.Time { return testClock{}.Now().Add(-time.Hour) }) // files that have settled
	files = disk.Process()
	all := sha256.New()
	put := func(name string, content []byte) {
		full := path.Join(goldenDir, name)
		if err := errors.Join(durable.MakeDir(files, path.Dir(full)), durable.WriteFile(files, full, content)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%s %d\n%s", name, len(content), content)
	}
	put("job.yaml", []byte(g.text(t)))
	put("m.wasm", readAll(t, g.module))
	if sidecar, err := os.ReadFile(g.module + ".json"); err == nil {
		put("m.wasm.json", sidecar)
	}
	if g.source != "" {
		return files, hex.EncodeToString(all.Sum(nil))
	}
	pattern := g.input
	if g.job == "" {
		pattern = filepath.Join("testdata/golden", g.input, "*")
	}
	inputs, err := filepath.Glob(pattern)
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input %s: %v", pattern, err)
	}
	for _, f := range inputs {
		put("data/"+filepath.Base(f), readAll(t, f))
	}
	return files, hex.EncodeToString(all.Sum(nil))
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// goldenCases are what the golden batches came to.
type goldenCases struct {
	Semantics int                    `json:"semantics"`
	Cases     map[string]*goldenCase `json:"cases"`
}

// goldenCase is what one of them came to, and of what.
type goldenCase struct {
	// Given is the sha256 of job file, module and input: with other ones it is another case.
	Given   string        `json:"given"`
	Module  string        `json:"module"`
	Image   string        `json:"image"`
	Batches []goldenBatch `json:"batches"`
	// Error ended the job, "" when none did.
	Error string `json:"error,omitempty"`
}

// goldenBatch is one decided batch.
type goldenBatch struct {
	Digest     string                       `json:"digest"`
	Inputs     map[string]checkpoint.Digest `json:"inputs"`
	Outputs    map[string]checkpoint.Digest `json:"outputs"`
	State      string                       `json:"state,omitempty"`
	Transforms []engine.StageStats          `json:"transforms"`
}

// run runs the job to its end and returns what it came to.
func (g *golden) run(t *testing.T, eng sandbox.Engine, workers int) *goldenCase {
	t.Helper()
	ctx := t.Context()
	files, given := g.lay(t)
	c := &goldenCase{Given: given, Batches: []goldenBatch{}}
	j, err := job.Parse("job.yaml", []byte(g.text(t)), job.Env{Dir: goldenDir})
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	env := Env{
		Files: files, Sandbox: eng, Clock: testClock{}, Stdout: io.Discard, Holder: "golden", NewID: func() string { return testQuery },
		Unique: func() string { attempts++; return fmt.Sprintf("%08x", attempts) }, Workers: workers, Version: "golden",
		Backend: mem.New().Open,
		Events: &engine.Events{Batch: func(s engine.BatchStats) {
			for i := range s.Stages {
				s.Stages[i].Failures, s.Stages[i].State = nil, 0 // for people, and no part of what a batch comes to
			}
			c.Batches = append(c.Batches, goldenBatch{Digest: s.Digest, Transforms: s.Stages})
		}},
	}
	program, err := Load(ctx, j, env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := program.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	for _, l := range program.loaded {
		c.Module, c.Image = l.module.Info().Digest, l.program.Image()
	}
	pl, err := program.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := pl.Run(ctx, nil); err != nil {
		c.Error = err.Error()
	}
	if err := pl.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := checkpoint.OpenReader(ctx, env.Files, j.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Batches {
		d, err := r.Decision(ctx, checkpoint.BatchID(i))
		if err != nil || d.Digest != c.Batches[i].Digest {
			t.Fatalf("the decision of batch %d: %v", i, err)
		}
		c.Batches[i].Inputs, c.Batches[i].Outputs, c.Batches[i].State = d.Inputs, d.Outputs, d.State
	}
	return c
}

// TestGoldenBatches runs committed jobs over committed input and holds module, image, inputs, outputs, batch and what was
// used to what they came to when they were written down: on both engines, whatever the processor. A golden batch that
// comes to something else is a change of the host's semantics: take it back, or raise engine.Semantics and write all of
// them anew with -update. A number that no release has had is begun anew by removing the file.
func TestGoldenBatches(t *testing.T) {
	was := readGoldens(t)
	now := goldenCases{Semantics: engine.Semantics, Cases: map[string]*goldenCase{}}
	engines := goldenEngines(t)
	for i := range goldens {
		if g := &goldens[i]; chosen(i) {
			t.Run(g.name, func(t *testing.T) {
				c := g.run(t, engines[0], 2)
				now.Cases[g.name] = c
				if diff := cmp.Diff(c, g.run(t, engines[1], 1)); diff != "" {
					t.Errorf("the %s and the %s differ (-%[1]s +%[2]s):\n%s", engines[0].Kind(), engines[1].Kind(), diff)
				}
				if len(c.Batches) == 0 && c.Error == "" {
					t.Error("it decided no batch")
				}
			})
		}
	}
	t.Logf("%d of %d golden jobs on %s, on the %s and the %s", len(now.Cases), len(goldens), runtime.GOARCH, engines[0].Kind(), engines[1].Kind())
	if t.Failed() {
		return
	}
	if *update && !testing.Short() {
		merged, refused := mergeGoldens(was, &now)
		for _, r := range refused {
			t.Error(r)
		}
		writeGoldens(t, merged)
		return
	}
	if was.Semantics != now.Semantics {
		t.Fatalf("the golden batches were made under semantics %d, this is %d: write them anew with -update", was.Semantics, now.Semantics)
	}
	for name, c := range now.Cases {
		if diff := cmp.Diff(was.Cases[name], c); diff != "" {
			t.Errorf("%s comes to something else under the same semantics (-golden +now):\n%s", name, diff)
		}
	}
	if len(now.Cases) == len(goldens) && len(was.Cases) != len(goldens) {
		t.Errorf("%d golden jobs are written down, there are %d: write them anew with -update", len(was.Cases), len(goldens))
	}
}

// mergeGoldens is what may be written down: all of it under another number of semantics, and else what is new. What was
// written down and comes to something else stays, and is refused.
func mergeGoldens(was, now *goldenCases) (merged *goldenCases, refused []string) {
	if now.Semantics < was.Semantics {
		return was, []string{fmt.Sprintf("semantics %d after %d: the number only rises", now.Semantics, was.Semantics)}
	}
	merged = &goldenCases{Semantics: now.Semantics, Cases: maps.Clone(now.Cases)}
	if now.Semantics > was.Semantics {
		return merged, nil
	}
	for _, name := range slices.Sorted(maps.Keys(now.Cases)) {
		old := was.Cases[name]
		if old == nil || old.Given != now.Cases[name].Given {
			continue
		}
		if diff := cmp.Diff(old, now.Cases[name]); diff != "" {
			refused = append(refused, fmt.Sprintf("%s comes to something else (-golden +now): raise engine.Semantics above %d, or take the change back\n%s", name, was.Semantics, diff))
			merged.Cases[name] = old
		}
	}
	return merged, refused
}

func readGoldens(t *testing.T) *goldenCases {
	t.Helper()
	was := &goldenCases{}
	text, err := os.ReadFile(goldenFile)
	if errors.Is(err, fs.ErrNotExist) && *update {
		return was
	}
	if err == nil {
		err = json.Unmarshal(text, was)
	}
	if err != nil {
		t.Fatal(err)
	}
	return was
}

func writeGoldens(t *testing.T, c *goldenCases) {
	t.Helper()
	text, err := json.MarshalIndent(c, "", " ")
	if err == nil {
		err = os.WriteFile(goldenFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// goldenEngines are the engine that runs by itself and the interpreter. Where there is no compiler they are the same.
func goldenEngines(t *testing.T) [2]sandbox.Engine {
	t.Helper()
	var out [2]sandbox.Engine
	for i, interpreter := range []bool{false, true} {
		eng, err := sandbox.New(sandbox.Config{Interpreter: interpreter})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := eng.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		out[i] = eng
	}
	return out
}

// chosen says whether a run takes a golden job: all of them, or a share that a short run is given.
func chosen(i int) bool {
	if !testing.Short() {
		return true
	}
	n, err := strconv.Atoi(os.Getenv(pickVariable))
	return !goldens[i].slow && (err != nil || i%goldenShare == n%goldenShare)
}

// TestGoldenUpdateRefuses to write over what was written down under the same number of semantics.
func TestGoldenUpdateRefuses(t *testing.T) {
	one := func(given, digest string) *goldenCase {
		return &goldenCase{Given: given, Batches: []goldenBatch{{Digest: digest}}}
	}
	was := &goldenCases{Semantics: 3, Cases: map[string]*goldenCase{"a": one("x", "1"), "b": one("y", "2"), "gone": one("z", "3")}}
	for _, tt := range []struct {
		name      string
		semantics int
		now       map[string]*goldenCase
		want      map[string]*goldenCase
		refused   int
	}{
		{"the same", 3, map[string]*goldenCase{"a": one("x", "1"), "b": one("y", "2")}, map[string]*goldenCase{"a": one("x", "1"), "b": one("y", "2")}, 0},
		{"a new one", 3, map[string]*goldenCase{"a": one("x", "1"), "c": one("q", "9")}, map[string]*goldenCase{"a": one("x", "1"), "c": one("q", "9")}, 0},
		{"another module", 3, map[string]*goldenCase{"a": one("x2", "5")}, map[string]*goldenCase{"a": one("x2", "5")}, 0},
		{"another digest", 3, map[string]*goldenCase{"a": one("x", "5"), "b": one("y", "2")}, map[string]*goldenCase{"a": one("x", "1"), "b": one("y", "2")}, 1},
		{"another digest under a raised number", 4, map[string]*goldenCase{"a": one("x", "5")}, map[string]*goldenCase{"a": one("x", "5")}, 0},
		{"a lowered number", 2, map[string]*goldenCase{"a": one("x", "5")}, was.Cases, 1},
	} {
		merged, refused := mergeGoldens(was, &goldenCases{Semantics: tt.semantics, Cases: tt.now})
		if len(refused) != tt.refused || cmp.Diff(tt.want, merged.Cases) != "" || merged.Semantics != max(tt.semantics, 3) {
			t.Errorf("%s: refused %q, merged %+v", tt.name, refused, merged)
		}
	}
}
