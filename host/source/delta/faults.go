package delta

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/source"
)

// The codes of this package's faults, beside those of host/delta. CodeChanged wraps a *source.ChangedError.
const (
	CodeConfig     = "source.config"
	CodeStart      = "source.start"      // the version to begin with is not there yet
	CodeTable      = "source.table"      // another table lies where the planned one was
	CodeRemoved    = "source.removed"    // a version removes rows
	CodeSchema     = "source.schema"     // the schema changed under the running job
	CodeChanged    = "source.changed"    // a file is gone or is not what the log says
	CodeCorrupt    = "source.corrupt"    // a file is no parquet file, or not that of the schema
	CodeUnreadable = "source.unreadable" // the file system failed
	CodePosition   = "source.position"
	CodeVersion    = "source.version"
)

// The codes of rejected records.
const (
	RejectTooLarge = "too_large" // the row as JSON is longer than a record may be
	RejectValue    = "bad_value" // a text that is not UTF-8 has no JSON form; a time of Spark's old calendar that cannot be told for certain
)

func configFault(name, what string) error {
	return fault.New(CodeConfig, "source "+name, errors.New(what), "mend the source in the job file")
}

func changed(path, format string, args ...any) error {
	return fault.New(CodeChanged, path, change{&source.ChangedError{Split: path, Detail: fmt.Sprintf(format, args...)}},
		"restore the file from a copy; or go on without what is lost, with `onDataLoss: skip` of the source in the job file")
}

// change is a ChangedError whose place is told by the fault around it.
type change struct{ err *source.ChangedError }

func (c change) Error() string { return c.err.Detail }
func (c change) Unwrap() error { return c.err }

func corrupt(path string, err error) error {
	if no, ok := errors.AsType[*parquetfile.UnsupportedError](err); ok {
		return fault.New(CodeCorrupt, path, fmt.Errorf("the data file is whole, but %w", no), no.Hint()+"; or go on without it, with `onDataLoss: skip` of the source in the job file")
	}
	return fault.New(CodeCorrupt, path, fmt.Errorf("the data file cannot be read: %w", err), "restore the file from a copy, or have the engine that wrote it write it anew")
}

// lost reports whether an error says that data of the table is gone for good.
func lost(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && (f.ErrCode == CodeChanged || f.ErrCode == CodeCorrupt)
}

// missing adds the way out of a source to the lack of a table.
func missing(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(err, delta.ErrNoTable) {
		return err
	}
	return fault.New(f.ErrCode, f.Place, f.Err, "name the directory of a Delta table, or start the job when the table is made")
}

const orSkip = "restore the table's _delta_log from a copy; or go on without what is lost, with `onDataLoss: skip` of the source in the job file"

// cleaned adds the way out of a source to the loss of versions.
func cleaned(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(err, delta.ErrNoVersion) {
		return err
	}
	return fault.New(f.ErrCode, f.Place, f.Err, orSkip)
}

func noVersion(dir, format string, args ...any) error {
	return fault.New(delta.CodeNoVersion, dir, fmt.Errorf("%w: %s", delta.ErrNoVersion, fmt.Sprintf(format, args...)), orSkip)
}

// unreadable wraps an error of the file system about path.
func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(CodeUnreadable, path, err, "give the process leave to read it")
	}
	return fault.New(CodeUnreadable, path, err, "see that the disk is well and start again")
}

func badPosition(text string, err error) error {
	return fault.New(CodePosition, "", fmt.Errorf("position %.200q of a delta source: %w", text, err), "run `wasmill checkpoint verify`")
}

const newStart = "put the table back that the job has read; or read this one from its beginning, with another checkpoint or under another name of the source"

func (s *Source) otherTable(was, is string) error {
	return fault.New(CodeTable, s.cfg.Dir, fmt.Errorf("the table has the id %s, and what was read before is of a table with the id %s", is, was), newStart)
}

func madeAnew(dir string, version int64) error {
	return fault.New(CodeTable, dir, fmt.Errorf("version %d is another one than when it was read: the table was made anew or set back", version), newStart)
}
