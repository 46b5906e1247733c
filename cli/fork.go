package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// CodeNoSink is the code of a resolution for a sink that the batch is not decided for.
const CodeNoSink = "checkpoint.no_such_sink"

func (e *Env) forkCommand(where string) *ucli.Command {
	return &ucli.Command{
		Name: "fork", Usage: "begin a new checkpoint, under a new query id, where a batch of another one ended", ArgsUsage: checkpointPlace,
		Description: where + "\nThe old checkpoint is only read. Sinks take the new query for another one: give it places of its own. What stages with keys have " +
			"kept does not go along: they begin empty. " +
			"For a checkpoint of Spark's, name its sources with --source, in the order of their numbers.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "to", Usage: "the new checkpoint: a `DIR` that is new or empty"},
			&ucli.Int64Flag{Name: "at", Value: int64(checkpoint.NoBatch), DefaultText: "the last one", Usage: "the decided `BATCH` whose end it begins at"},
			&ucli.StringFlag{Name: "job", Usage: "the `NAME` of the job that goes on with it; default: the one of the old checkpoint"},
			&ucli.StringSliceFlag{Name: "source", Usage: "a source's `NAME`, for a checkpoint of Spark's"},
			&ucli.StringSliceFlag{Name: "end", Usage: "`SOURCE=POSITION`: begin elsewhere, with a line as in offsets/N"},
			outputFlag(),
		},
		Action: func(c *ucli.Context) error { return e.fork(c) },
	}
}

func (e *Env) fork(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	to := c.String("to")
	ends, err := endsOf(c)
	switch {
	case err != nil:
		return err
	case to == "":
		return usagef(c, "name the new checkpoint with --to")
	case c.IsSet("at") && c.Int64("at") < 0:
		return usagef(c, "--at %d is not the number of a batch", c.Int64("at"))
	}
	at, err := e.checkpointOf(c, c.Args().Slice())
	if err != nil {
		return err
	}
	job := c.String("job")
	if job == "" {
		s, err := checkpoint.Show(c.Context, e.Files, at.dir)
		if err != nil {
			return err
		}
		if job = s.Job; job == "" {
			job = at.job
		}
	}
	if job == "" {
		return usagef(c, "the checkpoint does not say whose it is: name the job with --job")
	}
	req := checkpoint.ForkRequest{
		Batch: checkpoint.BatchID(c.Int64("at")), Names: c.StringSlice("source"), Ends: ends,
		Options: e.checkpointOptions(c, job),
	}
	done, err := checkpoint.Fork(c.Context, e.Files, at.dir, to, req)
	if err != nil {
		return err
	}
	if output == outputJSON {
		return e.printJSON(done)
	}
	p := &page{}
	p.row("forked", done.From)
	p.row("into", to)
	p.row("job", job)
	p.row("query", done.QueryID)
	for _, s := range done.Sources {
		p.row(fmt.Sprintf("source %s", s.Name), "from "+shortened(s.Line, 120))
	}
	if _, err := e.Files.Stat(path.Join(at.dir, "state")); err == nil {
		p.line("State is not carried over: stages with keys begin empty there. `wasmill state export` shows what they have kept.")
	}
	p.line("Put %s under `checkpoint` in the job file, and give its sinks places of their own.", to)
	return p.print(e.Stdout)
}

// endsOf are the positions that --end names.
func endsOf(c *ucli.Context) (map[string]checkpoint.Position, error) {
	ends := map[string]checkpoint.Position{}
	for _, end := range c.StringSlice("end") {
		name, line, ok := strings.Cut(end, "=")
		switch {
		case !ok || name == "":
			return nil, usagef(c, "--end %q: it is SOURCE=POSITION", end)
		case strings.ContainsAny(line, "\r\n") || !json.Valid([]byte(line)):
			return nil, usagef(c, "--end %q: a position is one line of JSON, as in offsets/N", end)
		}
		ends[name] = checkpoint.Position{Line: line}
	}
	return ends, nil
}

func (e *Env) resolveCommand(where string) *ucli.Command {
	return &ucli.Command{
		Name: "resolve", Usage: "choose for a sink that cannot publish the last, decided batch", ArgsUsage: "BATCH " + checkpointPlace,
		Description: where + "\nLeaves a record that is kept; the next start acts on it. A skip cannot be taken back; a force that came to nothing can become one.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "sink", Usage: "the `NAME` of the sink"},
			&ucli.BoolFlag{Name: "skip", Usage: "the sink does without the batch"},
			&ucli.BoolFlag{Name: "force", Usage: "the sink takes the batch as it comes out now, whatever the digests say"},
		},
		Action: func(c *ucli.Context) error { return e.resolve(c) },
	}
}

func (e *Env) resolve(c *ucli.Context) error {
	args, sink := c.Args().Slice(), c.String("sink")
	if len(args) == 2 && isNumber(args[1]) && !isNumber(args[0]) {
		args[0], args[1] = args[1], args[0]
	}
	switch {
	case len(args) == 0:
		return usagef(c, "name a batch")
	case sink == "":
		return usagef(c, "name the sink with --sink")
	case c.Bool("skip") == c.Bool("force"):
		return usagef(c, "choose one of --skip and --force")
	}
	batch, err := batchOf(c, args[0])
	if err != nil {
		return err
	}
	at, err := e.checkpointOf(c, args[1:])
	if err != nil {
		return err
	}
	action := checkpoint.Skip
	if c.Bool("force") {
		action = checkpoint.Force
	}
	if err := e.decidedFor(c, at.dir, batch, sink); err != nil {
		return err
	}
	if err := checkpoint.Resolve(c.Context, e.Files, at.dir, batch, sink, action, e.checkpointOptions(c, at.job)); err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "batch %d, sink %s: %s is written down; the next `wasmill run` acts on it\n", batch, printable(sink), action)
	return nil
}

// decidedFor checks that the batch, if it is decided, is decided for that sink. Whether it waits at all is for Resolve to
// say.
func (e *Env) decidedFor(c *ucli.Context, dir string, batch checkpoint.BatchID, sink string) error {
	r, err := checkpoint.OpenReader(c.Context, e.Files, dir)
	if err != nil {
		return err
	}
	d, err := r.Decision(c.Context, batch)
	if coded, ok := errors.AsType[*checkpoint.Error](err); ok && coded.ErrCode == checkpoint.CodeMissing {
		return nil
	}
	if err != nil {
		return err
	}
	var names []string
	for name, o := range d.Targets {
		if o.Last == batch {
			names = append(names, name)
		}
	}
	if o, ok := d.Targets[sink]; ok && o.Last == batch {
		return nil
	}
	return fault.New(CodeNoSink, fmt.Sprintf("batch %d", batch), fmt.Errorf("it has no output for a sink %q", sink),
		"name one of its sinks: "+sortedText(names))
}
