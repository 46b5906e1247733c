package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/job"
)

// module copies a module of the kit into the job's folder under the name m.wasm, with its sidecar if there is one, and
// returns the digest of the kit's file.
func (p *place) module(name, sidecar string) string {
	p.t.Helper()
	wasm, err := os.ReadFile(filepath.Join("../../abi/kit/wasm", name+".wasm"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("m.wasm", wasm)
	if sidecar != "" {
		p.write("m.wasm.json", []byte(sidecar))
	}
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

func (p *place) write(name string, content []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(names ...string) {
	p.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// own parses a job whose one transform has the module, and whose sink reads the given ports.
func (p *place) own(module, from, rest string) *job.Job {
	p.t.Helper()
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: own}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  sources: [{name: orders, generator: {records: 40, seed: 3}, batch: {maxRecords: 20}}]\n"+
		"  transforms: [{name: pass, from: [orders], module: "+module+"}]\n"+
		"  sinks: [{name: screen, from: ["+from+"], stdout: {}}]\n"+rest), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func (p *place) load(j *job.Job) *Program {
	p.t.Helper()
	program, err := Load(context.Background(), j, p.env)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := program.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	return program
}

func (p *place) open(program *Program) *Pipeline {
	p.t.Helper()
	pl, err := program.Open(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := pl.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return pl
}

// prove replays batch 0 under the revision that decided it.
func (p *place) prove(j *job.Job) {
	p.t.Helper()
	r, err := p.history(j).Batch(context.Background(), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if got, err := r.Prove(context.Background()); err != nil || got.Digest != r.Past.Decision.Digest {
		p.t.Errorf("batch 0 does not prove itself: %v", err)
	}
}

// TestReviveAnEarlierRevision brings back a revision of another module and other lanes, of which only the checkpoint is
// left.
func TestReviveAnEarlierRevision(t *testing.T) {
	p := newPlace(t)
	echo := p.module("echo", "")
	j := p.own("m.wasm", "pass", "  lanes: 3\n")
	was := p.load(j).Revision
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	odd := p.module("odd", "")
	j = p.own("m.wasm", "pass", "")
	program := p.load(j)
	pl := p.open(program)
	if program.Revision == was || program.loaded["pass"].module.Info().Digest != odd {
		t.Fatalf("revision %s, module %s", program.Revision, program.loaded["pass"].module.Info().Digest)
	}
	old, err := pl.revive(t.Context(), was)
	if err != nil {
		t.Fatal(err)
	}
	if g := old.Graph; g.Lanes != 3 || g.Stages[0].Module != echo || program.loaded["pass"].module.Info().Digest != odd {
		t.Errorf("%d lanes, module %s", old.Graph.Lanes, old.Graph.Stages[0].Module)
	}
	now, err := pl.revive(t.Context(), program.Revision)
	if err != nil || now.Graph.Stages[0].Module != odd || now.Graph.Stages[0].Program != program.loaded["pass"].program {
		t.Errorf("the revision that runs has a program of its own: %v", err)
	}
	p.prove(j)

	if _, err := pl.revive(t.Context(), strings.Repeat("0", 64)); err == nil {
		t.Error("a revision that nobody kept is back")
	}
	p.remove("checkpoint/modules/" + echo + ".wasm")
	if _, err := pl.revive(t.Context(), was); err == nil || !strings.Contains(err.Error(), "transform pass: ") || !strings.Contains(err.Error(), echo) {
		t.Errorf("without its module: %v", err)
	}
}

// TestReviveNeedsTheSinks as they were: what they wrote and will write must fit together.
func TestReviveNeedsTheSinks(t *testing.T) {
	p := newPlace(t)
	p.module("echo", "")
	j := p.own("m.wasm", "pass", "")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	was := p.load(j).Revision
	j.Sinks[0].Name = "other"
	p.env.AllowChanges = true
	program := p.load(j)
	canonical, err := os.ReadFile(filepath.Join(p.dir, "checkpoint", "revisions", was+".json"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = program.asOf(t.Context(), past{canonical: canonical, revision: was}, nil)
	if codeOf(err) != CodeJobChanged || !strings.Contains(err.Error(), "revision "+was) {
		t.Errorf("with another sink: %v", err)
	}
}

// TestModuleByDigest goes on with the module that the checkpoint keeps, under the same revision.
func TestModuleByDigest(t *testing.T) {
	p := newPlace(t)
	echo := p.module("echo", "")
	j := p.own("m.wasm", "pass", "")
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	was := p.load(j).Revision
	p.remove("m.wasm")
	if _, err := Load(t.Context(), j, p.env); codeOf(err) != CodeModuleMissing {
		t.Errorf("without the file: %v", err)
	}
	j = p.own("sha256:"+echo, "pass", "")
	if got := p.load(j).Revision; got != was {
		t.Errorf("revision %s, by path it was %s", got, was)
	}
	j.Sources[0].Generator.Records = 60
	printed := bytes.Count(p.screen.Bytes(), []byte("\n"))
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(p.screen.Bytes(), []byte("\n")) - printed; got != 20 {
		t.Errorf("%d records more, want 20", got)
	}
	p.prove(j)
	_, err := Load(t.Context(), p.own("sha256:"+strings.Repeat("0", 64), "pass", ""), p.env)
	if codeOf(err) != CodeModuleMissing || !strings.Contains(err.Error(), filepath.Join("modules", strings.Repeat("0", 64)+".wasm")) {
		t.Errorf("a digest that is not kept: %v", err)
	}
}

// TestSidecar keeps a module and the manifest beside it as one, which is enough to go on and to go back.
func TestSidecar(t *testing.T) {
	const manifest = `{"abi":1,"name":"ports","version":"1.0.0","inputs":[{"name":"in"}],"outputs":[{"name":"even"},{"name":"odd"}]}`
	p := newPlace(t)
	bare := p.module("ports-bare", manifest)
	j := p.own("m.wasm", "pass.even, pass.odd", "")
	program := p.load(j)
	digest := program.loaded["pass"].module.Info().Digest
	if digest == bare {
		t.Error("the digest leaves the sidecar out")
	}
	if err := p.run(j); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(p.dir, "checkpoint", "modules", digest+".wasm"))
	if sum := sha256.Sum256(kept); err != nil || hex.EncodeToString(sum[:]) != digest || !bytes.Contains(kept, []byte(manifest)) {
		t.Errorf("what is kept under %s: %d bytes, %v", digest, len(kept), err)
	}
	p.remove("m.wasm", "m.wasm.json")
	byDigest := p.own("sha256:"+digest, "pass.even, pass.odd", "")
	again := p.load(byDigest)
	if again.Revision != program.Revision || again.loaded["pass"].program.Manifest().Name != "ports" {
		t.Errorf("by digest it has revision %s and manifest %+v", again.Revision, again.loaded["pass"].program.Manifest())
	}
	p.prove(byDigest)

	p.module("odd", "")
	now := p.own("m.wasm", "pass", "")
	pl := p.open(p.load(now))
	old, err := pl.revive(t.Context(), program.Revision)
	if err != nil || old.Graph.Stages[0].Module != digest || len(old.Graph.Sinks[0].Inputs) != 2 {
		t.Errorf("revived beside another module: %v", err)
	}
	if pl.LastBatch() != checkpoint.BatchID(1) || pl.QueryID() != testQuery {
		t.Errorf("it stands at batch %d of query %s", pl.LastBatch(), pl.QueryID())
	}
}
