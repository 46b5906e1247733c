package files

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

// The codes of this package's faults. CodeChanged wraps a *source.ChangedError.
const (
	CodeConfig     = "source.config"
	CodeMissing    = "source.missing"
	CodeUnreadable = "source.unreadable"
	CodeChanged    = "source.changed"
	CodeMoved      = "source.moved"
	CodeTruncated  = "source.truncated"
	CodeCorrupt    = "source.corrupt"
	CodeHeader     = "source.header"
	CodeLog        = "source.log_damaged"
	CodePosition   = "source.position"
	CodeVersion    = "source.version"
	CodeNoSpace    = "source.no_space"   // the disk of the checkpoint is full
	CodeUnwritable = "source.unwritable" // what was read cannot be noted in the checkpoint
)

// The codes of rejected records.
const (
	RejectTooLarge = "too_large" // longer than MaxLine
	RejectRow      = "bad_row"   // a CSV row that is not well formed, or does not fit its header
	RejectValue    = "bad_value" // a Parquet value that has no JSON form, such as a time outside the years 0 to 9999, or that cannot be told for certain
)

func configFault(name, what string) error {
	return fault.New(CodeConfig, "source "+name, errors.New(what), "mend the source in the job file")
}

func changed(path, format string, args ...any) *fault.Error {
	return fault.New(CodeChanged, path, change{&source.ChangedError{Split: path, Detail: fmt.Sprintf(format, args...)}},
		putBack)
}

const (
	putBack  = "put the file back as it was and start again (new data belongs into a file with a new name)"
	skipOnce = "; or, for one start, set `onDataLoss: skip` of the source in the job file: "
)

// change is a ChangedError whose place is told by the fault around it.
type change struct{ err *source.ChangedError }

func (c change) Error() string { return c.err.Detail }
func (c change) Unwrap() error { return c.err }

// lost reports whether an error says that planned data is gone for good.
func lost(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	return f.ErrCode == CodeChanged || f.ErrCode == CodeTruncated || f.ErrCode == CodeCorrupt
}

// unreadable wraps an error of the file system about path.
func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(CodeUnreadable, path, err, "give the process leave to read it")
	}
	return fault.New(CodeUnreadable, path, err, "see that the disk is well and start again")
}

// unwritable wraps an error of writing down what was read.
func unwritable(path string, err error) error {
	err = fmt.Errorf("write source log: %w", err)
	if _, known := errors.AsType[*fault.Error](err); known {
		return err // a log that it is made from cannot be read
	}
	if durable.NoSpace(err) {
		return fault.New(CodeNoSpace, path, err, "make room on the disk of the checkpoint; the job goes on by itself")
	}
	return fault.New(CodeUnwritable, path, err, "let the process write to the checkpoint, see that the disk is well and start again")
}

// vanished turns a failed open of a planned file into a change, other errors into unreadable.
func vanished(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return changed(path, "the file is gone")
	}
	return unreadable(path, err)
}

func damaged(path string, err error) error {
	return fault.New(CodeLog, path, err,
		"restore the checkpoint's sources folder from a copy; without it files would be read twice")
}

func badPosition(text string, err error) error {
	return fault.New(CodePosition, "", fmt.Errorf("position %.200q of a files source: %w", text, err),
		"run `wasmill checkpoint verify`")
}
