package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// The codes of the package's errors and findings. They are stable.
const (
	CodeLocked          = "checkpoint.locked"           // another process holds the checkpoint
	CodeConcurrent      = "checkpoint.concurrent"       // a record is already there, written by someone else
	CodeMetadataMissing = "checkpoint.metadata_missing" // logs without the query id they belong to
	CodeMetadata        = "checkpoint.metadata"         // the query id is unreadable
	CodeGap             = "checkpoint.gap"              // a plan or a decision is missing
	CodeNoPlan          = "checkpoint.no_plan"          // a decision without its plan
	CodeTorn            = "checkpoint.torn"             // the last record is incomplete
	CodeUnreadable      = "checkpoint.unreadable"       // a record that is not the last is unreadable
	CodeFuture          = "checkpoint.future"           // written in a newer format
	CodeForeign         = "checkpoint.foreign"          // written by Spark
	CodeOtherJob        = "checkpoint.other_job"        // the progress of a job with another name
	CodeKind            = "checkpoint.kind"             // a link, fifo, device or directory where a file should be
	CodeMissing         = "checkpoint.missing"          // what was asked for is not retained
	CodeDamaged         = "checkpoint.damaged"          // a revision or module is not what its name says
	CodeDenied          = "checkpoint.denied"           // no permission, or a read-only file system
	CodeNoSpace         = "checkpoint.no_space"         // disk or quota full
	CodeNotDurable      = "checkpoint.not_durable"      // an fsync failed: the process must end
	CodeIO              = "checkpoint.io"               // any other failure of the file system
	CodeInvalid         = "checkpoint.invalid"          // a request that does not fit the checkpoint
	CodeLeftover        = "checkpoint.leftover"         // a file without a purpose that disturbs Spark
)

// Error is an error for a user: a stable code, the files it is about and the way out.
type Error struct {
	ErrCode string
	Files   []string // relative to the checkpoint directory where they are inside it
	WayOut  string
	Err     error
}

func (e *Error) Error() string {
	if len(e.Files) == 0 {
		return "checkpoint: " + e.Err.Error()
	}
	return "checkpoint: " + strings.Join(e.Files, ", ") + ": " + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the stable code.
func (e *Error) Code() string { return e.ErrCode }

// Hint returns the way out.
func (e *Error) Hint() string { return e.WayOut }

// The ways out that several errors share.
const (
	wayVerify = "run `wasmill checkpoint verify` to see all that is wrong, then `wasmill checkpoint repair`, or " +
		"`wasmill checkpoint fork` to go on under a new query id"
	// wayRepair takes the place of wayVerify where everything has been read.
	wayRepair = "`wasmill checkpoint repair` shows what would mend it, and does it; `wasmill checkpoint fork` goes on under a " +
		"new query id"
	// wayMetadata is for a lost query id, without which there is no fork either.
	wayMetadata = "`wasmill checkpoint repair` says where the query id is found, and with --query-id UUID --yes it writes the file anew"
	wayUpgrade  = "use the version of wasmill that wrote it, or a newer one"
	wayPerm     = "give this user the right to write to the checkpoint directory, or mount it writable"
	waySpace    = "free disk space; the job goes on by itself"
	wayRestart  = "start the job again: what was not durable is written anew; look at the disk's health first"
	wayKind     = "put the file itself in its place; the checkpoint follows no links out of its directory"
	wayDisk     = "look at the disk and the directory, then start the job again"
	wayForeign  = "import it with `wasmill checkpoint fork`, which leaves this directory alone, and give the sources names"
)

func errorf(code, wayOut string, files []string, format string, args ...any) *Error {
	return &Error{ErrCode: code, Files: files, WayOut: wayOut, Err: fmt.Errorf(format, args...)}
}

// ioError gives an error of the file system its code. An error that has one already is passed on.
func ioError(op, file string, err error) error {
	if err == nil {
		return nil
	}
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	e := &Error{ErrCode: CodeIO, WayOut: wayDisk, Err: fmt.Errorf("%s: %w", op, err)}
	if file != "" {
		e.Files = []string{file}
	}
	var locked *durable.LockedError
	switch {
	case errors.As(err, &locked):
		e.ErrCode, e.WayOut = CodeLocked, "stop the other process, or give this job a checkpoint directory of its own"
	case errors.Is(err, durable.ErrSync):
		e.ErrCode, e.WayOut = CodeNotDurable, wayRestart
	case durable.NoSpace(err):
		e.ErrCode, e.WayOut = CodeNoSpace, waySpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.ErrCode, e.WayOut = CodeDenied, wayPerm
	}
	return e
}

// TornError says that the last record of a log is incomplete. It never happened, provided that no target reports its
// batch: the caller asks the targets and then supersedes the record.
type TornError struct {
	Batch    BatchID
	Decision bool   // the decision is torn; otherwise the plan
	File     string // relative to the checkpoint directory
	Err      error  // what is wrong with it
}

func (e *TornError) Error() string {
	return fmt.Sprintf("checkpoint: %s: incomplete: %v", e.File, e.Err)
}

// Unwrap returns what is wrong with the record.
func (e *TornError) Unwrap() error { return e.Err }

// Code returns the stable code.
func (e *TornError) Code() string { return CodeTorn }

// Hint returns the way out.
func (e *TornError) Hint() string {
	return "run the job: when no target has published the batch the record is moved aside and the batch planned again"
}
