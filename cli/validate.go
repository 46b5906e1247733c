package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/job"
)

func validateCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:      "validate",
		Usage:     "check job files and print everything that is wrong with them",
		ArgsUsage: "[JOB.yaml ...]",
		Description: "Reads nothing but the job files (and what ${env:..} and ${file:..} in them name). Exits with 3 when a file has " +
			"mistakes.\nWithout a name it takes " + DefaultJobFile + ".",
		Flags:  []ucli.Flag{outputFlag()},
		Action: func(c *ucli.Context) error { return e.validate(c) },
	}
}

// validation is what validate prints of a file as JSON.
type validation struct {
	File     string            `json:"file"`
	OK       bool              `json:"ok"`
	Error    string            `json:"error,omitempty"` // why the file could not be read
	Mistakes []validateMistake `json:"mistakes"`
	More     int               `json:"more,omitempty"`
}

type validateMistake struct {
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Path       string `json:"path"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

func (e *Env) validate(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	files := c.Args().Slice()
	if len(files) == 0 {
		files = []string{DefaultJobFile}
	}
	found, unread := false, []error(nil)
	results := make([]validation, 0, len(files))
	for _, file := range files {
		v, err := e.validateFile(file)
		if err != nil {
			v.Error, unread = err.Error(), append(unread, err)
		}
		found = found || !v.OK
		results = append(results, v)
	}
	if err := e.printValidations(results, output); err != nil {
		return err
	}
	for _, err := range unread {
		e.report(err)
	}
	if len(unread) > 0 {
		return &exitError{ExitFailure}
	}
	if found {
		return errFindings
	}
	return nil
}

func (e *Env) validateFile(file string) (validation, error) {
	v := validation{File: file, Mistakes: []validateMistake{}}
	_, err := e.loadJob(file)
	var all *job.Errors
	switch {
	case err == nil:
		v.OK = true
	case errors.As(err, &all):
		v.More = all.More
		for _, m := range all.List {
			v.Mistakes = append(v.Mistakes, validateMistake{m.Line, m.Column, m.Path, m.Code, m.Message, m.Suggestion})
		}
	default:
		return v, err
	}
	return v, nil
}

func (e *Env) printValidations(results []validation, output string) error {
	if output == outputJSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	for _, v := range results {
		if v.OK {
			if _, err := fmt.Fprintf(e.Stdout, "%s: ok\n", printable(v.File)); err != nil {
				return err
			}
			continue
		}
		for _, m := range v.Mistakes {
			text := job.Mistake{Path: m.Path, Message: m.Message, Suggestion: m.Suggestion}.Text()
			if _, err := fmt.Fprintf(e.Stdout, "%s:%d:%d: %s [%s]\n", printable(v.File), m.Line, m.Column, printable(text), m.Code); err != nil {
				return err
			}
		}
		if v.More > 0 {
			if _, err := fmt.Fprintf(e.Stdout, "%s: %d more mistakes are not shown\n", printable(v.File), v.More); err != nil {
				return err
			}
		}
	}
	return nil
}
