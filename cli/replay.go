package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/source"
)

func replayCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "replay",
		Usage:     "run a retained batch again and prove that it comes to the same, or show what another module would give",
		ArgsUsage: "BATCH [JOB.yaml]",
		Description: "Runs with the modules and the revision that decided the batch, read-only; the job may be running. A batch that comes to " +
			"something else is a failure, which names what has changed.\nWith --module another module takes the place of a transform's, " +
			"and --diff shows the records that differ; it exits with 3 when there are any.",
		Flags: append(engineFlags(),
			outputFlag(),
			&ucli.IntFlag{Name: "times", Value: 1, Usage: "prove it so many times"},
			&ucli.StringFlag{Name: "module", Usage: "`[TRANSFORM=]FILE.wasm`, to run in its place"},
			&ucli.BoolFlag{Name: "diff", Usage: "with --module: show the records that differ, sink by sink"},
			&ucli.IntFlag{Name: "limit", Value: 20, Usage: "with --diff: records shown for each sink"},
		),
		Action: e.tidy(e.replay),
	}
}

// replayArgs are the arguments of a replay.
type replayArgs struct {
	batch     checkpoint.BatchID
	file      string // of the job
	output    string
	times     int
	transform string // "" the only one
	module    string // "" none
	diff      bool
	limit     int
}

func replayArgsOf(c *ucli.Context) (a replayArgs, err error) {
	if a.output, err = outputOf(c); err != nil {
		return a, err
	}
	a.file = DefaultJobFile
	number := ""
	switch args := c.Args(); args.Len() {
	case 0:
		return a, usagef(c, "name a batch")
	case 1:
		number = args.First()
	case 2:
		number, a.file = args.First(), args.Get(1)
		if isNumber(args.Get(1)) && !isNumber(args.First()) {
			number, a.file = args.Get(1), args.First()
		}
	default:
		return a, usagef(c, "a batch and a job file, not %d arguments", args.Len())
	}
	if a.batch, err = batchOf(c, number); err != nil {
		return a, err
	}
	a.times, a.diff, a.limit, a.module = c.Int("times"), c.Bool("diff"), c.Int("limit"), c.String("module")
	if name, file, ok := strings.Cut(a.module, "="); ok {
		a.transform, a.module = name, file
	}
	switch {
	case a.times < 1 || a.limit < 0:
		return a, usagef(c, "--times must be at least 1 and --limit at least 0")
	case a.diff && a.module == "":
		return a, usagef(c, "--diff needs --module: what to compare with")
	case a.module != "" && a.times > 1:
		return a, usagef(c, "--times proves a batch; another module has nothing to prove")
	}
	return a, nil
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (e *Env) replay(c *ucli.Context) (err error) {
	a, err := replayArgsOf(c)
	if err != nil {
		return err
	}
	j, err := e.loadJob(a.file)
	if err != nil {
		return err
	}
	eng, err := e.newEngine(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(ctx))) }()
	history, err := pipeline.OpenHistory(ctx, j, e.pipelineEnv(c, eng, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, history.Close(context.WithoutCancel(ctx))) }()
	batch, err := history.Batch(ctx, a.batch)
	if err != nil {
		return err
	}
	if a.module == "" {
		return replayHint(e.prove(ctx, a, batch))
	}
	binary, err := e.readModule(a.module)
	if err != nil {
		return err
	}
	other, err := batch.With(ctx, a.transform, binary)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == pipeline.CodeNoTransform && a.transform == "" {
		return usagef(c, "--module %s: %v; %s, as --module TRANSFORM=%s", a.module, f.Err, f.WayOut, a.module)
	}
	if err != nil {
		return err
	}
	return replayHint(e.compareRuns(ctx, a, batch, other))
}

// replayHint is the way out of a replay whose input is not what it was. A source's own is that of a job, which starts again.
func replayHint(err error) error {
	_, changed := errors.AsType[*source.ChangedError](err)
	if f, ok := errors.AsType[*fault.Error](err); ok && changed {
		f.WayOut = "put the input back as it was when the batch was planned, and replay it again; or replay a batch whose input is whole"
	}
	return err
}

// replayShown is what replay prints as JSON.
type replayShown struct {
	Batch    int64                        `json:"batch"`
	Revision string                       `json:"revision"`
	Proven   bool                         `json:"proven"`
	Times    int                          `json:"times"`
	Decided  string                       `json:"decidedDigest"`
	Digest   string                       `json:"digest"`
	Sources  map[string]checkpoint.Digest `json:"sources"`
	Sinks    map[string]checkpoint.Digest `json:"sinks"`
	State    string                       `json:"state,omitempty"` // digest of what the batch changed of it
	// By says who decided the batch and who ran it again; nil where the decision does not say.
	By  *checkpoint.Host `json:"decidedBy,omitempty"`
	Now checkpoint.Host  `json:"replayedBy"`
}

// prove runs the batch as often as asked and prints what it came to, also where that is not what was decided.
func (e *Env) prove(ctx context.Context, a replayArgs, batch *pipeline.Rerun) error {
	d := batch.Past.Decision
	shown := replayShown{Batch: int64(a.batch), Revision: d.Revision, Decided: d.Digest, Now: batch.Host()}
	if d.Host != (checkpoint.Host{}) {
		shown.By = &d.Host
	}
	var differs error
	var got *engine.Replayed
	for shown.Times < a.times && differs == nil {
		if got, differs = batch.Prove(ctx); got == nil {
			return differs
		}
		shown.Times++
	}
	shown.Proven, shown.Digest, shown.Sources, shown.Sinks = differs == nil, got.Digest, got.Inputs, got.Outputs
	shown.State = got.State
	var err error
	if a.output == outputJSON {
		err = e.printJSON(shown)
	} else {
		err = shown.page(batch).print(e.Stdout)
	}
	return errors.Join(differs, err)
}

func (s *replayShown) page(batch *pipeline.Rerun) *page {
	p := &page{}
	d := batch.Past.Decision
	p.row("batch", s.Batch)
	p.row("revision", s.Revision)
	p.row("decided", s.Decided, "by "+engine.HostText(d.Host))
	p.row("replayed", s.Digest, map[bool]string{true: "the same, " + plural(int64(s.Times), "time"), false: "DIFFERENT"}[s.Proven])
	p.line("")
	row := func(kind, name string, want, got checkpoint.Digest) {
		word := "same"
		if want != got {
			word = fmt.Sprintf("DIFFERENT: decided were %s %s", plural(want.Records, "record"), want.XXH3)
		}
		p.row(kind, name, plural(got.Records, "record"), got.XXH3, word)
	}
	for _, name := range batch.SourceNames() {
		row("source", name, d.Inputs[name], s.Sources[name])
	}
	for _, name := range batch.SinkNames() {
		row("sink", name, d.Outputs[name], s.Sinks[name])
	}
	if d.State != "" || s.State != "" {
		p.row("state", "", "changes", orNone(s.State), map[bool]string{true: "same", false: "DIFFERENT: decided were " + orNone(d.State)}[d.State == s.State])
	}
	return p
}

// diffShown is what a replay with another module prints as JSON.
type diffShown struct {
	Batch  int64       `json:"batch"`
	Module string      `json:"module"`
	Same   bool        `json:"same"`
	Sinks  []*diffSink `json:"sinks"`
}

type diffSink struct {
	Name    string            `json:"name"`
	Same    bool              `json:"same"`
	Before  checkpoint.Digest `json:"before"`
	After   checkpoint.Digest `json:"after"`
	Removed int64             `json:"removed"`
	Added   int64             `json:"added"`
	Moved   int64             `json:"moved"`
	Records []diffRecord      `json:"records,omitempty"`
}

type diffRecord struct {
	Op     string `json:"op"` // "-" only before, "+" only with the other module
	Lane   int    `json:"lane"`
	Record any    `json:"record"` // a text that is cut, or the record
}

// compareRuns runs the batch with its own modules and with another one.
func (e *Env) compareRuns(ctx context.Context, a replayArgs, before, after *pipeline.Rerun) error {
	limit := 0
	if a.diff {
		limit = a.limit
	}
	diffs, err := pipeline.Diff(ctx, before, after, limit)
	if err != nil {
		return err
	}
	shown := &diffShown{Batch: int64(a.batch), Module: a.module, Same: true}
	for i := range diffs {
		s := showDiff(&diffs[i])
		shown.Same = shown.Same && s.Same
		shown.Sinks = append(shown.Sinks, s)
	}
	if a.output == outputJSON {
		err = e.printJSON(shown)
	} else {
		err = shown.page(diffs, a.diff).print(e.Stdout)
	}
	if err == nil && !shown.Same {
		return errFindings
	}
	return err
}

func showDiff(d *pipeline.SinkDiff) *diffSink {
	s := &diffSink{
		Name: d.Sink, Same: d.Same(), Before: d.Before, After: d.After, Removed: d.Removed, Added: d.Added, Moved: d.Moved,
	}
	for _, l := range d.Lines {
		r := diffRecord{Op: opOf(l), Lane: l.Lane, Record: json.RawMessage(l.Record)}
		if l.Cut {
			r.Record = l.Record
		}
		s.Records = append(s.Records, r)
	}
	return s
}

func opOf(l pipeline.DiffLine) string {
	if l.Added {
		return "+"
	}
	return "-"
}

func (s *diffShown) page(diffs []pipeline.SinkDiff, lines bool) *page {
	p := &page{}
	p.line("batch %d with %s", s.Batch, s.Module)
	for _, k := range s.Sinks {
		word := "same"
		if !k.Same {
			word = fmt.Sprintf("%s removed, %s added, %s at another place", thousands(k.Removed), thousands(k.Added), thousands(k.Moved))
		}
		p.row("sink", k.Name, plural(k.Before.Records, "record"), "->", plural(k.After.Records, "record"), word)
	}
	for i := range diffs {
		d := &diffs[i]
		if !lines || d.Same() {
			continue
		}
		p.line("")
		p.line("--- %s, as decided", d.Sink)
		p.line("+++ %s, with %s", d.Sink, s.Module)
		for _, l := range d.Lines {
			cut := ""
			if l.Cut {
				cut = "..."
			}
			p.line("%s %s%s", opOf(l), l.Record, cut)
		}
		if more := d.Removed + d.Added - int64(len(d.Lines)); more > 0 {
			p.line("  %s more; --limit shows more of them", plural(more, "record"))
		}
	}
	return p
}
