package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/sandbox/trial"
)

// CodeBenchInput is the code of records for `transform bench` that cannot be used.
const CodeBenchInput = "transform.input"

// benchName is the hidden verb that the child process of `transform bench` runs.
const benchName = "__bench"

// Bounds of what is fed to a module that is measured.
const (
	benchRecords    = 100_000
	maxBenchRecords = 100_000_000
)

// benchFlags are those of the measurement, in the child process as well.
func benchFlags() []ucli.Flag {
	return append(compileFlags(), outputFlag(), configFlag(), limitsFlag(),
		&ucli.BoolFlag{Name: "interpreter", Usage: "interpret the module instead of compiling it"},
		&ucli.StringFlag{Name: "input", Usage: "a `FILE` whose lines are the records, of the first input port, taken in turn; it may be packed with gzip or zstd"},
		&ucli.IntFlag{Name: "records", Value: benchRecords, Usage: "how many records are fed in all"})
}

func benchCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name: benchName, Hidden: true, HideHelp: true, Flags: benchFlags(), Usage: "measure a module in this process",
		Action: func(c *ucli.Context) error { return e.bench(c) },
	}
}

// benchApart measures in a child process, as the check does.
func (e *Env) benchApart(c *ucli.Context) error {
	if n := c.Int("records"); n < 1 || n > maxBenchRecords {
		return usagef(c, "--records %d: it is from 1 to %s", n, thousands(maxBenchRecords))
	}
	return e.runApart(c, benchName, "--timeout gives it longer, and --records asks for less than "+plural(int64(c.Int("records")), "record"),
		"--interpreter="+strconv.FormatBool(c.Bool("interpreter")), "--input", c.String("input"), "--records", strconv.Itoa(c.Int("records")))
}

// benchShown is what bench prints as JSON.
type benchShown struct {
	Module string `json:"module"`
	Input  string `json:"input,omitempty"` // "" for made-up records
	Remark string `json:"remark,omitempty"`
	*trial.Bench
}

// unlikely is the share of made-up records that may be set aside before the numbers are no longer taken for those of the job.
const unlikely = 0.1

// remark says of made-up records that a module does not take them for its own.
func (s *benchShown) remark() string {
	share := float64(s.Letters) / float64(max(s.Records, 1))
	if s.Input != "" || share <= unlikely {
		return ""
	}
	return fmt.Sprintf("%.1f %% of the made-up records were set aside, so these numbers say little of the job: measure with records of its own, --input FILE", 100*share)
}

func (e *Env) bench(c *ucli.Context) (err error) {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	b, err := e.moduleOf(c)
	if err != nil {
		return err
	}
	o := trial.BenchOptions{Records: c.Int("records"), Now: e.Now}
	if o.Config, err = e.configOf(c); err != nil {
		return err
	}
	if o.Limits, err = limitsOf(c, b); err != nil {
		return err
	}
	if o.Lines, err = e.linesOf(c.String("input")); err != nil {
		return err
	}
	eng, err := e.newEngine(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(c.Context))) }()
	result, err := trial.RunBench(c.Context, eng, b, o)
	if err != nil {
		return withLimits(err)
	}
	result.Digest = "sha256:" + result.Digest
	shown := &benchShown{Module: b.Name, Input: c.String("input"), Bench: result}
	shown.Remark = shown.remark()
	if output == outputJSON {
		return e.printJSON(shown)
	}
	return shown.page().print(e.Stdout)
}

func (s *benchShown) page() *page {
	p := &page{}
	ns := func(n int64) string { return time.Duration(n).String() }
	p.row("module", s.Module)
	p.row("digest", s.Digest)
	p.row("engine", s.Engine)
	from := "made up from the manifest"
	if s.Input != "" {
		from = "of " + s.Input
	}
	p.row("records", fmt.Sprintf("%s %s, in %s and %s", thousands(int64(s.Records)), from, plural(int64(s.Lanes), "lane"), plural(int64(s.Calls), "call")))
	p.row("time", fmt.Sprintf("%.1f ns a record, %.1f in the fastest lane: %s records a second on one processor", s.RecordTime, s.RecordBest, thousands(int64(1e9/max(s.RecordTime, 1e-3)))))
	p.row("fuel", fmt.Sprintf("%.1f a record", s.Fuel))
	p.row("bytes", fmt.Sprintf("%.1f in and %.1f out a record; with fields and headers %.1f in", s.In, s.Out, s.Frame))
	p.row("output", fmt.Sprintf("%s emitted, %s set aside", thousands(s.Emitted), thousands(s.Letters)))
	if s.Remark != "" {
		p.row("", s.Remark)
	}
	p.row("memory", fmt.Sprintf("%s at first, %s at most, %.1f more a record", plural(s.MemoryMin, "byte"), thousands(s.MemoryMax), s.Growth))
	p.row("instance", fmt.Sprintf("%s for a fresh one, %s the fastest; the start-up took %s", ns(s.Instance), ns(s.InstanceBest), ns(s.Start)))
	return p
}
