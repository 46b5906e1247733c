package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"runtime"
	"sync"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sink"
	kafkasink "github.com/wasmill/wasmill/host/sink/kafka"
	sqlsink "github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
)

// Env is what a pipeline gets from outside: the machine, as far as it may see it.
type Env struct {
	Files   durable.Files
	Sandbox sandbox.Engine
	Clock   engine.Clock
	Stdout  io.Writer // what stdout sinks write to
	Holder  string    // who holds the checkpoint, for people
	NewID   func() string
	Unique  func() string // 8 hex digits, never the same twice
	Log     *slog.Logger
	Events  *engine.Events
	// LeftOut is told what a source goes on without, beside the log. It must be quick; nil is not told.
	LeftOut func(*source.LeftOutError)
	// Lag is told at each plan how far a source of a cluster is read. It must be quick; nil is not told.
	Lag     func(source string, parts []Lag)
	Workers int
	Version string // of the program, named in files and decisions
	// Other is another engine, on which the share VerifyShare of the batches is run once more and compared before anything
	// of them is staged. Nil: nothing is verified.
	Other       sandbox.Engine
	VerifyShare float64
	// AllowChanges lets a job open that has changed in a way that loses, repeats or mixes something.
	AllowChanges bool
	// Stock finds a transform that comes with the program, by name; nil has none.
	Stock func(name string) (sandbox.Binary, bool)
	// Update are the transforms that take the program's stock module instead of the one that ran first.
	Update []string
	// State is told of what the state store does in the background. Without a Warning it takes that of Events.
	State statestore.Events
	// Backend is what keeps applied state; nil is Badger.
	Backend statestore.Opener
	// Scratch makes a folder for temporary files, for the state of a running job; done removes it. Nil: that is not looked at.
	Scratch func() (dir string, done func() error, err error)
	// TuneState changes the sizes that the state store is opened with, for tests; nil leaves them.
	TuneState func(*statestore.Config)
	// Database stands between a target and the database that its connection leads to, for tests; nil leaves it.
	Database func(sqlsink.Database) sqlsink.Database
}

// Program is a job whose modules are compiled and started: all that can be known of it without its checkpoint.
type Program struct {
	Job      *job.Job
	Revision string // sha256 of Canonical
	// Canonical is the revision: canonical JSON of all that determines output.
	Canonical []byte
	env       Env
	loaded    map[string]*loaded // by transform
	revived   []*loaded          // of earlier revisions
	verifying map[string]*loaded // on the other engine, by transform
	stock     stockModules
	tables    tables
	clusters  map[string]kafkaconn.Config // by name and settings
}

// host is who runs batches.
func (e *Env) host() checkpoint.Host {
	return checkpoint.Host{Version: e.Version, Engine: e.Sandbox.Kind(), Arch: runtime.GOARCH}
}

// Load compiles and starts the job's modules.
func Load(ctx context.Context, j *job.Job, env Env) (*Program, error) {
	p := &Program{Job: j, env: env, loaded: map[string]*loaded{}}
	if err := p.readLocked(ctx); err != nil {
		return nil, err
	}
	for i := range j.Transforms {
		t := &j.Transforms[i]
		binary, err := p.binary(t)
		if err == nil {
			p.loaded[t.Name], err = start(ctx, env.Sandbox, t, binary, p.guestLog(t.Name))
		}
		if err != nil {
			return nil, errors.Join(err, p.Close(ctx))
		}
	}
	err := p.check(ctx)
	if err == nil {
		err = p.loadOther(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// check holds the job against the manifests of its modules, finds the columns of sinks that have no schema, and computes the
// revision.
func (p *Program) check(ctx context.Context) error {
	facts := map[string]job.ModuleFacts{}
	for name, l := range p.loaded {
		facts[name] = job.ModuleFacts{Manifest: l.program.Manifest(), Stateful: l.module.Info().Stateful}
	}
	p.Job.TakeColumns(facts)
	if err := p.Job.CheckModules(facts); err != nil {
		return err
	}
	if err := p.readTables(ctx); err != nil {
		return err
	}
	if err := p.revise(); err != nil {
		return err
	}
	_, _, err := p.sketch()
	return err
}

// binary finds a transform's module: a file, one that the checkpoint keeps, or one that comes with the program.
func (p *Program) binary(t *job.Transform) (sandbox.Binary, error) {
	if t.Module.Stock != "" {
		return p.stockBinary(t)
	}
	if t.Module.SHA256 != "" {
		b, err := ReadBinary(p.env.Files, path.Join(p.Job.Checkpoint, "modules", t.Module.SHA256+".wasm"))
		if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeModuleMissing {
			f.Err = errors.New("there is no such module: sha256: names one that ran with this checkpoint, and its own modules/ is all that is searched")
			f.WayOut = "name the module's file the first time, as `module: ./NAME.wasm`; the names in modules/ are the digests of those that are kept"
		}
		return b, err
	}
	return ReadBinary(p.env.Files, t.Module.Path)
}

func (p *Program) revise() error {
	in := job.RevisionInputs{ABI: abi.Version, Semantics: engine.Semantics, Groups: abi.KeyGroups, Modules: map[string]job.ModuleInputs{}}
	for name, l := range p.loaded {
		in.Modules[name] = job.ModuleInputs{SHA256: l.module.Info().Digest, Image: l.program.Image(), Manifest: l.program.Manifest()}
	}
	var err error
	if p.Canonical, p.Revision, err = p.Job.Revision(in); err != nil {
		return fmt.Errorf("compute the revision: %w", err)
	}
	return nil
}

func (p *Program) guestLog(transform string) func(int, string) {
	if p.env.Log == nil {
		return nil
	}
	log := p.env.Log.With("transform", transform)
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	return func(level int, text string) {
		log.Log(context.Background(), levels[min(max(level, 0), len(levels)-1)], text)
	}
}

// sketch wires the graph with targets that are never opened, to find what the manifests contradict.
func (p *Program) sketch() (*engine.Graph, engine.ErrorPolicy, error) {
	targets, err := p.targets(p.Job)
	if err != nil {
		return nil, engine.ErrorPolicy{}, err
	}
	return wire(p.Job, p.parts(nil, targets))
}

// Graph is the job's graph without sources and with targets that are not open: for looking at.
func (p *Program) Graph() (*engine.Graph, error) {
	g, _, err := p.sketch()
	return g, err
}

func (p *Program) parts(sources map[string]source.Source, targets map[string]sink.Target) parts {
	ps := parts{sources: sources, targets: targets, programs: map[string]sandbox.Program{}, modules: map[string]string{}}
	for name, l := range p.loaded {
		ps.programs[name] = l.program
		ps.modules[name] = l.module.Info().Digest
	}
	return ps
}

// Close gives the modules up.
func (p *Program) Close(ctx context.Context) error {
	var errs []error
	for _, l := range p.loaded {
		if l != nil {
			errs = append(errs, l.close(ctx))
		}
	}
	for _, l := range p.verifying {
		errs = append(errs, l.close(ctx))
	}
	for _, l := range p.revived {
		errs = append(errs, l.close(ctx))
	}
	return errors.Join(errs...)
}

// Open opens the job's checkpoint, sources and targets and brings its last batch to an end.
func (p *Program) Open(ctx context.Context) (*Pipeline, error) {
	allowed, err := p.consent(ctx)
	if err != nil {
		return nil, err
	}
	log, err := checkpoint.Open(ctx, p.env.Files, p.Job.Checkpoint, p.logOptions())
	if err != nil {
		return nil, err
	}
	pl := &Pipeline{program: p, log: log, allowed: allowed}
	if err := pl.open(ctx); err != nil {
		return nil, errors.Join(err, pl.Close())
	}
	return pl, nil
}

func (p *Program) logOptions() checkpoint.Options {
	return checkpoint.Options{
		Job: p.Job.Name, Holder: p.env.Holder, NewID: p.env.NewID, Unique: p.env.Unique,
		Clock: func() int64 { return p.env.Clock.Now().UnixMilli() },
	}
}

// Pipeline is a job that runs.
type Pipeline struct {
	program *Program
	log     *checkpoint.Log
	sources map[string]source.Source
	targets map[string]sink.Target
	store   *statestore.Store // nil when no stage has, or had, keys
	engine  *engine.Engine
	doubts  sync.WaitGroup
	allowed bool // since the last decision the job has changed in a way that needed the user's word
}

// QueryID is the identity of the job's progress.
func (pl *Pipeline) QueryID() string { return pl.log.QueryID() }

// Allowed reports whether the job was opened with a change, since its last batch, that it was opened for by Env.AllowChanges
// alone. The next batch makes it.
func (pl *Pipeline) Allowed() bool { return pl.allowed }

// Run runs batches until the trigger is used up or stop is closed.
func (pl *Pipeline) Run(ctx context.Context, stop <-chan struct{}) error {
	return stateFault(pl.engine.Run(ctx, stop))
}

// LastBatch is the last sealed batch.
func (pl *Pipeline) LastBatch() checkpoint.BatchID { return pl.engine.LastBatch() }

// StateStats is what the state store says of itself; false where no stage has, or had, keys.
func (pl *Pipeline) StateStats() (statestore.Stats, bool) {
	if pl.store == nil {
		return statestore.Stats{}, false
	}
	return pl.store.Stats(), true
}

func (pl *Pipeline) open(ctx context.Context) error {
	p := pl.program
	if err := pl.keep(ctx); err != nil {
		return err
	}
	var err error
	if pl.sources, err = p.sources(p.Job, pl.log.SourceDir, false); err != nil {
		return err
	}
	if p.env.AllowChanges && !pl.allowed {
		if pl.allowed, err = pl.moved(ctx); err != nil {
			return err
		}
	}
	if pl.targets, err = p.targets(p.Job); err != nil {
		return err
	}
	g, policy, err := wire(p.Job, p.parts(pl.sources, pl.targets))
	if err != nil {
		return err
	}
	stateful, err := p.env.needsStore(g, p.Job.Checkpoint)
	if err != nil {
		return err
	}
	if stateful {
		if pl.store, err = p.env.openStore(ctx, p.Job.Checkpoint, pl.log.QueryID()); err != nil {
			return err
		}
	}
	verify, err := p.verify(pl.sources, pl.targets)
	if err != nil {
		return err
	}
	pl.engine, err = engine.Open(ctx, engine.Config{
		Host: p.env.host(), Verify: verify,
		Job: p.Job.Name, Graph: g, Revision: p.Revision, Log: pl.log, Store: pl.store, Clock: p.env.Clock, NewAttempt: p.env.Unique,
		Errors:    policy,
		Trigger:   trigger(p.Job),
		Retention: retention(p.Job), Spool: engine.SpoolPolicy(p.Job.Spool), Workers: p.env.Workers, Events: p.env.Events, Revive: pl.revive,
	})
	if err != nil {
		return stateFault(err)
	}
	pl.doubts.Go(func() { pl.doubt(ctx) })
	return nil
}

// moved reports whether a source does not lie where it was planned.
func (pl *Pipeline) moved(ctx context.Context) (bool, error) {
	plan, decision, err := pl.log.Tail(ctx)
	if torn := (*checkpoint.TornError)(nil); err != nil && !errors.As(err, &torn) {
		return false, err
	}
	var before *checkpoint.Plan // of a batch that is not decided
	if plan != nil && decision == nil && plan.Batch > 0 {
		if before, err = pl.log.Plan(ctx, plan.Batch-1); err != nil {
			return false, err
		}
	}
	for i := range pl.program.Job.Sources {
		conf := &pl.program.Job.Sources[i]
		placed, ok := pl.sources[conf.Name].(source.Placed)
		if !ok {
			continue
		}
		at := plan.Position(conf.Name)
		if plan != nil && decision == nil && engine.Outdated(plan, conf.Name, reads(conf)) {
			at = before.Position(conf.Name) // it is planned anew
		}
		if _, is := errors.AsType[*source.MovedError](placed.Moved(at)); is {
			return true, nil
		}
	}
	return false, nil
}

// doubtTime is how long the settings of clusters are looked at, at most.
const doubtTime = 5 * time.Second

// doubt reports the settings of clusters that can break what a target promises. The first batch does not wait for it.
func (pl *Pipeline) doubt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doubtTime)
	defer cancel()
	events := pl.program.env.Events
	if events == nil || events.Warning == nil {
		return
	}
	for _, t := range distinct(pl.targets) {
		k, ok := t.(interface {
			Warnings(ctx context.Context) ([]kafkasink.Warning, error)
		})
		if !ok {
			continue
		}
		op := "settings of connection " + t.ID()
		found, err := k.Warnings(ctx)
		if err != nil {
			events.Warning(op, err)
		}
		for _, w := range found {
			events.Warning(op, errors.New(w.String()))
		}
	}
}

func trigger(j *job.Job) engine.Trigger {
	t := j.Trigger
	return engine.Trigger{AvailableNow: t.AvailableNow, Interval: t.Interval, Gather: engine.Gather{Records: t.MinRecords, Delay: t.MaxDelay}}
}

// retention is the job's, which is complete: an age of 0 keeps nothing but the newest batches.
func retention(j *job.Job) checkpoint.Policy {
	return checkpoint.Policy{Keep: j.Retention.Batches, AgeMS: j.Retention.Age.Milliseconds(), Max: checkpoint.DefaultPolicy().Max}
}

// keep makes the revision and its modules durable before a decision can need them.
func (pl *Pipeline) keep(ctx context.Context) error {
	for _, l := range pl.program.loaded {
		if err := pl.log.PutModule(ctx, l.module.Info().Digest, l.binary.Stored()); err != nil {
			return err
		}
	}
	if err := errors.Join(pl.lock(ctx), pl.lockTables(ctx)); err != nil {
		return err
	}
	return pl.log.PutRevision(ctx, pl.program.Revision, pl.program.Canonical)
}

// Close gives up what is open. The checkpoint may be opened again afterwards.
func (pl *Pipeline) Close() error {
	var errs []error
	pl.doubts.Wait()
	for _, s := range pl.sources {
		errs = append(errs, s.Close())
	}
	for _, t := range distinct(pl.targets) {
		errs = append(errs, t.Close())
	}
	if pl.store != nil {
		errs = append(errs, pl.store.Close())
	}
	errs = append(errs, pl.log.Close())
	return errors.Join(errs...)
}
