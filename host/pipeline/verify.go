package pipeline

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/source"
)

// CodeEngines is the code of a job that two engines do not even start alike, or that has no other engine to be verified on.
const CodeEngines = "verify.engines"

// loadOther compiles and starts the job's modules on the engine that verifies, and has it leave the same images.
func (p *Program) loadOther(ctx context.Context) error {
	if p.env.Other == nil {
		return nil
	}
	if kind := p.env.Other.Kind(); kind == p.env.Sandbox.Kind() {
		return fault.New(CodeEngines, p.Job.File, fmt.Errorf("batches are to be verified on another engine, and both are the %s", kind),
			"leave --verify-replay out here: the compiler does not run on this machine")
	}
	p.verifying = map[string]*loaded{}
	for i := range p.Job.Transforms {
		t := &p.Job.Transforms[i]
		first := p.loaded[t.Name]
		l, err := start(ctx, p.env.Other, t, first.binary, nil) // its log was heard once
		if err != nil {
			return fmt.Errorf("verify on the %s: %w", p.env.Other.Kind(), err)
		}
		p.verifying[t.Name] = l
		if a, b := first.program.Image(), l.program.Image(); a != b {
			return fault.New(CodeEngines, "transform "+t.Name,
				fmt.Errorf("it does not start alike on two engines: its image is %s on the %s and %s on the %s", a, p.env.Sandbox.Kind(), b, p.env.Other.Kind()),
				"report this with the module; without --verify-replay the job runs, on one engine alone")
		}
	}
	return nil
}

// verify is what the engine needs to verify batches, nil when it is not to.
func (p *Program) verify(sources map[string]source.Source, targets map[string]sink.Target) (*engine.Verify, error) {
	if p.env.Other == nil {
		return nil, nil
	}
	ps := parts{sources: sources, targets: targets, programs: map[string]sandbox.Program{}, modules: map[string]string{}}
	for name, l := range p.verifying {
		ps.programs[name] = l.program
		ps.modules[name] = l.module.Info().Digest
	}
	g, _, err := wire(p.Job, ps)
	return &engine.Verify{Share: p.env.VerifyShare, Graph: g, Engine: p.env.Other.Kind()}, err
}
