package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Env is what a command may use of the machine.
type Env struct {
	Stdout, Stderr io.Writer
	// StdoutTerminal and StderrTerminal say that a person looks at it.
	StdoutTerminal, StderrTerminal bool
	LookupEnv                      func(name string) (string, bool)
	Now                            func() time.Time
	Files                          durable.Files
	// Exit ends the process at once.
	Exit func(code int)
}

// System returns the process's own environment.
func System() Env {
	return Env{
		Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		LookupEnv: os.LookupEnv,
		Now:       time.Now,
		Files:     durable.OS(),
		Exit:      os.Exit,
	}
}

func (e *Env) getenv(name string) string {
	if e.LookupEnv == nil {
		return ""
	}
	v, _ := e.LookupEnv(name)
	return v
}

// colour reports whether messages on stderr may be coloured: only on a terminal, and never with NO_COLOR (no-color.org).
func (e *Env) colour() bool {
	return e.StderrTerminal && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"
}

func (e *Env) exit(code int) {
	if e.Exit != nil {
		e.Exit(code)
	}
}
