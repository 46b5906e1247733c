package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sandbox"
)

func runCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "run",
		Usage:     "run a job",
		ArgsUsage: "[JOB.yaml]",
		Description: "Runs until the trigger is used up (availableNow) or until SIGTERM or SIGINT, which finishes the batch and exits " +
			"with 0; a second one exits at once.\nKilled at any moment, the next run goes on where this one was. Without a name it takes " +
			DefaultJobFile + ".",
		Flags: append(engineFlags(),
			&ucli.StringFlag{Name: "progress", Value: progressAuto, Usage: "auto: a line on a terminal; json: one JSON object a batch, on stdout; none"},
			&ucli.StringFlag{Name: "listen", Usage: "`ADDRESS` for /metrics, /livez and /readyz, such as 127.0.0.1:9090"},
			verifyFlag(),
			&ucli.BoolFlag{Name: "allow-changes", Usage: "run a job that has changed in a way that loses, repeats or mixes something: see wasmill plan"},
			&ucli.StringSliceFlag{Name: "update", Usage: "let the transform `NAME` run the stock module of this program, or the sink NAME take the schema that its table has now, instead of what came first"},
			&ucli.StringFlag{Name: "log", Value: "text", Usage: "text or json, on stderr"},
			&ucli.StringFlag{Name: "log-level", Value: "info", Usage: "debug, info, warn or error"},
		),
		Action: func(c *ucli.Context) error { return e.run(c) },
	}
}

// checkUpdate demands that what is to be updated is a transform that runs a stock module, or a sink that takes its table's
// schema.
func checkUpdate(c *ucli.Context, j *job.Job) error {
	var stock []string
	for i := range j.Transforms {
		if j.Transforms[i].Module.Stock != "" {
			stock = append(stock, j.Transforms[i].Name)
		}
	}
	for i := range j.Sinks {
		if j.Sinks[i].TakesTableSchema() {
			stock = append(stock, j.Sinks[i].Name)
		}
	}
	for _, name := range c.StringSlice("update") {
		if !slices.Contains(stock, name) {
			return usagef(c, "--update %q: no transform of that name runs a stock module, and no sink of that name takes its table's schema%s", name, didYouMean(name, stock, ""))
		}
	}
	return nil
}

// jobFileOf is the job file that a command names.
func jobFileOf(c *ucli.Context) (string, error) {
	switch c.Args().Len() {
	case 0:
		return DefaultJobFile, nil
	case 1:
		return c.Args().First(), nil
	}
	return "", usagef(c, "one job file, not %d arguments", c.Args().Len())
}

// pipelineEnv is the machine as a pipeline may see it.
func (e *Env) pipelineEnv(c *ucli.Context, eng sandbox.Engine, log *slog.Logger) pipeline.Env {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return pipeline.Env{
		Files: e.Files, Sandbox: eng, Clock: systemClock{e.Now}, Stdout: e.Stdout, Log: log, Workers: c.Int("workers"),
		Holder: fmt.Sprintf("pid %d on %s since %s", os.Getpid(), host, e.Now().UTC().Format(time.RFC3339)),
		NewID:  uuid.NewString, Unique: unique, Version: buildVersions().Version, Stock: stockBinary, Scratch: e.scratch,
	}
}

// unique is 8 hex digits that no other attempt has.
func unique() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	return hex.EncodeToString(b[:])
}

// systemClock is the machine's clock.
type systemClock struct{ now func() time.Time }

func (s systemClock) Now() time.Time { return s.now() }

func (s systemClock) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Env) run(c *ucli.Context) (err error) {
	if e.getenv("GOGC") == "" {
		defer collectLater()()
	}
	file, err := jobFileOf(c)
	if err != nil {
		return err
	}
	if err := checkAddress(c); err != nil {
		return err
	}
	log, err := e.logger(c)
	if err != nil {
		return err
	}
	j, err := e.loadJob(file)
	if err != nil {
		return err
	}
	if err := checkUpdate(c, j); err != nil {
		return err
	}
	ctx, stop, done := e.signals(c.Context, log)
	defer done()
	eng, err := e.newEngine(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(ctx))) }()
	share, err := e.verifyShare(c)
	if err != nil {
		return err
	}
	r := &running{env: e, job: j, log: log, stop: stop, kind: eng.Kind(), verifies: share > 0, opened: e.hasRun(j)}
	if err := r.watch(ctx, c); err != nil {
		return err
	}
	defer func() { r.close(err) }()
	penv := e.pipelineEnv(c, eng, log)
	penv.Lag = r.metrics.lags.told
	penv.LeftOut = r.leftOut
	penv.Events, penv.AllowChanges, penv.Update = r.events(ctx), c.Bool("allow-changes"), c.StringSlice("update")
	penv.State = r.stateEvents()
	if share > 0 {
		other, err := e.engineOf(c, eng.Kind() == sandbox.KindCompiler)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Close(context.WithoutCancel(ctx))) }()
		penv.Other, penv.VerifyShare = other, share
	}
	failpoints(e, &penv)
	program, err := pipeline.Load(ctx, j, penv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close(context.WithoutCancel(ctx))) }()
	if r.state.late, err = program.LatePorts(); err != nil {
		return err
	}
	debug.FreeOSMemory() // reading and rewriting modules takes more than running them
	return r.run(ctx, program)
}

// running is one `wasmill run`.
type running struct {
	env      *Env
	job      *job.Job
	log      *slog.Logger
	stop     <-chan struct{}
	kind     string // of the engine
	verifies bool   // a share of the batches on another engine
	progress progress
	status   *status
	metrics  *metrics
	state    *stateWatch
	server   *server
	opened   bool         // it has run, now or before
	allowed  atomic.Bool  // a change that needs the user's word waits for the next batch
	sealed   atomic.Int64 // batches
}

// run opens the pipeline and lets it run. A job without an end waits for what passes, opens everything anew and recovers as
// at a start; any other error ends it, and the next start recovers.
func (r *running) run(ctx context.Context, p *pipeline.Program) error {
	var b backOff
	for {
		sealed := r.sealed.Load()
		err := r.once(ctx, p)
		if r.sealed.Load() > sealed {
			b.failed = 0
		}
		what := r.passes(err, &b)
		if what == "" {
			return err
		}
		wait := b.next()
		r.status.set(false, what+": "+err.Error())
		r.log.Error(what+": waiting", errorAttrs(err, "wait", wait)...)
		if stopped, err := r.wait(ctx, wait); stopped || err != nil {
			return err
		}
	}
}

// wait waits, unless the job is to end.
func (r *running) wait(ctx context.Context, d time.Duration) (stopped bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.stop:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	case <-t.C:
		return false, nil
	}
}

func (r *running) once(ctx context.Context, p *pipeline.Program) (err error) {
	pl, done, err := r.open(ctx, p)
	if err != nil || pl == nil {
		return err
	}
	defer done()
	r.opened = true
	r.allowed.Store(pl.Allowed())
	defer func() { err = errors.Join(err, pl.Close()) }()
	defer r.state.opened(pl.StateStats)()
	r.status.set(true, "running")
	r.log.Debug("running", "job", r.job.Name, "query", pl.QueryID(), "revision", p.Revision, "engine", r.kind)
	return pl.Run(ctx, r.stop)
}

// sameSignal is how soon after the first a second signal is taken for an echo of it: timeout(1) and terminals signal a
// process and its group.
const sameSignal = 300 * time.Millisecond

// signals gives a context for the work and a channel that closes when the job should end after its batch. A second signal
// ends the process at once.
func (e *Env) signals(parent context.Context, log *slog.Logger) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(parent)
	stop := make(chan struct{})
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGTERM, os.Interrupt)
	go func() {
		select {
		case s := <-got:
			log.Info("finishing the batch; again to stop at once", "signal", s.String())
			close(stop)
		case <-ctx.Done():
			return
		}
		for first := e.Now(); ; {
			select {
			case s := <-got:
				if e.Now().Sub(first) < sameSignal {
					continue
				}
				log.Warn("stopped at once", "signal", s.String())
				e.exit(ExitFailure)
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stop, func() {
		signal.Stop(got)
		cancel()
	}
}

// logger writes to stderr.
func (e *Env) logger(c *ucli.Context) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return nil, usagef(c, "--log-level %q: it is debug, info, warn or error", c.String("log-level"))
	}
	opts := &slog.HandlerOptions{Level: level}
	switch c.String("log") {
	case "text":
		return slog.New(slog.NewTextHandler(e.Stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(e.Stderr, opts)), nil
	}
	return nil, usagef(c, "--log %q: it is text or json", c.String("log"))
}
