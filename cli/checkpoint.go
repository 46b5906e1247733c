package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
)

// checkpointPlace is how the commands below name what they work on.
const checkpointPlace = "[DIR|JOB.yaml]"

func checkpointCommand(e *Env) *ucli.Command {
	const where = "Takes a checkpoint directory, or a job file that names one; without either, " + DefaultJobFile + "."
	return &ucli.Command{
		Name:  "checkpoint",
		Usage: "look at a job's progress, and mend it",
		Subcommands: []*ucli.Command{
			{
				Name: "show", Usage: "show where a checkpoint stands", ArgsUsage: checkpointPlace,
				Description: where + "\nReads Spark's checkpoints too. The job may be running. Exits with 3 when something is wrong at first sight.",
				Flags:       []ucli.Flag{outputFlag()},
				Action:      func(c *ucli.Context) error { return e.checkpointShow(c) },
			},
			{
				Name: "verify", Usage: "read every record of a checkpoint and say all that is wrong", ArgsUsage: checkpointPlace,
				Description: where + "\nWith a job file, its sinks are held against the checkpoint as well. Changes nothing. Exits with 3 when something keeps the job from going on.",
				Flags:       []ucli.Flag{outputFlag()},
				Action:      func(c *ucli.Context) error { return e.checkpointVerify(c) },
			},
			e.repairCommand(where),
			e.forkCommand(where),
			e.resolveCommand(where),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return unknownCommand(c.Command.HelpName, c.Args().First(), c.Command.Subcommands)
			}
			return usagef(c, "name what to do: show, verify, repair, fork or resolve")
		},
	}
}

// checkpointAt is a checkpoint directory that a command names.
type checkpointAt struct {
	dir string
	job string // of the job file that names it, "" when the directory itself was named
	// file is that job file, nil when the directory itself was named.
	file *job.Job
}

// checkpointOf finds the checkpoint that an argument names, or that of the default job file.
func (e *Env) checkpointOf(c *ucli.Context, args []string) (checkpointAt, error) {
	name := DefaultJobFile
	switch len(args) {
	case 0:
	case 1:
		name = args[0]
	default:
		return checkpointAt{}, usagef(c, "one checkpoint, not %d arguments", len(args))
	}
	if info, err := e.Files.Stat(name); err == nil && info.Dir {
		return checkpointAt{dir: name}, nil
	}
	j, err := e.loadJob(name)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeFile {
		f.WayOut = "name a checkpoint directory, or a job file"
	}
	if err != nil {
		return checkpointAt{}, err
	}
	return checkpointAt{dir: j.Checkpoint, job: j.Name, file: j}, nil
}

// checkpointOptions are those of a command that changes a checkpoint.
func (e *Env) checkpointOptions(c *ucli.Context, job string) checkpoint.Options {
	return checkpoint.Options{
		Job: job, Holder: fmt.Sprintf("`%s`, pid %d", c.Command.HelpName, os.Getpid()), NewID: uuid.NewString, Unique: durable.Unique,
		Clock: func() int64 { return e.Now().UnixMilli() },
	}
}

func (e *Env) checkpointShow(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	at, err := e.checkpointOf(c, c.Args().Slice())
	if err != nil {
		return err
	}
	s, err := checkpoint.Show(c.Context, e.Files, at.dir)
	if err != nil {
		return err
	}
	if output == outputJSON {
		err = e.printJSON(s)
	} else {
		err = summaryPage(at.dir, s).print(e.Stdout)
	}
	if err == nil && s.Standing == checkpoint.Broken {
		return errFindings
	}
	return err
}

func summaryPage(dir string, s *checkpoint.Summary) *page {
	p := &page{}
	p.row("checkpoint", dir)
	p.row("query", orNone(s.QueryID))
	if s.Spark {
		p.row("written by", "Spark")
	} else {
		p.row("job", orNone(s.Job))
	}
	p.row("standing", s.Standing)
	p.row("", s.Words)
	if s.WatermarkMS > 0 {
		p.row("watermark", timeOf(s.WatermarkMS))
	}
	if s.Revision != "" {
		p.row("revision", s.Revision)
	}
	if s.StateBatch != nil {
		p.row("state", fmt.Sprintf("last changed in batch %d: `wasmill state ls` looks into it", *s.StateBatch))
	}
	if len(s.Sources) > 0 {
		p.line("")
		p.row("SOURCE", "NAME", "STANDS AT")
		for _, src := range s.Sources {
			p.row(src.Number, orNone(src.Name), shortened(src.Line, 120), watermarkOf(&src))
		}
	}
	if len(s.Targets) > 0 {
		p.line("")
		p.row("TARGET", "LAST DECIDED", "SEEN PUBLISHED")
		for _, t := range s.Targets {
			p.row(t.Name, batchText(t.Last), batchText(t.Published))
		}
	}
	summaryBatches(p, s)
	for _, r := range s.Resolutions {
		p.line("resolved: batch %d, sink %s: %s, at %s", r.Batch, r.Target, r.Action, timeOf(r.TimeMS))
	}
	if len(s.Superseded) > 0 {
		p.line("set aside: %s", strings.Join(s.Superseded, ", "))
	}
	if len(s.Findings) > 0 {
		findingRows(p, s.Findings)
		p.line("`wasmill checkpoint verify` reads everything and says what can be done.")
	}
	return p
}

// watermarkOf says where a source's event time stands, "" where it has none.
func watermarkOf(s *checkpoint.SourceSummary) string {
	switch {
	case s.WatermarkMS <= 0:
		return ""
	case s.Idle:
		return "watermark " + timeOf(s.WatermarkMS) + ", idle"
	}
	return "watermark " + timeOf(s.WatermarkMS)
}

func summaryBatches(p *page, s *checkpoint.Summary) {
	if len(s.Batches) == 0 {
		return
	}
	p.line("")
	p.row("BATCH", "TIME", "STATE", "IN", "OUT", "DIGEST")
	for _, b := range s.Batches {
		state, in, out := "planned", "", ""
		if b.Decided {
			state = "decided"
		}
		if b.Decided && !s.Spark {
			in, out = thousands(b.In), thousands(b.Out)
		}
		if b.Decided && s.Spark {
			state = "done"
		}
		p.row(b.Batch, timeOf(b.TimeMS), state, in, out, b.Digest)
	}
	if first := s.Batches[0].Batch; s.Oldest < first {
		p.line("and batches %d to %d", s.Oldest, first-1)
	}
	p.line("")
}

func findingRows(p *page, findings []checkpoint.Finding) {
	for _, f := range findings {
		kind := "finding"
		if f.Note {
			kind = "note"
		}
		p.line("%s [%s] %s: %s", kind, f.Code, f.File, f.Message)
		p.line("  way out: %s", f.WayOut)
	}
}

func (e *Env) checkpointVerify(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	at, err := e.checkpointOf(c, c.Args().Slice())
	if err != nil {
		return err
	}
	r, err := checkpoint.Verify(c.Context, e.Files, at.dir)
	if err != nil {
		return err
	}
	targets, err := e.verifyTargets(c, at, r)
	if err != nil {
		return err
	}
	state, err := e.verifyState(c, at, r)
	if err != nil {
		return err
	}
	targets = append(state, targets...)
	if output == outputJSON {
		all := *r
		all.Findings = append(all.Findings, targets...)
		err = e.printJSON(&all)
	} else {
		err = reportPage(at.dir, r, targets).print(e.Stdout)
	}
	if err == nil && (!r.OK() || len(targets) > 0) {
		return errFindings
	}
	return err
}

// verifyTargets looks at the sinks of the job file, if one was named, once the checkpoint itself can be gone on with.
func (e *Env) verifyTargets(c *ucli.Context, at checkpointAt, r *checkpoint.Report) ([]checkpoint.Finding, error) {
	if at.file == nil || !r.OK() || r.Spark {
		return nil, nil
	}
	return pipeline.CheckTargets(c.Context, at.file, e.pipelineEnv(c, nil, nil))
}

// verifyState reads what batches have changed of the state, once the records that name it are whole.
func (e *Env) verifyState(c *ucli.Context, at checkpointAt, r *checkpoint.Report) ([]checkpoint.Finding, error) {
	if !r.OK() || r.Spark {
		return nil, nil
	}
	return pipeline.CheckState(c.Context, e.Files, at.dir)
}

func reportPage(dir string, r *checkpoint.Report, targets []checkpoint.Finding) *page {
	p := &page{}
	who := ""
	if r.Spark {
		who = ", written by Spark"
	}
	p.line("%s: %s and %s read%s", dir, plural(int64(r.Plans), "plan"), plural(int64(r.Decisions), "decision"), who)
	findingRows(p, r.Findings)
	findingRows(p, targets)
	switch {
	case len(r.Offers) > 0:
		p.line("")
		p.line("`wasmill checkpoint repair` offers:")
		offerRows(p, r.Offers)
	case len(targets) > 0:
	case r.OK():
		p.line("ok")
	default:
		p.line("")
		p.line("No repair keeps the query id going; `wasmill checkpoint fork` goes on under a new one.")
	}
	return p
}

func offerRows(p *page, offers []checkpoint.Offer) {
	for _, o := range offers {
		p.line("  --choice %s: %s", o.Choice, o.Does)
		p.line("    risk: %s", o.Risk)
		if o.Needs != "" {
			p.line("    needs: %s", o.Needs)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func batchText(b checkpoint.BatchID) string {
	if b == checkpoint.NoBatch {
		return "-"
	}
	return fmt.Sprint(b)
}

func timeOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// shortened cuts a text after about n bytes.
func shortened(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
