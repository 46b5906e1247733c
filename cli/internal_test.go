package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
)

func TestArrange(t *testing.T) {
	action := func(*ucli.Context) error { return nil }
	app := &ucli.App{Name: "wasmill", HelpName: "wasmill", Commands: []*ucli.Command{
		{Name: "replay", Action: action, Flags: []ucli.Flag{&ucli.StringFlag{Name: "module", Aliases: []string{"m"}}, &ucli.BoolFlag{Name: "diff"}}},
		{Name: "checkpoint", Subcommands: []*ucli.Command{
			{Name: "show", Aliases: []string{"ls"}, Action: action, Flags: []ucli.Flag{&ucli.IntFlag{Name: "last"}}},
		}},
	}}
	app.Setup()
	finish(app.Commands, app.HelpName)
	for _, tt := range []struct{ in, want, err string }{
		{in: "", want: ""},
		{in: "replay", want: "replay"},
		{in: "replay 7 --module x.wasm --diff job.yaml", want: "replay --module x.wasm --diff -- 7 job.yaml"},
		{in: "replay -m x.wasm 7", want: "replay -m x.wasm -- 7"},
		{in: "replay --module=x.wasm 7", want: "replay --module=x.wasm -- 7"},
		{in: "replay 7 -- --diff", want: "replay -- 7 --diff"},
		{in: "replay - --diff", want: "replay --diff -- -"},
		{in: "replay 7 --help", want: "replay --help -- 7"},
		{in: "checkpoint show dir --last 3", want: "checkpoint show --last 3 -- dir"},
		{in: "checkpoint ls dir", want: "checkpoint show -- dir"},
		{in: "checkpoint", want: "checkpoint"},
		{in: "help replay", want: "help replay"},
		{in: "--help", want: "--help"},
		{in: "--version", want: "version"},
		{in: "-v", want: "version"},
		{in: "replay 7 --modul x", err: `unknown flag "--modul"; did you mean --module?`},
		{in: "replay --module", err: "--module needs a value"},
		{in: "checkpoint shwo", err: `unknown command "shwo"; did you mean show?`},
		{in: "wallpaper", err: `unknown command "wallpaper"`},
	} {
		got, err := arrange(app, append([]string{"wasmill"}, strings.Fields(tt.in)...))
		if tt.err != "" || err != nil {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: error %v, want %s", tt.in, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(append([]string{"wasmill"}, strings.Fields(tt.want)...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestReport(t *testing.T) {
	hostile := fmt.Errorf("open \x1b[31m\u202efile\xff")
	for name, tt := range map[string]struct {
		err      error
		terminal bool
		vars     map[string]string
		want     string
	}{
		"plain":     {err: errors.New("it broke"), want: "error: it broke\n"},
		"fault":     {err: fmt.Errorf("run: %w", fault.New("source.changed", "in/a", errors.New("it shrank"), "put it back")), want: "error[source.changed]: run: in/a: it shrank\n  way out: put it back\n"},
		"hostile":   {err: hostile, want: `error: open \x1b[31m\u202efile\xff` + "\n"},
		"colour":    {err: errors.New("it broke"), terminal: true, want: red + "error" + plain + ": it broke\n"},
		"no colour": {err: errors.New("it broke"), terminal: true, vars: map[string]string{"NO_COLOR": "1"}, want: "error: it broke\n"},
		"dumb":      {err: errors.New("it broke"), terminal: true, vars: map[string]string{"TERM": "dumb"}, want: "error: it broke\n"},
		"usage":     {err: &usageError{"wasmill run", "two files"}, want: "error[usage]: wasmill run: two files\n  way out: see `wasmill run --help`\n"},
		"job":       {err: &job.Errors{File: "j.yaml", More: 2, List: []job.Mistake{{Pos: job.Pos{Line: 1, Column: 2}, Path: "spec", Code: job.CodeUnsupported, Message: "no"}}}, want: "j.yaml:1:2: error[job.unsupported]: spec: no\n2 more mistakes are not shown\n  way out: remove these parts, or use a version of wasmill that has them\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			e := &Env{Stderr: &b, StderrTerminal: tt.terminal, LookupEnv: func(n string) (string, bool) { v, ok := tt.vars[n]; return v, ok }}
			var usage *usageError
			if errors.As(tt.err, &usage) {
				e.reportUsage(usage)
			} else {
				e.report(tt.err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryCommandIsDescribed keeps the help complete.
func TestEveryCommandIsDescribed(t *testing.T) {
	app := newApp(&Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	var visit func(commands []*ucli.Command)
	visit = func(commands []*ucli.Command) {
		for _, c := range commands {
			if c.Usage == "" && !c.Hidden {
				t.Errorf("%s has no usage", c.HelpName)
			}
			for _, f := range c.Flags {
				if d, ok := f.(ucli.DocGenerationFlag); ok && d.GetUsage() == "" {
					t.Errorf("%s --%s has no usage", c.HelpName, f.Names()[0])
				}
			}
			visit(c.Subcommands)
		}
	}
	visit(app.Commands)
	if len(app.Commands) < 5 {
		t.Errorf("only %d commands", len(app.Commands))
	}
}

// brokenPipe fails every write.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenStdoutIsAFailure(t *testing.T) {
	var stderr bytes.Buffer
	env := System()
	env.Stdout, env.Stderr, env.StderrTerminal = brokenPipe{}, &stderr, false
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"completion", "bash"}, {"__complete", ""}} {
		if code := Run(context.Background(), append([]string{"wasmill"}, args...), env); code != ExitFailure {
			t.Errorf("%v exits with %d", args, code)
		}
	}
	if code := Run(context.Background(), nil, env); code == ExitUsage {
		t.Errorf("no arguments at all exit with %d", code)
	}
}
