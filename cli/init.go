package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
)

// CodeExists is the code of an init over files that are already there.
const CodeExists = "init.exists"

func initCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "init",
		Usage:     "write a job file to start from, and its schema for editors",
		ArgsUsage: "[FOLDER]",
		Description: "Writes " + DefaultJobFile + ", which runs as it stands, and " + job.SchemaFile + " into the folder (default: the " +
			"current one).\nWhat is already there is never overwritten, but for the schema, which always is the program's own.",
		Action: func(c *ucli.Context) error { return e.initFolder(c) },
	}
}

func (e *Env) initFolder(c *ucli.Context) error {
	if c.NArg() > 1 {
		return usagef(c, "one folder at most, got %d", c.NArg())
	}
	dir := "."
	if c.NArg() == 1 {
		dir = c.Args().First()
	}
	if err := e.Files.MkdirAll(dir); err != nil {
		return initError(dir, err)
	}
	file := filepath.Join(dir, DefaultJobFile)
	if err := durable.WriteFile(e.Files, file, job.Template()); err != nil {
		return initError(file, err)
	}
	schema := filepath.Join(dir, job.SchemaFile)
	if err := os.WriteFile(schema, job.Schema(), 0o644); err != nil {
		return initError(schema, err)
	}
	fmt.Fprintf(e.Stderr, "wrote %s and %s; next: wasmill run %s\n", printable(file), printable(schema), printable(file))
	return nil
}

func initError(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrExist) {
		return fault.New(CodeExists, path, errors.New("the file is already there"), "name another folder, or move the file away")
	}
	return fault.New(CodeFile, path, fmt.Errorf("write: %w", err), "name a folder that you may write to")
}
