package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
)

// past is where an earlier revision comes from: a checkpoint, as far as it keeps it.
type past struct {
	canonical []byte
	revision  string
	sourceDir func(name string) (string, error)
	module    func(ctx context.Context, sha string) ([]byte, error)
	// swap are modules to run instead of those of the revision, by transform.
	swap map[string]sandbox.Binary
}

// revive builds the graph of an earlier revision from what the checkpoint keeps, so that a batch that was decided under it
// can be run again and compared. Its sources write nothing. Its lanes are those of the targets that are open, which may have to publish them.
func (pl *Pipeline) revive(ctx context.Context, revision string) (*engine.Revived, error) {
	canonical, err := pl.log.Revision(ctx, revision)
	if err != nil {
		return nil, err
	}
	from := past{canonical: canonical, revision: revision, sourceDir: pl.log.SourceDir, module: pl.log.Module}
	old, g, policy, err := pl.program.asOf(ctx, from, pl.targets)
	if err != nil {
		return nil, err
	}
	changes, err := old.since(canonical)
	return &engine.Revived{Graph: g, Errors: policy, Changes: changes}, err
}

// since says how the program's revision differs from the one that was decided.
func (p *Program) since(canonical []byte) (engine.Changes, error) {
	var c engine.Changes
	all, err := job.Diverge(canonical, p.Canonical)
	for _, d := range all {
		if d.Host {
			c.Host = append(c.Host, d.String())
		} else {
			c.Transform = append(c.Transform, d.String())
		}
	}
	return c, err
}

// asOf builds the program and the graph of an earlier revision. Its modules live as long as p. Without targets, by sink, it has some of its
// own, which are only asked for lanes.
func (p *Program) asOf(ctx context.Context, from past, targets map[string]sink.Target) (*Program, *engine.Graph, engine.ErrorPolicy, error) {
	fail := func(err error) (*Program, *engine.Graph, engine.ErrorPolicy, error) {
		return nil, nil, engine.ErrorPolicy{}, err
	}
	j, err := p.Job.AsOf(from.canonical)
	if err != nil {
		return fail(fault.New(CodeJobChanged, "revision "+from.revision, err,
			"give the job file as it was for as long as batches of that revision are needed"))
	}
	old := &Program{Job: j, env: p.env, loaded: map[string]*loaded{}, clusters: p.clusters}
	for i := range j.Transforms {
		if err := p.reviveTransform(ctx, old, &j.Transforms[i], from); err != nil {
			return fail(err)
		}
	}
	if err := old.check(ctx); err != nil {
		return fail(from.misfit(err))
	}
	sources, err := old.sources(j, from.sourceDir, true)
	if err != nil {
		return fail(err)
	}
	if targets == nil {
		if targets, err = old.targets(j); err != nil {
			return fail(err)
		}
	}
	ps := old.parts(sources, targets)
	for i := range j.Transforms {
		ps.modules[j.Transforms[i].Name] = j.Transforms[i].Module.SHA256 // dead letters name the module of the revision, also for a swapped one
	}
	g, policy, err := wire(j, ps)
	return old, g, policy, err
}

// misfit says of the mistakes of a job that they are those of a module that took another one's place.
func (p *past) misfit(err error) error {
	var mistakes *job.Errors
	if len(p.swap) == 0 || !errors.As(err, &mistakes) {
		return err
	}
	return fault.New(CodeModuleMisfit, slices.Sorted(maps.Keys(p.swap))[0], fmt.Errorf("the module does not fit its place in the job: %s", mistakes.List[0].Message),
		"give a module with the ports that the job reads")
}

func (p *Program) reviveTransform(ctx context.Context, old *Program, t *job.Transform, from past) error {
	if l := p.loaded[t.Name]; l != nil && l.module.Info().Digest == t.Module.SHA256 && p.Revision == from.revision {
		old.loaded[t.Name] = l
		return nil
	}
	binary, swapped := from.swap[t.Name]
	if !swapped {
		wasm, err := from.module(ctx, t.Module.SHA256)
		if err != nil {
			return fmt.Errorf("transform %s: %w", t.Name, err)
		}
		binary = sandbox.Binary{Name: "modules/" + t.Module.SHA256 + ".wasm", Wasm: wasm}
	}
	l, err := start(ctx, p.env.Sandbox, t, binary, nil)
	if err != nil {
		return err
	}
	old.loaded[t.Name] = l
	p.revived = append(p.revived, l)
	return nil
}
