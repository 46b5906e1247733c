package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/job"
)

// coded is what an error for a user has: host and checkpoint have each their own type.
type coded interface {
	error
	Code() string
	Hint() string
}

const (
	red   = "\x1b[1;31m"
	faint = "\x1b[2m"
	plain = "\x1b[0m"
)

func (e *Env) paint(colour, s string) string {
	if !e.colour() {
		return s
	}
	return colour + s + plain
}

// report prints an error: its code, where and what, and the way out.
func (e *Env) report(err error) {
	var mistakes *job.Errors
	if errors.As(err, &mistakes) {
		e.reportMistakes(mistakes)
		return
	}
	head, hint := "error", ""
	var c coded
	if errors.As(err, &c) {
		head, hint = head+"["+c.Code()+"]", c.Hint()
	}
	fmt.Fprintf(e.Stderr, "%s: %s\n", e.paint(red, head), printable(err.Error()))
	e.hint(hint)
}

func (e *Env) reportMistakes(all *job.Errors) {
	for _, m := range all.List {
		place := all.File + ":" + strconv.Itoa(m.Line) + ":" + strconv.Itoa(m.Column)
		fmt.Fprintf(e.Stderr, "%s: %s: %s\n", printable(place), e.paint(red, "error["+m.Code+"]"), printable(m.Text()))
	}
	if all.More > 0 {
		fmt.Fprintf(e.Stderr, "%d more mistakes are not shown\n", all.More)
	}
	e.hint(all.Hint())
}

func (e *Env) hint(hint string) {
	if hint != "" {
		fmt.Fprintf(e.Stderr, "%s %s\n", e.paint(faint, "  way out:"), printable(hint))
	}
}

func (e *Env) reportUsage(err *usageError) {
	fmt.Fprintf(e.Stderr, "%s: %s: %s\n", e.paint(red, "error[usage]"), err.command, printable(err.message))
	e.hint("see `" + err.command + " --help`")
}

// printable keeps what comes from files, paths and modules from steering the terminal. Line ends and tabs stay.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case steers(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

func quoted(s string) string { return strconv.Quote(s) }
