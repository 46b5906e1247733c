// Package trial tries a module out before a job depends on it: it starts the module, feeds it records of every kind that
// a job could, twice and on two engines, and says what does not hold of a transform that can be replayed.
//
// It also measures what a module takes: time, fuel and bytes a record.
//
// It knows modules and frames alone: no job, no batch, no files. What it finds is a report, never an error; an error is a
// module that cannot be loaded or started, or the host's own trouble. A module that does not return is ended by its fuel,
// of which it has enough for minutes on an interpreter.
package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Outcome is how a check went.
type Outcome string

// The outcomes.
const (
	Pass Outcome = "pass"
	Warn Outcome = "warn" // allowed, and worth knowing
	Fail Outcome = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail"`
}

// Report is what a trial found.
type Report struct {
	Info   *sandbox.Info
	Checks []Check
}

// OK reports whether no check failed.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Outcome == Fail })
}

func (r *Report) add(name string, o Outcome, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, o, fmt.Sprintf(format, args...)})
}

// Options are what a job would give the module.
type Options struct {
	Config []byte // canonical JSON
	Limits sandbox.Limits
	// Rows makes the check of an output's binary rows from their columns; nil leaves them unread.
	Rows func(columns string) (RowCheck, error)
}

// limits fills in the limits of a job that says nothing.
func (o *Options) limits() sandbox.Limits {
	l := o.Limits
	fill := func(at *int64, otherwise int64) {
		if *at == 0 {
			*at = otherwise
		}
	}
	fill(&l.Memory, sandbox.DefaultMemory)
	fill(&l.Output, abi.DefaultOutput)
	fill(&l.Log, sandbox.DefaultLog)
	if l.FuelCall == 0 {
		l.FuelCall = abi.DefaultFuelCall
	}
	if l.FuelRecord == 0 {
		l.FuelRecord = abi.DefaultFuelChunk
	}
	if l.Depth == 0 {
		l.Depth = sandbox.DefaultDepth
	}
	return l
}

// subject is the module on one engine.
type subject struct {
	kind    string
	module  sandbox.Module
	program sandbox.Program
}

func (s *subject) close(ctx context.Context) error {
	var err error
	if s.program != nil {
		err = s.program.Close(ctx)
	}
	if s.module != nil {
		err = errors.Join(err, s.module.Close(ctx))
	}
	return err
}

func begin(ctx context.Context, e sandbox.Engine, b sandbox.Binary, o Options) (*subject, error) {
	s := &subject{kind: e.Kind()}
	var err error
	if s.module, err = e.Compile(ctx, b); err != nil {
		return nil, err
	}
	s.program, err = s.module.Start(ctx, sandbox.Options{Transform: "trial", Config: o.Config, Limits: o.Limits})
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// Run tries a module on an engine, and once more on another one.
func Run(ctx context.Context, first, second sandbox.Engine, b sandbox.Binary, o Options) (report *Report, err error) {
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	for _, e := range []sandbox.Engine{first, first, second} {
		s, err := begin(ctx, e, b, o)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	o.Limits = o.limits()
	r := &Report{Info: subjects[0].module.Info()}
	r.add("starts", Pass, "on %s and %s", subjects[0].kind, subjects[2].kind)
	r.manifest()
	r.images(subjects)
	r.state()
	runs := make([][]outcome, len(subjects))
	inputs := allInputs(r.Info.Manifest, keyed(r.Info.Stateful, r.Info.Manifest))
	checks := r.rowsOf(r.Info.Manifest, o.Rows)
	for k := range inputs {
		inputs[k].rows = &checks
	}
	for i, s := range subjects {
		for k := range inputs {
			out, err := inputs[k].run(ctx, s.program, &o.Limits)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], out)
		}
	}
	for k := range inputs {
		if err := r.takes(ctx, subjects[0].program, &o.Limits, &inputs[k], &runs[0][k]); err != nil {
			return nil, err
		}
	}
	r.contract(runs[0])
	r.rows(&checks, inputs, runs[0])
	r.ends(inputs, runs[0])
	r.alike("runs alike twice", inputs, runs[0], runs[1])
	r.alike("runs alike on "+subjects[0].kind+" and "+subjects[2].kind, inputs, runs[0], runs[2])
	r.ports(runs[0])
	r.uses(runs[0], &o.Limits)
	if err := r.depth(ctx, subjects[0], inputs, runs[0], o); err != nil {
		return nil, err
	}
	return r, nil
}

// manifest says which manifest the records are made for.
func (r *Report) manifest() {
	const name = "has a manifest"
	if r.Info.Default {
		r.add(name, Warn, "no manifest found (looked for a section `wasmill` and for FILE.wasm.json): defaults")
		return
	}
	r.add(name, Pass, "%s %s", r.Info.Manifest.Name, r.Info.Manifest.Version)
}

// state says how a module that keeps state is tried.
func (r *Report) state() {
	if keyed(r.Info.Stateful, r.Info.Manifest) {
		r.add("keeps state", Pass, "%d tables; tried in a stage with keys, on state in memory, over %d batches", len(r.Info.Manifest.Tables), len(trialClocks))
	}
}

// images compares what the starts have left.
func (r *Report) images(s []*subject) {
	const name = "starts alike every time"
	switch {
	case s[0].program.Image() != s[1].program.Image():
		r.add(name, Fail, "two starts left different memory: every start of a job would be another revision")
	case s[0].program.Image() != s[2].program.Image():
		r.add(name, Fail, "%s and %s leave different memory after the start", s[0].kind, s[2].kind)
	default:
		r.add(name, Pass, "image %.16s", s[0].program.Image())
	}
}

// maxSingles bounds how many records that a module fails on are looked for.
const maxSingles = 8

// takes judges how the module took an input. What it failed on as a whole is tried again, record by record.
func (r *Report) takes(ctx context.Context, p sandbox.Program, limits *sandbox.Limits, in *input, out *outcome) error {
	name := "takes " + in.name
	if out.failed == "" {
		r.add(name, Pass, "%s", out.counts(len(in.records)))
		return nil
	}
	var bad []int
	why := out.failed
	for i := range in.records {
		if !in.few || len(bad) == maxSingles {
			break
		}
		one, err := in.only(i).run(ctx, p, limits)
		if err != nil {
			return err
		}
		if one.failed != "" {
			if len(bad) == 0 {
				why = one.failed
			}
			bad = append(bad, i)
		}
	}
	outcome, say := Warn, "each would be poison, and the lane start again without it: better set it aside as a dead letter"
	switch {
	case out.alloc:
		outcome, say = Fail, "that fails the batch"
	case in.declared && out.trap != "":
		outcome, say = Fail, "and these are what its manifest asks for"
	}
	if len(bad) == 0 {
		r.add(name, outcome, "fails: %s", why)
		return nil
	}
	many := fmt.Sprintf("%d of %d records", len(bad), len(in.records))
	if len(bad) == maxSingles {
		many = "at least " + many
	}
	r.add(name, outcome, "fails on %s, the first `%s`: %s; %s", many, excerpt(in.records[bad[0]].Value), why, say)
	return nil
}

// contract looks for what only a broken transform does.
func (r *Report) contract(runs []outcome) {
	const name = "keeps to the contract"
	for i := range runs {
		switch trap := runs[i].trap; {
		case runs[i].alloc:
			r.add(name, Fail, "%s; that fails the batch", runs[i].failed)
			return
		case trap == abi.TrapEmit, trap == abi.TrapState, trap == abi.TrapQuota, trap == abi.TrapDepth:
			r.add(name, Fail, "%s", runs[i].failed)
			return
		}
	}
	r.add(name, Pass, "declared ports, known records, well-formed output and state")
}

// ends judges how the module takes the end of a lane.
func (r *Report) ends(inputs []input, runs []outcome) {
	const name = "ends a lane"
	reached := 0
	for i := range runs {
		if runs[i].atEnd {
			r.add(name, Fail, "after %s: %s; a failing last frame fails the batch", inputs[i].name, runs[i].failed)
			return
		}
		if runs[i].failed == "" {
			reached++
		}
	}
	if reached == 0 {
		r.add(name, Warn, "no input came to its end")
		return
	}
	r.add(name, Pass, "%d times", reached)
}

// alike compares two runs: what came out, and what it took where the run came to its end.
func (r *Report) alike(name string, inputs []input, a, b []outcome) {
	other := map[string][]string{}
	for i := range a {
		x, y := &a[i], &b[i]
		what := ""
		switch {
		case x.digest != y.digest || x.failed != y.failed:
			what = "output"
		case x.failed != "":
		case x.used.Fuel != y.used.Fuel:
			what = "fuel"
		case x.used.Memory != y.used.Memory:
			what = "memory"
		}
		other[what] = append(other[what], inputs[i].name)
	}
	for _, what := range []string{"output", "fuel", "memory"} {
		if differ := other[what]; len(differ) > 0 {
			r.add(name, Fail, "other %s for %s: no batch of it could be proven", what, strings.Join(differ, ", "))
			return
		}
	}
	r.add(name, Pass, "%d inputs: the same output, fuel and memory", len(inputs))
}

// ports says what came out where.
func (r *Report) ports(runs []outcome) {
	var words []string
	var total int64
	for p, o := range r.Info.Manifest.Outputs {
		var n int64
		for i := range runs {
			n += runs[i].ports[p]
		}
		total += n
		words = append(words, fmt.Sprintf("%s %d", o.Name, n))
	}
	outcome := Pass
	if total == 0 && len(words) > 0 {
		outcome = Warn
	}
	r.add("gives output", outcome, "%s", strings.Join(words, ", "))
}

// excerpt is the beginning of a value, for people.
func excerpt(v []byte) string {
	if len(v) == 0 {
		return map[bool]string{true: "null", false: "(empty)"}[v == nil]
	}
	if len(v) > 60 {
		return abi.EscapeText(v[:60], 120) + "..."
	}
	return abi.EscapeText(v, 120)
}
