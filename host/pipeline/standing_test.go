package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	filesink "github.com/wasmill/wasmill/host/sink/files"
	filesource "github.com/wasmill/wasmill/host/source/files"
)

// table parses a job from files to files.
func (p *place) table(in, out, checkpoint string) *job.Job {
	p.t.Helper()
	j, err := job.Parse("job.yaml", fmt.Appendf(nil, "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: table}\nspec:\n  checkpoint: ./%s\n"+
		"  trigger: {availableNow: true}\n  sources: [{name: lines, files: {path: ./%s, format: jsonl}}]\n"+
		"  sinks: [{name: out, from: [lines], files: {path: ./%s, format: jsonl}}, {name: screen, from: [lines], stdout: {}}]\n",
		checkpoint, in, out), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func (p *place) input(dir, name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.write(filepath.Join(dir, name), []byte(content))
}

func (p *place) findings(j *job.Job) string {
	p.t.Helper()
	found, err := CheckTargets(p.t.Context(), j, Env{Files: p.env.Files, Clock: p.env.Clock, Stdout: &p.screen})
	if err != nil {
		p.t.Fatal(err)
	}
	var codes []string
	for _, f := range found {
		if f.File == "" || f.Message == "" || f.WayOut == "" || f.Note {
			p.t.Errorf("an incomplete finding: %+v", f)
		}
		codes = append(codes, f.Code)
	}
	return strings.Join(codes, " ")
}

func TestCheckTargets(t *testing.T) {
	p := newPlace(t)
	p.input("in", "a", "1\n")
	j := p.table("in", "out", "checkpoint")
	if got := p.findings(j); got != "" {
		t.Errorf("before the first start: %s", got)
	}
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	if got := p.findings(j); got != "" {
		t.Errorf("after a run: %s", got)
	}
	if got := p.findings(p.table("in", "out", "new")); got != filesink.CodeOtherQuery {
		t.Errorf("with a checkpoint to begin: %s", got)
	}
	if got := p.findings(p.table("in", "new", "checkpoint")); got != "" {
		t.Errorf("with a new directory after batch 0, which a start publishes there again: %s", got)
	}
	p.input("in", "b", "2\n")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	if got := p.findings(p.table("in", "new", "checkpoint")); got != engine.CodeTargetBehind {
		t.Errorf("with a new directory: %s", got)
	}
	if err := os.Rename(filepath.Join(p.dir, "out"), filepath.Join(p.dir, "away")); err != nil {
		t.Fatal(err)
	}
	if got := p.findings(p.table("in", "away", "checkpoint")); got != filesink.CodeMoved {
		t.Errorf("moved: %s", got)
	}
	for _, made := range []string{"new", "out"} {
		if _, err := os.Stat(filepath.Join(p.dir, made)); !os.IsNotExist(err) {
			t.Errorf("looking has made %s: %v", made, err)
		}
	}
}

// busyFiles calls meanwhile once, when the sink's owner file is opened.
type busyFiles struct {
	durable.Files
	meanwhile func()
}

func (b *busyFiles) Open(name string) (durable.File, error) {
	if f := b.meanwhile; f != nil && strings.HasSuffix(name, "/_wasmill.json") {
		b.meanwhile = nil
		f()
	}
	return b.Files.Open(name)
}

// TestCheckTargetsBesideARunningJob: a batch that ends between the look at the checkpoint and that at the target is none of
// their differences.
func TestCheckTargetsBesideARunningJob(t *testing.T) {
	p := newPlace(t)
	p.input("in", "a", "1\n")
	j := p.table("in", "out", "checkpoint")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	ran := false
	plain := p.env.Files
	busy := &busyFiles{Files: plain, meanwhile: func() {
		p.env.Files = plain
		p.input("in", "b", "2\n")
		if err := p.run(j); err != nil {
			t.Error(err)
		}
		ran = true
	}}
	p.env.Files = busy
	if got := p.findings(j); got != "" || !ran {
		t.Errorf("found %q, another batch ran: %t", got, ran)
	}
}

// TestPreviewOfAMovedSource shows what run refuses, and what would be read again.
func TestPreviewOfAMovedSource(t *testing.T) {
	p := newPlace(t)
	p.input("in", "a", "1\n2\n")
	if err := p.run(p.table("in", "out", "checkpoint")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(p.dir, "in"), filepath.Join(p.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	j := p.table("moved", "out", "checkpoint")
	v, err := p.load(j).Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v.Compatible() || len(v.Changes) != 1 || v.Changes[0].Path != "sources.lines.path" || v.Changes[0].Severity != job.NeedsConsent {
		t.Errorf("changes %+v", v.Changes)
	}
	if u := v.Sources[0]; !u.Measured || u.Extent.Records != 2 || !u.Extent.Lines || v.Batch != checkpoint.BatchID(1) {
		t.Errorf("batch %d reads %+v", v.Batch, u.Extent)
	}
	if err := p.run(j); codeOf(err) != filesource.CodeMoved {
		t.Errorf("without consent: %v", err)
	}
	p.env.AllowChanges = true
	if err := p.run(j); err != nil {
		t.Errorf("with consent: %v", err)
	}
	if v, err = p.load(j).Preview(t.Context()); err != nil || !v.Compatible() {
		t.Errorf("afterwards: %+v, %v", v, err)
	}
}

// TestPreviewOfADroppedSink: a sink that is known to have the last batch may go, as far as the next start is concerned.
func TestPreviewOfADroppedSink(t *testing.T) {
	p := newPlace(t)
	p.input("in", "a", "1\n")
	j := p.table("in", "out", "checkpoint")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	j.Sinks = slices.DeleteFunc(j.Sinks, func(s job.Sink) bool { return s.Name == "out" })
	v, err := p.load(j).Preview(t.Context())
	if err != nil || len(v.Gone) > 0 || v.Waiting != nil {
		t.Errorf("gone %v, waiting %+v, %v", v.Gone, v.Waiting, err)
	}
	p.remove("checkpoint/published")
	v, err = p.load(j).Preview(t.Context())
	if err != nil || !slices.Equal(v.Gone, []string{"out"}) || v.Waiting == nil || !slices.Contains(v.Waiting.Targets, "out") {
		t.Errorf("without the note of what is published: gone %v, waiting %+v, %v", v.Gone, v.Waiting, err)
	}
	p.env.AllowChanges = true
	if err := p.run(j); codeOf(err) != engine.CodeUnresolved {
		t.Errorf("run then: %v", err)
	}
}
