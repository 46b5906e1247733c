package delta

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// The codes of this package's faults. Those of the table's log are of host/delta.
const (
	CodeConfig     = "sink.config"     // the settings contradict each other
	CodeForeign    = "sink.foreign"    // the directory holds files and is no table
	CodeSchema     = "sink.schema"     // the schema does not fit the table
	CodeTable      = "sink.table"      // the table has a property that this mode cannot serve
	CodeRecreated  = "sink.recreated"  // the table was made anew, or is gone
	CodeExpired    = "sink.expired"    // the table has forgotten what is published
	CodeConflict   = "sink.conflict"   // another process publishes for the same query
	CodeBusy       = "sink.busy"       // other writers were always faster
	CodeDamaged    = "sink.damaged"    // what was staged, or a file of the table, cannot be read
	CodeNoSpace    = "sink.no_space"   // the disk or the quota is full
	CodePermission = "sink.permission" // reading or writing is not allowed
	CodeTooLong    = "sink.too_long"   // the file system takes no name or path of that length
	CodeDisk       = "sink.disk"       // the file system failed in another way
)

// The ways out of a table that cannot be gone on with. A new directory alone is none: the checkpoint knows what is published
// in this one.
const (
	beginAnew = "begin a new table where the checkpoint stands: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file and a new path for the sink"
	whoElse   = "find out which other process runs this job, or which copy of the checkpoint is the right one; `wasmill checkpoint fork` starts anew"
)

// wrap says what failed, and makes a fault of what a user can mend.
func (t *Target) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return fmt.Errorf("%s: %w", op, err)
	}
	err = fmt.Errorf("%s: %w", op, err)
	var errno syscall.Errno
	switch {
	case durable.NoSpace(err):
		return fault.New(CodeNoSpace, t.dir, err, "make room on the disk; then the job goes on by itself, or when it is started again if its trigger is availableNow")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(CodePermission, t.dir, err, "give the user that runs wasmill the right to write in this directory")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.New(CodeTooLong, t.dir, err, "partition by columns with shorter values, in a directory on a file system that takes names of 255 bytes; "+beginAnew)
	case errors.As(err, &errno):
		return fault.New(CodeDisk, t.dir, err, "see that the disk is well and that no file stands where a directory has to be, and start again; what is decided is published then")
	}
	return err
}

func (t *Target) fail(code, wayOut, format string, args ...any) error {
	return fault.New(code, t.dir, fmt.Errorf(format, args...), wayOut)
}
