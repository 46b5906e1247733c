package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/cli/demo"
)

// What a demo makes unless it is told otherwise, and at most: topics lie in memory, about 1 kB an order.
const (
	demoRecords    = 200_000
	demoRate       = 2_000
	mostRecords    = 2_000_000
	mostRate       = 200_000
	mostKills      = 10_000
	mostDemoLength = 24 * time.Hour
)

func demoCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "demo",
		Usage:     "show exactly once on this machine: a broker, three jobs, and a key that kills them",
		ArgsUsage: " ",
		Description: "Made-up orders go to a topic, through a WebAssembly transform to another topic, and into a Parquet table. The broker " +
			"runs inside the demo, on 127.0.0.1; each of the three jobs is a process that you can kill:\n" +
			"   k kills all of them with kill -9 and starts them again, 1, 2 and 3 kill one, q makes no more orders, lets the jobs finish " +
			"and proves by a count that every order came through once, ctrl-C stops without.\n" +
			"It needs no network, no broker and no Java. Everything lies in one folder, with the job files; --keep or --dir leave it for you.\n" +
			"Where stdout is no terminal it prints a line a second on stderr, and the proof on stdout. Exit status: 0 proven, 1 not.",
		Flags: []ucli.Flag{
			&ucli.Int64Flag{Name: "records", Value: demoRecords, Usage: "orders to be made in all"},
			&ucli.Int64Flag{Name: "rate", Value: demoRate, Usage: "orders a second"},
			&ucli.IntFlag{Name: "seconds", Usage: "make orders for so long, if they are not used up before; 0 is no limit"},
			&ucli.IntFlag{Name: "kills", Usage: "kill engines so many times, at random moments, without a key"},
			&ucli.Uint64Flag{Name: "seed", Value: 1, Usage: "another seed, other orders and kills"},
			&ucli.StringFlag{Name: "dir", Usage: "`FOLDER` for everything, empty or new, which stays; default: a temporary one"},
			&ucli.BoolFlag{Name: "keep", Usage: "leave the temporary folder"},
			&ucli.BoolFlag{Name: "plain", Usage: "a line a second instead of the picture"},
			outputFlag(),
		},
		Action: func(c *ucli.Context) error { return e.demo(c) },
	}
}

// demoConfig reads the flags.
func demoConfig(c *ucli.Context) (demo.Config, error) {
	cfg := demo.Config{
		Records: c.Int64("records"), Rate: c.Int64("rate"), Limit: time.Duration(c.Int("seconds")) * time.Second, Kills: c.Int("kills"),
		Seed: c.Uint64("seed"), Dir: c.String("dir"), Keep: c.Bool("keep"),
	}
	switch {
	case c.NArg() > 0:
		return cfg, usagef(c, "it takes no arguments, got %s", quoted(c.Args().First()))
	case cfg.Records < 1 || cfg.Records > mostRecords:
		return cfg, usagef(c, "--records %d: 1 to %d are possible, as topics lie in memory", cfg.Records, mostRecords)
	case cfg.Rate < 1 || cfg.Rate > mostRate:
		return cfg, usagef(c, "--rate %d: 1 to %d a second are possible", cfg.Rate, mostRate)
	case cfg.Limit < 0 || cfg.Limit > mostDemoLength:
		return cfg, usagef(c, "--seconds %d: 0 to %d are possible", c.Int("seconds"), int(mostDemoLength.Seconds()))
	case cfg.Kills < 0 || cfg.Kills > mostKills:
		return cfg, usagef(c, "--kills %d: 0 to %d are possible", cfg.Kills, mostKills)
	case cfg.Seed > 1<<63-1:
		return cfg, usagef(c, "--seed %d: 0 to %d are possible", cfg.Seed, int64(1<<63-1))
	}
	return cfg, nil
}

func (e *Env) demo(c *ucli.Context) error {
	cfg, err := demoConfig(c)
	if err != nil {
		return err
	}
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	program, err := ownProgram()
	if err != nil {
		return err
	}
	env := demo.Env{
		Program: demo.Program{Path: program, Args: []string{os.Args[0], engineName}}, Environ: os.Environ(), Files: e.Files, Now: e.Now, Log: e.Stderr,
	}
	if e.StdoutTerminal && !c.Bool("plain") && e.getenv("TERM") != "dumb" {
		env.In, env.Out, env.Colour, env.Unicode = os.Stdin, os.Stdout, e.getenv("NO_COLOR") == "", e.unicode()
	}
	ctx, done := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer done()
	r, err := demo.Run(ctx, cfg, env)
	if r == nil {
		return err
	}
	if output == outputJSON {
		if perr := e.printJSON(r); perr != nil {
			return perr
		}
		return err
	}
	for _, l := range r.Lines() {
		if _, perr := fmt.Fprintln(e.Stdout, printable(l)); perr != nil {
			return perr
		}
	}
	return err
}

// unicode reports whether the terminal shows more than ASCII: what the locale says, in the order that POSIX asks it.
func (e *Env) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(e.getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// engineName is the hidden verb of the demo's child processes.
const engineName = "__engine"

// engineCommand is `run` for a child of the demo: it ends with its standard input, which the parent holds open.
func engineCommand(e *Env) *ucli.Command {
	run := runCommand(e)
	return &ucli.Command{
		Name: engineName, Hidden: true, HideHelp: true, Usage: "run a job until standard input ends", Flags: run.Flags,
		Action: func(c *ucli.Context) error {
			go e.exitAtEnd(os.Stdin)
			return run.Action(c)
		},
	}
}

func (e *Env) exitAtEnd(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	e.exit(ExitFailure)
}
