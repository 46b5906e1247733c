package engine_test

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
)

// TestCompareNamesWhatChanged: each of source, transform and host alone, all combinations of them, and what none of them
// explains.
func TestCompareNamesWhatChanged(t *testing.T) {
	const (
		source    = "the source changed: in has 3 records 00000000, decided were 4 records aaaaaaaa, read from the beginning to {\"offset\":4}"
		transform = "the transform changed: transforms.words.module is b, decided was a"
		image     = "the host changed: the image differs; it was decided by wasmill 1 (compiler, amd64) and run again by wasmill 2 (compiler, amd64)"
		other     = "the host changed: the same input and revision gave other output: out has 3 records 00000000, decided were 3 records bbbbbbbb; " +
			"it was decided by wasmill 1 (compiler, amd64) and run again by "
	)
	changes := engine.Changes{Transform: []string{"transforms.words.module is b, decided was a"}}
	host := engine.Changes{Host: []string{"the image differs"}}
	both := engine.Changes{Transform: changes.Transform, Host: host.Host}
	was := checkpoint.Host{Version: "1", Engine: "compiler", Arch: "amd64"}
	for _, tt := range []struct {
		name    string
		in, out bool // whether they differ
		digest  bool // whether it alone differs
		state   string
		changes engine.Changes
		now     checkpoint.Host
		old     bool // the decision names no host
		code    string
		words   []string
		way     string
	}{
		{name: "nothing", now: was},
		{name: "nothing that shows", now: was, changes: both},
		{name: "source", in: true, now: was, code: engine.CodeReplaySource, words: []string{source}, way: "bring the input back as it was when the batch was planned"},
		{name: "source and its output", in: true, out: true, now: checkpoint.Host{Version: "2"}, code: engine.CodeReplaySource, words: []string{source}, way: "bring the input back as it was when the batch was planned"},
		{name: "transform", out: true, now: was, changes: changes, code: engine.CodeReplayTransform, words: []string{transform}, way: "replay it with the modules and the job that decided it"},
		{name: "host", out: true, now: checkpoint.Host{Version: "2", Engine: "compiler", Arch: "amd64"}, code: engine.CodeReplayHost, words: []string{other + "wasmill 2 (compiler, amd64)"}, way: "replay it with wasmill 1, which decided it; when it still differs, report this with the module"},
		{name: "engine", out: true, now: checkpoint.Host{Version: "1", Engine: "interpreter", Arch: "amd64"}, code: engine.CodeReplayHost, words: []string{other + "wasmill 1 (interpreter, amd64)"}, way: "replay it with the compiler, which decided it, and report this with the module: the engines must agree"},
		{name: "processor", out: true, now: checkpoint.Host{Version: "1", Engine: "compiler", Arch: "arm64"}, code: engine.CodeReplayHost, words: []string{other + "wasmill 1 (compiler, arm64)"}, way: "replay it on amd64, where it was decided, and report this with the module: all processors must agree"},
		{
			name: "nobody", out: true, now: was, code: engine.CodeReplayHost, words: []string{"it was decided and run again by wasmill 1 (compiler, amd64)"},
			way: "look at the checkpoint with `wasmill checkpoint verify`; when it is whole, report this with the module: it is a fault of wasmill or of the machine",
		},
		{name: "an old decision", out: true, now: was, old: true, code: engine.CodeReplayHost, words: []string{"decided by a version that did not say which and run again by wasmill 1"}, way: "replay it with the version of wasmill that decided it"},
		{name: "image", out: true, now: checkpoint.Host{Version: "2", Engine: "compiler", Arch: "amd64"}, changes: host, code: engine.CodeReplayHost, words: []string{image}, way: "replay it with wasmill 1"},
		{name: "state", state: "cafe", now: was, code: engine.CodeReplayHost, words: []string{"the state changes are , decided were cafe"}, way: "checkpoint verify"},
		{name: "the whole alone", digest: true, now: was, code: engine.CodeReplayDiffers, words: []string{"all parts agree, the batch digest is 2222 and not 1111"}, way: "checkpoint verify"},
		{name: "source and transform", in: true, out: true, now: was, changes: changes, code: engine.CodeReplaySource, words: []string{source, "; and " + transform}, way: "planned; replay it with the modules"},
		{name: "source and host", in: true, out: true, now: checkpoint.Host{Version: "2", Engine: "compiler", Arch: "amd64"}, changes: host, code: engine.CodeReplaySource, words: []string{source, "; and " + image}, way: "planned; replay it with wasmill 1"},
		{name: "transform and host", out: true, now: checkpoint.Host{Version: "2", Engine: "compiler", Arch: "amd64"}, changes: both, code: engine.CodeReplayTransform, words: []string{transform, "; and " + image}, way: "decided it; replay it with wasmill 1"},
		{name: "all three", in: true, out: true, now: checkpoint.Host{Version: "2", Engine: "compiler", Arch: "amd64"}, changes: both, code: engine.CodeReplaySource, words: []string{source, "; and " + transform, "; and " + image}, way: "planned; replay it with the modules and the job that decided it; replay it with wasmill 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			digest := func(name string, n int64, c string) map[string]checkpoint.Digest {
				return map[string]checkpoint.Digest{name: {Records: n, XXH3: strings.Repeat(c, 32)}}
			}
			d := &checkpoint.Decision{Batch: 7, Digest: "1111", Inputs: digest("in", 4, "a"), Outputs: digest("out", 3, "b"), Host: was, State: tt.state}
			if tt.old {
				d.Host = checkpoint.Host{}
			}
			got := &engine.Replayed{Digest: "1111", Inputs: digest("in", 4, "a"), Outputs: digest("out", 3, "b")}
			if tt.in {
				got.Digest, got.Inputs["in"] = "2222", checkpoint.Digest{Records: 3, XXH3: strings.Repeat("0", 32)}
			}
			if tt.out {
				got.Digest, got.Outputs["out"] = "2222", checkpoint.Digest{Records: 3, XXH3: strings.Repeat("0", 32)}
			}
			if tt.digest {
				got.Digest = "2222"
			}
			plan := &checkpoint.Plan{Batch: 7, Sources: []checkpoint.SourcePosition{{Name: "in", End: checkpoint.Position{Line: `{"offset":4}`}}}}
			err := engine.Compare(&engine.Past{Plan: plan, Decision: d}, got, tt.now, tt.changes)
			if tt.code == "" {
				if err != nil {
					t.Errorf("equal batches differ: %v", err)
				}
				return
			}
			f, ok := err.(*fault.Error)
			if !ok || f.ErrCode != tt.code || f.Place != "batch 7" || !strings.Contains(f.WayOut, tt.way) {
				t.Fatalf("the error is %+v, want code %s and a way out with\n%s", err, tt.code, tt.way)
			}
			if got, want := f.Err.Error(), strings.Join(tt.words, ""); !strings.Contains(got, want) {
				t.Errorf("the error is\n%s\nwant\n%s", got, want)
			}
			if n := strings.Count(f.Err.Error(), " changed: "); tt.code != engine.CodeReplayDiffers && n != len(tt.words) {
				t.Errorf("%d things are said to have changed, want %d: %v", n, len(tt.words), f.Err)
			}
		})
	}
}

// TestCompareShortensPositions that are as long as a list of files.
func TestCompareShortensPositions(t *testing.T) {
	long := checkpoint.Position{Line: `["` + strings.Repeat("é", 5000) + `"]`}
	p := &engine.Past{
		Plan:     &checkpoint.Plan{Sources: []checkpoint.SourcePosition{{Name: "in", End: long}}},
		Decision: &checkpoint.Decision{Inputs: map[string]checkpoint.Digest{"in": {Records: 1}}},
	}
	err := engine.Compare(p, &engine.Replayed{Inputs: map[string]checkpoint.Digest{"new": {}}}, checkpoint.Host{}, engine.Changes{})
	if text := err.Error(); len(text) > 500 || !strings.Contains(text, `to ["éé`) || !strings.Contains(text, "é...") || !strings.Contains(text, "new was not there") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
