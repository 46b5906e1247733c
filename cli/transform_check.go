package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/trial"
	"github.com/wasmill/wasmill/host/sink"
)

// Codes of `transform check`.
const (
	CodeConfigJSON = "transform.config" // --config is no JSON object
	CodeStuck      = "transform.stuck"  // the module has not come to its end in time
)

// checkName is the hidden verb that the child process of `transform check` runs.
const checkName = "__check"

// checkFlags are those of the check, in the child process as well.
func checkFlags() []ucli.Flag {
	return append(compileFlags(), outputFlag(), configFlag(), limitsFlag())
}

func configFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "config", Value: "{}", Usage: "the transform's config, a JSON `OBJECT`, or @FILE"}
}

func checkCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name: checkName, Hidden: true, HideHelp: true, Flags: checkFlags(), Usage: "check a module in this process",
		Action: func(c *ucli.Context) error { return e.check(c) },
	}
}

// checkApart runs the check in a child process.
func (e *Env) checkApart(c *ucli.Context) error {
	return e.runApart(c, checkName, "--timeout gives it longer, and --limits '{fuel: {call: 1000000}}' ends each of its calls sooner")
}

// runApart runs a hidden verb on the module in a child process, which can be stopped whatever it does. shorter is the way
// out of one that takes too long. Besides the flags that all such verbs have it takes more of them.
func (e *Env) runApart(c *ucli.Context, verb, shorter string, more ...string) error {
	if c.NArg() != 1 {
		return usagef(c, "one module, not %d arguments", c.NArg())
	}
	if _, err := outputOf(c); err != nil {
		return err
	}
	program, err := ownProgram()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	args := append([]string{
		verb, "--output", c.String("output"), "--config", c.String("config"), "--limits", c.String(limitsName), "--cache", c.String("cache"),
		"--compile-here=" + strconv.FormatBool(c.Bool("compile-here")),
	}, more...)
	cmd := exec.CommandContext(ctx, program, append(args, "--", c.Args().First())...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	err = cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(CodeStuck, c.Args().First(), fmt.Errorf("it has not come to its end after %s", c.Duration("timeout")),
			"it takes long; a loop without end would be ended by its fuel: "+shorter)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &exitError{exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run the module apart: %w", err)
	}
	return nil
}

// checkShown is what check prints as JSON.
type checkShown struct {
	Module string        `json:"module"`
	Digest string        `json:"digest"`
	OK     bool          `json:"ok"`
	Checks []trial.Check `json:"checks"`
}

func (e *Env) check(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	b, err := e.moduleOf(c)
	if err != nil {
		return err
	}
	config, err := e.configOf(c)
	if err != nil {
		return err
	}
	limits, err := limitsOf(c, b)
	if err != nil {
		return err
	}
	r, err := e.try(c, b, trial.Options{Config: config, Limits: limits, Rows: rowCheck})
	if err != nil {
		return withLimits(err)
	}
	shown := &checkShown{Module: b.Name, Digest: "sha256:" + r.Info.Digest, OK: r.OK(), Checks: r.Checks}
	if output == outputJSON {
		err = e.printJSON(shown)
	} else {
		p := &page{}
		for _, check := range r.Checks {
			p.row(check.Outcome, check.Name, check.Detail)
		}
		err = p.print(e.Stdout)
	}
	e.hint(limitsHint(r.Checks))
	if err == nil && !r.OK() {
		return errFindings
	}
	return err
}

// rowCheck reads binary rows as a sink of their columns does.
func rowCheck(columns string) (trial.RowCheck, error) {
	schema, err := rows.RowSchema(columns)
	if err != nil {
		return nil, err
	}
	table := rows.NewTable(schema)
	return func(row []byte) (malformed bool, err error) {
		table.Reset()
		err = table.Append(row)
		if m, ok := errors.AsType[*sink.Misfit](err); ok {
			malformed = m.Code == "row" || m.Code == "columns" || m.Code == "not_json"
		}
		return malformed, err
	}, nil
}

// configOf is the config that the module starts with, as canonical JSON.
func (e *Env) configOf(c *ucli.Context) ([]byte, error) {
	text := []byte(c.String("config"))
	if len(text) > 0 && text[0] == '@' {
		var err error
		if text, err = durable.ReadFile(e.Files, string(text[1:]), maxJobFile); err != nil {
			return nil, fault.New(CodeConfigJSON, c.String("config")[1:], fmt.Errorf("read the config: %w", err), "name a file that you may read")
		}
	}
	canonical, err := abi.CanonicalJSON(text)
	if err == nil && (len(canonical) == 0 || canonical[0] != '{') {
		err = errors.New("it is no object")
	}
	if err != nil {
		return nil, fault.New(CodeConfigJSON, "--config", err, `write a JSON object, such as '{"minDistance":100}'`)
	}
	return canonical, nil
}

// try tries the module on the compiler, as far as the machine has it, and on the interpreter.
func (e *Env) try(c *ucli.Context, b sandbox.Binary, o trial.Options) (report *trial.Report, err error) {
	first, err := e.newEngine(c)
	if err != nil {
		return nil, err
	}
	ctx := c.Context
	defer func() { err = errors.Join(err, first.Close(context.WithoutCancel(ctx))) }()
	second, err := e.engineOf(c, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, second.Close(context.WithoutCancel(ctx))) }()
	return trial.Run(ctx, first, second, b, o)
}
