package cli

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/job"
)

// arrange puts the flags of a command before its arguments, so that `wasmill validate job.yaml --output json` means what it
// says: the library stops looking for flags at the first argument. It also finds unknown commands and flags, with a
// suggestion.
func arrange(app *ucli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{app.Name}, nil
	}
	if len(args) == 2 && (args[1] == "--version" || args[1] == "-v") {
		return []string{args[0], "version"}, nil
	}
	out, rest := args[:1:1], args[1:]
	name, commands, flags := app.HelpName, app.Commands, []ucli.Flag(nil)
	for len(rest) > 0 && len(commands) > 0 && !strings.HasPrefix(rest[0], "-") {
		c := commandNamed(commands, rest[0])
		if c == nil {
			return nil, unknownCommand(name, rest[0], commands)
		}
		out, rest = append(out, c.Name), rest[1:]
		switch c.Name {
		case completeName:
			return append(out, rest...), nil
		case "help":
			if len(rest) > 0 && commandNamed(commands, rest[0]) == nil {
				return nil, unknownCommand(name, rest[0], commands)
			}
			return append(out, rest...), nil
		}
		name, commands, flags = c.HelpName, c.Subcommands, c.Flags
	}
	leading, arguments, err := split(name, flags, rest)
	if err != nil {
		return nil, err
	}
	out = append(out, leading...)
	if len(arguments) > 0 {
		out = append(append(out, "--"), arguments...)
	}
	return out, nil
}

// split takes the flags with their values out of args.
func split(name string, flags []ucli.Flag, args []string) (leading, arguments []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return leading, append(arguments, args[i+1:]...), nil
		}
		if a == "-" || !strings.HasPrefix(a, "-") {
			arguments = append(arguments, a)
			continue
		}
		word, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
		f := flagNamed(flags, word)
		switch {
		case f == nil && word != "help" && word != "h":
			return nil, nil, unknownFlag(name, a, word, flags)
		case f == nil || hasValue || isBool(f):
			leading = append(leading, a)
		case i+1 == len(args):
			return nil, nil, &usageError{command: name, message: a + " needs a value"}
		default:
			i++
			leading = append(leading, a, args[i])
		}
	}
	return leading, arguments, nil
}

func commandNamed(commands []*ucli.Command, name string) *ucli.Command {
	for _, c := range commands {
		if slices.Contains(c.Names(), name) {
			return c
		}
	}
	return nil
}

func flagNamed(flags []ucli.Flag, name string) ucli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func isBool(f ucli.Flag) bool {
	_, ok := f.(*ucli.BoolFlag)
	return ok
}

func unknownCommand(parent, word string, commands []*ucli.Command) error {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return &usageError{command: parent, message: "unknown command " + quoted(word) + didYouMean(word, names, "")}
}

func unknownFlag(command, flag, word string, flags []ucli.Flag) error {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	shown, _, _ := strings.Cut(flag, "=")
	return &usageError{command: command, message: "unknown flag " + quoted(shown) + didYouMean(word, names, "--")}
}

func didYouMean(word string, names []string, prefix string) string {
	if s := job.Suggest(word, names); s != "" {
		return "; did you mean " + prefix + s + "?"
	}
	return ""
}
