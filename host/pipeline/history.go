package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

// Codes of the faults of a replay, beside the engine's.
const (
	CodeJobChanged   = "replay.job_changed"   // the job file no longer has what an old revision needs
	CodeUndecided    = "replay.undecided"     // the batch has no outcome yet
	CodeNoRevision   = "replay.no_revision"   // the batch was not run, as the first one of a fork
	CodeNoTransform  = "replay.no_transform"  // a module for a transform that the batch did not have
	CodeModuleMisfit = "replay.module_misfit" // a module without the ports that the job reads
)

// History is what a job has done, as far as its checkpoint keeps it. It takes nothing over and writes nothing, so the
// job may be running meanwhile. One batch with state is run again at a time.
type History struct {
	program *Program
	reader  *checkpoint.Reader
	state   *State // opened when a batch of a job with keyed stages is run again
}

// OpenHistory opens the history of a job. The modules that the job names now are not needed.
func OpenHistory(ctx context.Context, j *job.Job, env Env) (*History, error) {
	r, err := checkpoint.OpenReader(ctx, env.Files, j.Checkpoint)
	if err != nil {
		return nil, err
	}
	if err := r.CheckJob(j.Name); err != nil {
		return nil, err
	}
	return &History{program: &Program{Job: j, env: env, loaded: map[string]*loaded{}}, reader: r}, nil
}

// Close gives the modules and the state up.
func (h *History) Close(ctx context.Context) error {
	err := h.program.Close(ctx)
	if h.state != nil {
		err = errors.Join(err, h.state.Close())
	}
	return err
}

// before lets a batch begin on the state as it was before it.
func (h *History) before(ctx context.Context, p *engine.Past) (err error) {
	if h.state == nil {
		if h.state, err = OpenState(ctx, h.program.Job.Checkpoint, h.program.env); err != nil {
			return err
		}
	}
	view, err := h.state.at(ctx, p.Plan.Batch-1)
	if err != nil {
		return fmt.Errorf("the state before batch %d: %w", p.Plan.Batch, err)
	}
	p.Begin = view.Begin
	return nil
}

// Rerun is a retained batch, ready to be run again.
type Rerun struct {
	Past    engine.Past
	history *History
	program *Program
	graph   *engine.Graph
	policy  engine.ErrorPolicy
	changes engine.Changes // from what was decided
}

// Batch prepares a retained batch with the modules and the revision that decided it.
func (h *History) Batch(ctx context.Context, n checkpoint.BatchID) (*Rerun, error) {
	past, err := h.past(ctx, n)
	if err != nil {
		return nil, err
	}
	return h.prepare(ctx, *past, nil)
}

func (h *History) past(ctx context.Context, n checkpoint.BatchID) (*engine.Past, error) {
	place := fmt.Sprintf("batch %d", n)
	p := &engine.Past{Query: h.reader.QueryID()}
	var err error
	if p.Plan, err = h.reader.Plan(ctx, n); err != nil {
		return nil, h.notRetained(ctx, place, err)
	}
	p.Decision, err = h.reader.Decision(ctx, n)
	if missing(err) {
		return nil, fault.New(CodeUndecided, place, errors.New("it is planned and has no outcome yet"),
			"let the job finish it: the next `wasmill run` does")
	}
	if err != nil {
		return nil, err
	}
	if n > 0 {
		if p.Prev, err = h.reader.Plan(ctx, n-1); err != nil {
			return nil, h.notRetained(ctx, place, err)
		}
	}
	switch d := p.Decision; {
	case d.Revision == "":
		return nil, fault.New(CodeNoRevision, place, errors.New("it stands for what was read before a fork, and was never run"),
			"replay a later batch, or this one from the checkpoint that was forked")
	case d.Semantics != engine.Semantics:
		return nil, fault.New(engine.CodeNewerSemantics, place,
			fmt.Errorf("the host changed: it was decided under semantics %d, by %s; this program has %d", d.Semantics, engine.HostText(d.Host), engine.Semantics),
			"replay it with the version that decided it")
	}
	return p, nil
}

// missing reports whether a record was never written, or is gone.
func missing(err error) bool {
	coded, ok := errors.AsType[*checkpoint.Error](err)
	return ok && coded.ErrCode == checkpoint.CodeMissing
}

func (h *History) notRetained(ctx context.Context, place string, err error) error {
	if !missing(err) {
		return err
	}
	oldest, newest, kerr := h.reader.Kept(ctx)
	if kerr != nil {
		return kerr
	}
	kept := "none is"
	if newest != checkpoint.NoBatch {
		kept = fmt.Sprintf("batches %d to %d are", oldest, newest)
	}
	return fault.New(engine.CodeNotRetained, place, fmt.Errorf("its plan, or the plan before it, is not kept: %s", kept),
		"take one that `wasmill checkpoint show` lists; `retention` in the job file says how many are kept")
}

func (h *History) prepare(ctx context.Context, p engine.Past, swap map[string]sandbox.Binary) (*Rerun, error) {
	canonical, err := h.reader.Revision(ctx, p.Decision.Revision)
	if err != nil {
		return nil, err
	}
	from := past{
		canonical: canonical, revision: p.Decision.Revision, sourceDir: h.reader.SourceDir, module: h.reader.Module, swap: swap,
	}
	r := &Rerun{Past: p, history: h}
	if r.program, r.graph, r.policy, err = h.program.asOf(ctx, from, nil); err != nil {
		return nil, err
	}
	if hasKeys(r.graph) || p.Decision.State != "" {
		if err := h.before(ctx, &r.Past); err != nil {
			return nil, err
		}
	}
	r.changes, err = r.program.since(canonical)
	return r, err
}

// With prepares the same batch with another module for one transform; name may be "" where the batch had one alone.
func (r *Rerun) With(ctx context.Context, name string, b sandbox.Binary) (*Rerun, error) {
	var names []string
	for i := range r.program.Job.Transforms {
		names = append(names, r.program.Job.Transforms[i].Name)
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if r.program.loaded[name] == nil {
		what := fmt.Errorf("the batch had no transform %q", name)
		if name == "" {
			what = fmt.Errorf("the batch had %d transforms, and none is named", len(names))
		}
		return nil, fault.New(CodeNoTransform, fmt.Sprintf("batch %d", r.Past.Plan.Batch), what,
			"name one of its transforms: "+strings.Join(names, ", "))
	}
	return r.history.prepare(ctx, r.Past, map[string]sandbox.Binary{name: b})
}

// Module returns the digest of the module that a transform runs.
func (r *Rerun) Module(transform string) string {
	if l := r.program.loaded[transform]; l != nil {
		return l.module.Info().Digest
	}
	return ""
}

// Run runs the batch.
func (r *Rerun) Run(ctx context.Context, tee engine.Tee) (*engine.Replayed, error) {
	return engine.Replay(ctx, r.graph, r.policy, r.Past.Decision.Revision, r.Past, r.program.env.Workers, tee)
}

// Host is who runs the batch again.
func (r *Rerun) Host() checkpoint.Host { return r.program.env.host() }

// Prove runs the batch and compares it with its decision. Where they differ the error says which of source, transform and
// host has changed; what it came to is returned all the same.
func (r *Rerun) Prove(ctx context.Context) (*engine.Replayed, error) {
	got, err := r.Run(ctx, nil)
	if err != nil {
		return nil, err
	}
	differs := engine.Compare(&r.Past, got, r.Host(), r.changes)
	f, ok := errors.AsType[*fault.Error](differs)
	if !ok || f.ErrCode != engine.CodeReplayHost {
		return got, differs
	}
	again, err := r.Run(ctx, nil)
	switch {
	case err != nil:
		return got, err
	case !sameDigests(again.Outputs, got.Outputs):
		return got, fault.New(f.ErrCode, f.Place, fmt.Errorf("%w; a second run gave yet another outcome: something is not deterministic", f.Err),
			"find the transform with `wasmill transform check`, and report it: no module can be so by itself")
	}
	return got, fault.New(f.ErrCode, f.Place, fmt.Errorf("%w; a second run gave the same again", f.Err), f.WayOut)
}

func sameDigests(a, b map[string]checkpoint.Digest) bool {
	if len(a) != len(b) {
		return false
	}
	for name, d := range a {
		if b[name] != d {
			return false
		}
	}
	return true
}

// SinkNames lists the batch's sinks in the order of the job file.
func (r *Rerun) SinkNames() []string {
	var names []string
	for i := range r.graph.Sinks {
		names = append(names, r.graph.Sinks[i].Name)
	}
	return names
}

// SourceNames lists the batch's sources, sorted.
func (r *Rerun) SourceNames() []string {
	var names []string
	for i := range r.graph.Sources {
		names = append(names, r.graph.Sources[i].Name)
	}
	sort.Strings(names)
	return names
}
