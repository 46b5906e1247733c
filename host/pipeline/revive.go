package pipeline

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

// revive builds the graph of an earlier revision from what the checkpoint keeps, so that a batch that was decided under it
// can be run again and compared. Its sources write nothing and its targets are only asked for lanes.
func (pl *Pipeline) revive(ctx context.Context, revision string) (*engine.Graph, engine.ErrorPolicy, error) {
	canonical, err := pl.log.Revision(ctx, revision)
	if err != nil {
		return nil, engine.ErrorPolicy{}, err
	}
	return pl.program.asOf(ctx, canonical, revision, pl.log.SourceDir, pl.log.Module)
}

// asOf builds the graph of a revision whose modules come from keep. The programs live as long as p.
func (p *Program) asOf(
	ctx context.Context, canonical []byte, revision string, dir func(string) (string, error), keep func(context.Context, string) ([]byte, error),
) (*engine.Graph, engine.ErrorPolicy, error) {
	fail := func(err error) (*engine.Graph, engine.ErrorPolicy, error) { return nil, engine.ErrorPolicy{}, err }
	j, err := p.Job.AsOf(canonical)
	if err != nil {
		return fail(err)
	}
	old := &Program{Job: j, env: p.env, loaded: map[string]*loaded{}}
	for i := range j.Transforms {
		if err := p.reviveTransform(ctx, old, &j.Transforms[i], revision, keep); err != nil {
			return fail(err)
		}
	}
	sources, err := old.sources(j, dir, true)
	if err != nil {
		return fail(err)
	}
	targets, err := old.targets(j)
	if err != nil {
		return fail(err)
	}
	return wire(j, old.parts(sources, targets))
}

func (p *Program) reviveTransform(
	ctx context.Context, old *Program, t *job.Transform, revision string, keep func(context.Context, string) ([]byte, error),
) error {
	if l := p.loaded[t.Name]; l != nil && l.module.Info().Digest == t.Module.SHA256 && p.Revision == revision {
		old.loaded[t.Name] = l
		return nil
	}
	wasm, err := keep(ctx, t.Module.SHA256)
	if err != nil {
		return fmt.Errorf("transform %s: %w", t.Name, err)
	}
	l, err := start(ctx, p.env.Sandbox, t, sandbox.Binary{Name: "modules/" + t.Module.SHA256 + ".wasm", Wasm: wasm}, nil)
	if err != nil {
		return err
	}
	old.loaded[t.Name] = l
	p.revived = append(p.revived, l)
	return nil
}
