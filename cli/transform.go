package cli

import (
	"errors"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sandbox"
)

func transformCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:  "transform",
		Usage: "look at a transform's module, and try it out",
		Subcommands: []*ucli.Command{
			{
				Name: "inspect", Usage: "show what a module is, without running it", ArgsUsage: "MODULE.wasm|stock:NAME",
				Flags: append(engineFlags()[:4:4], outputFlag(), configFlag(), limitsFlag(),
					&ucli.BoolFlag{Name: "start", Usage: "run its start-up too, and show what it takes, and the digest of the image that it leaves"}),
				Action: func(c *ucli.Context) error { return e.inspect(c) },
			},
			{
				Name: "check", Usage: "start a module and feed it records of every kind, twice and on two engines", ArgsUsage: "MODULE.wasm|stock:NAME",
				Description: "Looks whether it keeps to the contract, comes to the same every time, and takes odd records. Exits with 3 when a check fails.",
				Flags: append(checkFlags(),
					&ucli.DurationFlag{Name: "timeout", Value: time.Minute, Usage: "how long it may take in all"}),
				Action: func(c *ucli.Context) error { return e.checkApart(c) },
			},
			{
				Name: "bench", Usage: "measure a module: time, fuel and bytes a record", ArgsUsage: "MODULE.wasm|stock:NAME",
				Description: "Takes the lines of a file in turn, or records made up from the manifest. Times hang on the machine and on what else it does; " +
					"fuel and bytes are the same everywhere.",
				Flags: append(benchFlags(),
					&ucli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "how long it may take in all"}),
				Action: func(c *ucli.Context) error { return e.benchApart(c) },
			},
			stockCommand(e),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return unknownCommand(c.Command.HelpName, c.Args().First(), c.Command.Subcommands)
			}
			return usagef(c, "name what to do: inspect, check, bench or stock")
		},
	}
}

// moduleOf reads the module that a command names.
func (e *Env) moduleOf(c *ucli.Context) (sandbox.Binary, error) {
	if c.NArg() != 1 {
		return sandbox.Binary{}, usagef(c, "one module, not %d arguments", c.NArg())
	}
	b, err := e.readModule(c.Args().First())
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == pipeline.CodeModuleMissing {
		f.WayOut = "name a module: a file that a transform was built to, or stock:NAME"
	}
	return b, err
}
