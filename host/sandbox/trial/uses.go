package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Names of the checks that are about limits.
const (
	NearLimits = "keeps away from its limits"
	Nesting    = "nests its calls"
)

// near is the share of a limit from which on it is worth a warning.
const near = 0.5

// leastDepth is where the search for the depth of calls begins.
const leastDepth = 16

// uses says how near the runs came to the limits.
func (r *Report) uses(runs []outcome, l *sandbox.Limits) {
	var fuel, memory, output float64
	var calls, total uint64
	for i := range runs {
		u := &runs[i].used
		fuel = max(fuel, runs[i].highest)
		memory = max(memory, float64(u.Memory)/float64(l.Memory))
		output = max(output, float64(u.Output)/float64(l.Output))
		calls, total = calls+u.Calls, total+u.Fuel
	}
	detail := fmt.Sprintf("at most %.1f%% of the fuel of a call, %.1f%% of the memory, %.1f%% of the output of a lane; %d calls, %d of fuel in all",
		100*fuel, 100*memory, 100*output, calls, total)
	outcome := Pass
	if max(fuel, memory, output) > near {
		outcome = Warn
	}
	r.add(NearLimits, outcome, "%s", detail)
}

// depth looks for how deep the module nests its calls: with less room for them it traps.
func (r *Report) depth(ctx context.Context, s *subject, inputs []input, runs []outcome, o Options) error {
	if slices.ContainsFunc(runs, func(out outcome) bool { return out.trap == abi.TrapFuel }) {
		r.add(Nesting, Warn, "not looked at: it uses up its fuel")
		return nil
	}
	limit := o.Limits.Depth
	for d := leastDepth; d < limit; d *= 2 {
		o.Limits.Depth = d
		enough, err := s.fits(ctx, inputs, o)
		if err != nil {
			return err
		}
		if enough {
			r.add(Nesting, Pass, "no deeper than %d of %d", d, limit)
			return nil
		}
	}
	r.add(Nesting, Warn, "deeper than half of its limit of %d", limit)
	return nil
}

// fits says whether the module starts and takes the small inputs without running into its limit of depth.
func (s *subject) fits(ctx context.Context, inputs []input, o Options) (enough bool, err error) {
	p, err := s.module.Start(ctx, sandbox.Options{Transform: "trial", Config: o.Config, Limits: o.Limits})
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return false, nil // it has started with more
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	for i := range inputs {
		if !inputs[i].few {
			continue
		}
		out, err := inputs[i].run(ctx, p, &o.Limits)
		if err != nil || out.trap == abi.TrapDepth {
			return false, err
		}
	}
	return true, nil
}
