package cli

import (
	"errors"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/trial"
)

// limitsName is the flag that gives a module the limits that a job would.
const limitsName = "limits"

func limitsFlag() ucli.Flag {
	return &ucli.StringFlag{
		Name: limitsName, Value: "{}",
		Usage: "the transform's limits, `YAML` as in a job file: {memory: 128MiB, fuel: {call: .., record: ..}, depth: .., output: .., log: ..}",
	}
}

// limitsOf are the limits that a module is tried with: those of a job that says no more than the flag.
func limitsOf(c *ucli.Context, b sandbox.Binary) (sandbox.Limits, error) {
	l, err := job.ParseLimits("--"+limitsName, []byte(c.String(limitsName)), strings.HasPrefix(b.Name, stockPrefix))
	if err != nil {
		return sandbox.Limits{}, err
	}
	return sandbox.Limits(l), nil
}

// tryLimits is the way out of a module that needs other limits than it was tried with.
const tryLimits = "here: --limits, such as --limits '{memory: 128MiB}'"

// withLimits tells the user of a command that tries a module how to give it other limits, where an error is about one.
func withLimits(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if ok && (f.ErrCode == sandbox.CodeLimits || strings.Contains(f.Error()+f.WayOut, "limits.")) {
		f.WayOut += "; " + tryLimits
	}
	return err
}

// limitsHint is the way out where a check has found that limits are near or reached.
func limitsHint(checks []trial.Check) string {
	for _, c := range checks {
		if c.Outcome != trial.Pass && (c.Name == trial.NearLimits || c.Name == trial.Nesting || strings.Contains(c.Detail, "limits.")) {
			return "let the module take less, or raise `limits` of the transform in the job file; " + tryLimits
		}
	}
	return ""
}
