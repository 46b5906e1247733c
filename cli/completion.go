package cli

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// completeName is the hidden verb that the shells' scripts call.
const completeName = "__complete"

var (
	//go:embed completion/wasmill.bash
	bashScript string
	//go:embed completion/wasmill.zsh
	zshScript string
	//go:embed completion/wasmill.fish
	fishScript string
)

func completionCommand(e *Env) *ucli.Command {
	script := func(shell, text, how string) *ucli.Command {
		return &ucli.Command{
			Name: shell, Usage: "print the script for " + shell, Description: how,
			Action: func(*ucli.Context) error {
				_, err := io.WriteString(e.Stdout, text)
				return err
			},
		}
	}
	return &ucli.Command{
		Name:  "completion",
		Usage: "print a script that completes commands and flags in a shell",
		Subcommands: []*ucli.Command{
			script("bash", bashScript, "source <(wasmill completion bash)"),
			script("zsh", zshScript, "source <(wasmill completion zsh)"),
			script("fish", fishScript, "wasmill completion fish | source"),
		},
		Action: func(c *ucli.Context) error { return usagef(c, "name a shell: bash, zsh or fish") },
	}
}

// completeCommand prints what can stand in the place of the last word, one candidate a line with a tab and what it is for.
// It prints nothing where a file or a free value is expected.
func completeCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name: completeName, Hidden: true, SkipFlagParsing: true, HideHelp: true,
		Action: func(c *ucli.Context) error {
			for _, l := range complete(c.App, c.Args().Slice()) {
				if _, err := fmt.Fprintln(e.Stdout, l); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// complete returns the candidates for the last of words, which follow the program's name.
func complete(app *ucli.App, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	commands, flags := app.Commands, []ucli.Flag(nil)
	for len(before) > 0 && len(commands) > 0 {
		c := commandNamed(commands, before[0])
		if c == nil {
			return nil
		}
		commands, flags, before = c.Subcommands, c.Flags, before[1:]
	}
	if len(before) > 0 {
		name := strings.TrimLeft(before[len(before)-1], "-")
		if f := flagNamed(flags, name); f != nil && name != before[len(before)-1] && !isBool(f) {
			return startingWith(last, flagValues(f.Names()[0]))
		}
	}
	if strings.HasPrefix(last, "-") {
		return startingWith(last, flagNames(flags))
	}
	var names []string
	for _, c := range commands {
		if !c.Hidden && c.Name != "help" {
			names = append(names, c.Name+"\t"+c.Usage)
		}
	}
	return startingWith(last, names)
}

func flagNames(flags []ucli.Flag) []string {
	names := make([]string, 0, len(flags)+1)
	for _, f := range flags {
		usage := ""
		if d, ok := f.(ucli.DocGenerationFlag); ok {
			usage = d.GetUsage()
		}
		if f.Names()[0] != "help" {
			names = append(names, "--"+f.Names()[0]+"\t"+usage)
		}
	}
	return append(names, "--help\tshow help")
}

func startingWith(prefix string, candidates []string) []string {
	var out []string
	for _, c := range candidates {
		if strings.HasPrefix(c, prefix) {
			out = append(out, c)
		}
	}
	return out
}
