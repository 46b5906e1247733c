package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/transforms"
)

// DefaultJobFile is the job file that commands take when none is named.
const DefaultJobFile = "job.yaml"

// CodeFile is the code of a job file that cannot be read.
const CodeFile = "job.file"

// maxJobFile is a little more than a job file may have, so that the parser can say so.
const maxJobFile = 2 << 20

// loadJob reads and checks a job file.
func (e *Env) loadJob(path string) (*job.Job, error) {
	text, err := durable.ReadFile(e.Files, path, maxJobFile)
	if err != nil {
		return nil, jobFileError(path, err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", path, err)
	}
	return job.Parse(path, text, job.Env{
		Dir:       filepath.Dir(abs),
		LookupEnv: e.LookupEnv,
		ReadFile:  func(path string) ([]byte, error) { return durable.ReadFile(e.Files, path, maxJobFile) },

		CheckConnection: pipeline.CheckConnection, CheckStatement: pipeline.CheckStatement, Stock: transforms.StockNames(),
	})
}

func jobFileError(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	wayOut := "name a job file that you may read"
	if errors.Is(err, fs.ErrNotExist) {
		wayOut = "name the job file, or write one with `wasmill init`"
	}
	return fault.New(CodeFile, path, fmt.Errorf("read the job file: %w", err), wayOut)
}
