package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/trial"
)

// hereFlag makes `transform check` run the module in this process.
const hereFlag = "here"

// checkApart runs the check in a child process: a module that does not return cannot be stopped in any other way.
func (e *Env) checkApart(c *ucli.Context, output string, config []byte) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program to run the module apart: %w", err)
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "transform", "check", "--"+hereFlag, "--output", output, "--config", string(config),
		"--cache", c.String("cache"), "--", c.Args().First())
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	err = cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(CodeStuck, c.Args().First(), fmt.Errorf("it has not come to its end after %s", c.Duration("timeout")),
			"look for a loop without end in its start or in wasmill_batch; --timeout gives it longer")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &exitError{exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run the module apart: %w", err)
	}
	return nil
}

// try tries the module on the compiler, as far as the machine has it, and on the interpreter.
func (e *Env) try(c *ucli.Context, b sandbox.Binary, o trial.Options) (report *trial.Report, err error) {
	first, err := e.newEngine(c)
	if err != nil {
		return nil, err
	}
	ctx := c.Context
	defer func() { err = errors.Join(err, first.Close(context.WithoutCancel(ctx))) }()
	second, err := sandbox.New(sandbox.Config{Interpreter: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, second.Close(context.WithoutCancel(ctx))) }()
	return trial.Run(ctx, first, second, b, o)
}
