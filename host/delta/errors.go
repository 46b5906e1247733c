package delta

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// The codes of this package's faults.
const (
	CodeNoTable    = "delta.no_table"   // the directory holds no log
	CodeNoVersion  = "delta.no_version" // the version is not in the log, or not any more
	CodeDamaged    = "delta.damaged"    // an entry or a checkpoint is torn, missing or contradicts itself
	CodeFeature    = "delta.feature"    // the table uses a feature that is not supported
	CodeSchema     = "delta.schema"     // the schema cannot be used
	CodePath       = "delta.path"       // a data file lies outside the table, or its path cannot be read
	CodeExists     = "delta.exists"     // another writer has taken the version
	CodeInvalid    = "delta.invalid"    // actions that may not stand in one entry
	CodeTooLarge   = "delta.too_large"  // an entry or a checkpoint is larger than the limit
	CodePermission = "delta.permission" // reading or writing is not allowed
	CodeNoSpace    = "delta.no_space"   // the disk or the quota is full
	CodeDisk       = "delta.disk"       // the file system failed in another way
	CodeCheckpoint = "delta.checkpoint" // a checkpoint could not be written
	CodeValue      = "delta.value"      // a partition value does not fit its column
)

// What callers tell apart; the errors that wrap them are faults.
var (
	// ErrNoTable says that there is no log.
	ErrNoTable = errors.New("no Delta table")
	// ErrNoVersion says that a version is not there.
	ErrNoVersion = errors.New("no such version")
	// ErrExists says that an entry of that version is there already: the race is lost.
	ErrExists = errors.New("the version is taken")
)

const (
	restoreLog = "restore the table's _delta_log from a backup, or have the engine that wrote the table repair it"
	otherTable = "write to another table, or take the feature off this one"
)

func damaged(place, format string, args ...any) error {
	return fault.New(CodeDamaged, place, fmt.Errorf(format, args...), restoreLog)
}

// wrap says what failed, and makes a fault of what a user can mend.
func wrap(op, place string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	err = fmt.Errorf("%s: %w", op, err)
	var errno syscall.Errno
	switch {
	case errors.Is(err, durable.ErrTooLarge):
		return fault.New(CodeTooLarge, place, err, "have another engine write a checkpoint and clean the log, then start again")
	case durable.NoSpace(err):
		return fault.New(CodeNoSpace, place, err, "make room on the disk")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(CodePermission, place, err, "give the user that runs wasmill the right to read and write the table")
	case errors.As(err, &errno), errors.Is(err, fs.ErrNotExist):
		return fault.New(CodeDisk, place, err, "see that the disk is well and that no file stands where a directory has to be")
	}
	return err
}

func (l *Log) place(name string) string { return path.Join(l.dir, name) }
