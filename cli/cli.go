package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ucli "github.com/urfave/cli/v2"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	ExitFindings = 3
)

// errFindings ends a command that has printed what it found.
var errFindings = errors.New("there are findings")

// exitError ends a command that has reported everything, or whose child process has.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// usageError is a mistake in how a command was called.
type usageError struct {
	command string // "wasmill validate"
	message string
}

func (e *usageError) Error() string { return e.message }

// usagef makes a usage error of a command.
func usagef(c *ucli.Context, format string, args ...any) error {
	return &usageError{command: c.Command.HelpName, message: fmt.Sprintf(format, args...)}
}

// Run runs the command line args, whose first element is the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, env Env) int {
	app := newApp(&env)
	args, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	switch usage, exit := (*usageError)(nil), (*exitError)(nil); {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, errFindings):
		return ExitFindings
	case errors.As(err, &usage):
		env.reportUsage(usage)
		return ExitUsage
	}
	env.report(err)
	return ExitFailure
}

func newApp(e *Env) *ucli.App {
	app := &ucli.App{
		Name:                      "wasmill",
		HelpName:                  "wasmill",
		Usage:                     "WebAssembly transforms over streams, in micro-batches, exactly once",
		HideVersion:               true,
		Writer:                    e.Stdout,
		ErrWriter:                 e.Stderr,
		DisableSliceFlagSeparator: true,
		Commands:                  commands(e),
		ExitErrHandler:            func(*ucli.Context, error) {}, // Run decides how the process ends
	}
	app.OnUsageError = onUsageError
	app.Setup()
	finish(app.Commands, app.HelpName)
	return app
}

// commands lists the verbs in the order of the help.
func commands(e *Env) []*ucli.Command {
	return []*ucli.Command{
		runCommand(e),
		demoCommand(e),
		planCommand(e),
		replayCommand(e),
		stateCommand(e),
		checkpointCommand(e),
		transformCommand(e),
		initCommand(e),
		validateCommand(e),
		versionCommand(e),
		completionCommand(e),
		completeCommand(e),
		checkCommand(e),
		benchCommand(e),
		compileCommand(e),
		engineCommand(e),
	}
}

// finish gives every command its full name and the common treatment of usage errors.
func finish(commands []*ucli.Command, parent string) {
	for _, c := range commands {
		c.HelpName = parent + " " + c.Name
		c.OnUsageError = onUsageError
		c.HideHelpCommand = len(c.Subcommands) == 0
		finish(c.Subcommands, c.HelpName)
	}
}

func onUsageError(c *ucli.Context, err error, _ bool) error {
	name := "wasmill"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	return &usageError{command: name, message: err.Error()}
}

// The output formats of commands that print data.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func outputFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: outputTable, Usage: "how data is printed: table or json"}
}

// outputOf returns the output format that was asked for.
func outputOf(c *ucli.Context) (string, error) {
	o := c.String("output")
	if !slices.Contains(flagValues("output"), o) {
		return "", usagef(c, "--output %q: it is table or json", o)
	}
	return o, nil
}

// flagValues returns what a flag with a closed set of values takes.
func flagValues(flag string) []string {
	switch flag {
	case "output":
		return []string{outputTable, outputJSON}
	case "progress":
		return []string{progressAuto, progressJSON, progressNone}
	case "log":
		return []string{"text", "json"}
	case "choice":
		return repairChoices
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	}
	return nil
}
