package cli

import (
	"strconv"

	ucli "github.com/urfave/cli/v2"
)

// verifyVariable is the flag's place in the environment, for test lanes.
const verifyVariable = "WASMILL_VERIFY_REPLAY"

func verifyFlag() ucli.Flag {
	return &ucli.StringFlag{
		Name: "verify-replay", Usage: "run this `SHARE` of the batches, such as 0.05, once more on the other engine, and stop the job before " +
			"anything of a batch is staged that the two do not agree on; also $" + verifyVariable,
	}
}

// verifyShare is the share of the batches to verify, 0 for none. Which ones depends on their numbers alone.
func (e *Env) verifyShare(c *ucli.Context) (float64, error) {
	name, text := "--verify-replay", c.String("verify-replay")
	if !c.IsSet("verify-replay") {
		name, text = "$"+verifyVariable, e.getenv(verifyVariable)
	}
	if text == "" && !c.IsSet("verify-replay") {
		return 0, nil
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, usagef(c, "%s %q: it is a share from 0, for none, to 1, for all batches", name, text)
	}
	return share, nil
}
