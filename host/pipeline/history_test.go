package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

const testQuery = "9538ada3-a233-4697-8b02-cc66250189a3"

// testClock stands still.
type testClock struct{}

func (testClock) Now() time.Time                            { return time.UnixMilli(1_767_225_600_000) }
func (testClock) Wait(context.Context, time.Duration) error { return nil }

// place is a job's world: a folder, an engine, and what it prints.
type place struct {
	t      *testing.T
	dir    string
	env    Env
	screen bytes.Buffer
}

func newPlace(t *testing.T) *place {
	t.Helper()
	eng, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p := &place{t: t, dir: t.TempDir()}
	n := 0
	p.env = Env{
		Files: durable.OS(), Sandbox: eng, Clock: testClock{}, Stdout: &p.screen, Holder: "test", NewID: func() string { return testQuery },
		Unique: func() string { n++; return fmt.Sprintf("%08x", n) }, Workers: 2, Version: "test",
	}
	return p
}

// job parses a job with the lines that follow its sources and sinks.
func (p *place) job(rest string) *job.Job {
	p.t.Helper()
	echo, err := filepath.Abs("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		p.t.Fatal(err)
	}
	text := "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: past}\nspec:\n  checkpoint: ./checkpoint\n  trigger: {availableNow: true}\n" +
		"  sources: [{name: orders, generator: {records: 5000, seed: 3}, batch: {maxRecords: 3000}}]\n" +
		"  transforms: [{name: pass, from: [orders], module: " + echo + "}]\n" +
		"  sinks: [{name: screen, from: [pass], stdout: {}}]\n" + rest
	j, err := job.Parse("job.yaml", []byte(text), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func (p *place) run(j *job.Job) error {
	p.t.Helper()
	ctx := context.Background()
	program, err := Load(ctx, j, p.env)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close(ctx) }()
	pl, err := program.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(pl.Run(ctx, nil), pl.Close())
}

func (p *place) history(j *job.Job) *History {
	p.t.Helper()
	h, err := OpenHistory(context.Background(), j, p.env)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.ErrCode
	}
	return ""
}

func TestProve(t *testing.T) {
	p := newPlace(t)
	j := p.job("")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	printed := p.screen.Len()
	h := p.history(j)
	for n := range checkpoint.BatchID(2) {
		r, err := h.Batch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := r.Prove(t.Context())
			if err != nil || got.Digest != r.Past.Decision.Digest {
				t.Errorf("batch %d: %v", n, err)
			}
		}
		if len(r.Module("pass")) != 64 || r.Module("nope") != "" {
			t.Errorf("the modules are %q and %q", r.Module("pass"), r.Module("nope"))
		}
	}
	if p.screen.Len() != printed {
		t.Error("a replay has printed")
	}
	if _, err := h.Batch(t.Context(), 2); codeOf(err) != engine.CodeNotRetained || !strings.Contains(err.Error(), "batches 0 to 1 are") {
		t.Errorf("a batch to come: %v", err)
	}
}

// TestProveSaysWhatHasChanged replays decisions and revisions that were tampered with, each as if something else had
// changed since, and batches with another module: each alone, and all of them together.
func TestProveSaysWhatHasChanged(t *testing.T) {
	const (
		source    = "the source changed: orders has 3000 records"
		transform = "the transform changed: transforms.pass.module is "
		image     = "transforms.pass.image is "
		abi       = "the host changed: abi is 1, decided was 7; it was decided by wasmill 0 (compiler, mips) and run again by wasmill test (compiler, " + runtime.GOARCH + ")"
	)
	records := func(d *checkpoint.Decision) {
		d.Inputs["orders"] = checkpoint.Digest{Records: 3001, XXH3: d.Inputs["orders"].XXH3}
	}
	outputs := func(d *checkpoint.Decision) {
		d.Outputs["screen"] = checkpoint.Digest{Records: 3000, XXH3: strings.Repeat("0", 32)}
	}
	older := func(d *checkpoint.Decision) { d.Host = checkpoint.Host{Version: "0", Engine: "compiler", Arch: "mips"} }
	otherABI := [2]string{`"abi":1`, `"abi":7`}
	for _, tt := range []struct {
		name, code string
		words      []string // each of what changed
		tamper     []func(d *checkpoint.Decision)
		revision   [2]string // edit of it
		module     string    // in place of the transform's
	}{
		{name: "source", code: engine.CodeReplaySource, words: []string{source}, tamper: []func(*checkpoint.Decision){records}},
		{name: "transform", code: engine.CodeReplayTransform, words: []string{transform}, module: "odd"},
		{name: "host", code: engine.CodeReplayHost, words: []string{"the host changed: the same input and revision gave other output: screen has 3000 records"}, tamper: []func(*checkpoint.Decision){outputs}},
		{name: "host, another version", code: engine.CodeReplayHost, words: []string{abi}, revision: otherABI, tamper: []func(*checkpoint.Decision){older}},
		{name: "host, another image", code: engine.CodeReplayHost, words: []string{"the host changed: " + image}, revision: [2]string{`"image":"`, `"image":"x`}},
		{name: "source and transform", code: engine.CodeReplaySource, words: []string{source, transform}, tamper: []func(*checkpoint.Decision){records}, module: "odd"},
		{name: "source and host", code: engine.CodeReplaySource, words: []string{source, abi}, tamper: []func(*checkpoint.Decision){records, older}, revision: otherABI},
		{name: "transform and host", code: engine.CodeReplayTransform, words: []string{transform, abi}, tamper: []func(*checkpoint.Decision){older}, revision: otherABI, module: "odd"},
		{name: "all", code: engine.CodeReplaySource, words: []string{source, transform, abi}, tamper: []func(*checkpoint.Decision){records, older}, revision: otherABI, module: "odd"},
		{name: "batch digest", code: engine.CodeReplayDiffers, words: []string{"all parts agree, the batch digest is"}, tamper: []func(*checkpoint.Decision){func(d *checkpoint.Decision) { d.Digest = strings.Repeat("0", 32) }}},
		{name: "semantics", code: engine.CodeNewerSemantics, words: []string{"the host changed: it was decided under semantics 7, by wasmill test (compiler, " + runtime.GOARCH + ")"}, tamper: []func(*checkpoint.Decision){func(d *checkpoint.Decision) { d.Semantics = 7 }}},
		{name: "a fork", code: CodeNoRevision, words: []string{"was never run"}, tamper: []func(*checkpoint.Decision){func(d *checkpoint.Decision) { d.Revision = "" }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			j := p.job("")
			if err := p.run(j); err != nil {
				t.Fatal(err)
			}
			forged := *j
			forged.Checkpoint = filepath.Join(p.dir, "forged")
			p.forge(j, &forged, tt.revision, tt.tamper...)
			r, err := p.history(&forged).Batch(t.Context(), 0)
			if err == nil && tt.module != "" {
				var b sandbox.Binary
				if b, err = ReadBinary(p.env.Files, "../../abi/kit/wasm/"+tt.module+".wasm"); err != nil {
					t.Fatal(err)
				}
				r, err = r.With(t.Context(), "pass", b)
			}
			if err == nil {
				_, err = r.Prove(t.Context())
			}
			if codeOf(err) != tt.code {
				t.Fatalf("the proof says %v, want code %s", err, tt.code)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the proof says\n%v\nwithout\n%s", err, w)
				}
			}
			if n := strings.Count(err.Error(), " changed: "); strings.Contains(tt.words[0], " changed: ") && n != len(tt.words) {
				t.Errorf("%d things are said to have changed, want %d: %v", n, len(tt.words), err)
			}
		})
	}
}

// TestDecisionsNameTheHost that made them.
func TestDecisionsNameTheHost(t *testing.T) {
	p := newPlace(t)
	j := p.job("")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	r, err := p.history(j).Batch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := checkpoint.Host{Version: "test", Engine: p.env.Sandbox.Kind(), Arch: runtime.GOARCH}
	if r.Past.Decision.Host != want || r.Host() != want {
		t.Errorf("it was decided by %+v and is replayed by %+v, want %+v", r.Past.Decision.Host, r.Host(), want)
	}
}

// forge copies the first batch of a job's checkpoint with another decision and an edited revision.
func (p *place) forge(from, to *job.Job, edit [2]string, tamper ...func(*checkpoint.Decision)) {
	p.t.Helper()
	ctx := context.Background()
	r, err := checkpoint.OpenReader(ctx, p.env.Files, from.Checkpoint)
	if err != nil {
		p.t.Fatal(err)
	}
	log, err := checkpoint.Open(ctx, p.env.Files, to.Checkpoint, (&Program{Job: to, env: p.env}).logOptions())
	if err != nil {
		p.t.Fatal(err)
	}
	plan, err := r.Plan(ctx, 0)
	decision, derr := r.Decision(ctx, 0)
	if err := errors.Join(err, derr); err != nil {
		p.t.Fatal(err)
	}
	revision, err := r.Revision(ctx, decision.Revision)
	if err != nil {
		p.t.Fatal(err)
	}
	j, err := from.AsOf(revision)
	if err != nil {
		p.t.Fatal(err)
	}
	sha := j.Transforms[0].Module.SHA256
	wasm, err := r.Module(ctx, sha)
	if edit[0] != "" {
		revision = []byte(strings.Replace(string(revision), edit[0], edit[1], 1))
		sum := sha256.Sum256(revision)
		decision.Revision = hex.EncodeToString(sum[:])
	}
	err = errors.Join(err, log.PutModule(ctx, sha, wasm), log.PutRevision(ctx, decision.Revision, revision), log.WritePlan(ctx, *plan))
	for _, f := range tamper {
		f(decision)
	}
	if err := errors.Join(err, log.WriteDecision(ctx, *decision), log.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// TestConsent stops a job that has changed in a way that needs the user's word, before anything is touched.
func TestConsent(t *testing.T) {
	p := newPlace(t)
	j := p.job("")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	if err := p.run(p.job("  lanes: 2\n")); err != nil {
		t.Errorf("a compatible change: %v", err)
	}
	renamed := p.job("")
	renamed.Sources[0].Name, renamed.Transforms[0].From[0].Name = "others", "others"
	err := p.run(renamed)
	if codeOf(err) != CodeIncompatible || !strings.Contains(err.Error(), "sources.orders: the source is gone") {
		t.Errorf("a source that is gone: %v", err)
	}
	program, err := Load(t.Context(), renamed, p.env)
	if err != nil {
		t.Fatal(err)
	}
	v, err := program.Preview(t.Context())
	if err != nil || v.Compatible() || len(v.Changes) == 0 {
		t.Errorf("the preview has changes %v, %v", v.Changes, err)
	}
	if err := program.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.env.AllowChanges = true
	if err := p.run(renamed); err != nil {
		t.Errorf("with consent: %v", err)
	}
}
