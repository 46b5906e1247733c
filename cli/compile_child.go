package cli

import (
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/sandbox/apart"
)

// compileName is the hidden verb of the child process that compiles a module within limits.
const compileName = "__compile"

// compileCommand compiles the module on its input. Its parent is another run of this program, and nobody else's words are
// taken or understood.
func compileCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name: compileName, Hidden: true, HideHelp: true, Usage: "compile a module in this process, within limits",
		Action: func(c *ucli.Context) error {
			if code := apart.Child(c.Context, os.Stdin, e.Stdout, e.exit); code != 0 {
				return &exitError{code}
			}
			return nil
		},
	}
}
