package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// The codes of this package's faults.
const (
	CodeConfig     = "sink.config"      // the settings contradict each other
	CodeOtherQuery = "sink.other_query" // the directory belongs to another query
	CodeOtherSink  = "sink.other_sink"  // the directory belongs to another sink of this query
	CodeForeign    = "sink.foreign"     // the directory holds files that Wasmill did not write
	CodeMoved      = "sink.moved"       // the directory was moved, so that its manifest points elsewhere
	CodeNewer      = "sink.newer"       // a newer version of Wasmill has written there
	CodeDamaged    = "sink.damaged"     // the manifest or the owner file cannot be read
	CodeConflict   = "sink.conflict"    // another writer has published something else
	CodeLocked     = "sink.locked"      // another process writes there
	CodeNoSpace    = "sink.no_space"    // the disk or the quota is full
	CodePermission = "sink.permission"  // reading or writing is not allowed
	CodeTooLong    = "sink.too_long"    // the file system takes no name or path of that length
	CodeDisk       = "sink.disk"        // the file system failed in another way
)

// The ways out of a directory that cannot be gone on with. A new directory alone is none: the checkpoint knows what is
// published in this one.
const (
	beginAnew   = "begin new places where the checkpoint stands: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file and a new directory for each sink"
	restoreFile = "restore the file from a backup; or " + beginAnew
)

// wrap says what failed, and makes a fault of what a user can mend.
func (t *Target) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	err = fmt.Errorf("%s: %w", op, err)
	var locked *durable.LockedError
	var errno syscall.Errno
	switch {
	case durable.NoSpace(err):
		return fault.New(CodeNoSpace, t.dir, err, "make room on the disk; then the job goes on by itself, or when it is started again if its trigger is availableNow")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(CodePermission, t.dir, err, "give the user that runs wasmill the right to write in this directory")
	case errors.As(err, &locked):
		return fault.New(CodeLocked, t.dir, err, "stop the other process; each sink needs a directory of its own")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.New(CodeTooLong, t.dir, err, "partition by columns with shorter values, in a directory on a file system that takes names of 255 bytes; "+beginAnew)
	case errors.As(err, &errno):
		return fault.New(CodeDisk, t.dir, err, "see that the disk is well and that no file stands where a directory has to be, and start again; what is decided is published then")
	}
	return err
}

func (t *Target) fail(code, place, wayOut, format string, args ...any) error {
	return fault.New(code, place, fmt.Errorf(format, args...), wayOut)
}
