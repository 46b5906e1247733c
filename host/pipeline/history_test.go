package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

// TestProveSaysWhatHasChanged replays decisions that were tampered with, each as if something else had changed.
func TestProveSaysWhatHasChanged(t *testing.T) {
	for _, tt := range []struct {
		name, code, words string
		tamper            func(d *checkpoint.Decision)
	}{
		{"source", engine.CodeReplayDiffers, "the source gave other records: orders has 3000 records", func(d *checkpoint.Decision) {
			d.Inputs["orders"] = checkpoint.Digest{Records: 3001, XXH3: d.Inputs["orders"].XXH3}
		}},
		{"host", engine.CodeReplayDiffers, "a second run gave the same again: the host or the decision has changed", func(d *checkpoint.Decision) {
			d.Outputs["screen"] = checkpoint.Digest{Records: 3000, XXH3: strings.Repeat("0", 32)}
		}},
		{"batch digest", engine.CodeReplayDiffers, "the parts agree, the batch digest is", func(d *checkpoint.Decision) { d.Digest = strings.Repeat("0", 32) }},
		{"semantics", engine.CodeNewerSemantics, "the host has changed: it was decided under semantics 7", func(d *checkpoint.Decision) { d.Semantics = 7 }},
		{"a fork", CodeNoRevision, "was never run", func(d *checkpoint.Decision) { d.Revision = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			j := p.job("")
			if err := p.run(j); err != nil {
				t.Fatal(err)
			}
			forged := *j
			forged.Checkpoint = filepath.Join(p.dir, "forged")
			p.forge(j, &forged, tt.tamper)
			r, err := p.history(&forged).Batch(t.Context(), 0)
			if err == nil {
				_, err = r.Prove(t.Context())
			}
			if codeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.words) {
				t.Errorf("the proof says %v", err)
			}
		})
	}
}

// forge copies the first batch of a job's checkpoint with another decision.
func (p *place) forge(from, to *job.Job, tamper func(*checkpoint.Decision)) {
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
	err = errors.Join(err, log.PutModule(ctx, sha, wasm), log.PutRevision(ctx, decision.Revision, revision), log.WritePlan(ctx, *plan))
	tamper(decision)
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
