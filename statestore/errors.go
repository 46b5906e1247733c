package statestore

import (
	"errors"
	"fmt"
)

// Sentinels of this package; test with errors.Is.
var (
	// ErrCompacted: the state as of that batch is no longer kept.
	ErrCompacted = errors.New("the state of that batch is no longer kept")
	// ErrFuture: the batch is not sealed yet.
	ErrFuture = errors.New("the batch is not sealed yet")
	// ErrMissing: the changelog of a decided batch is not there. The error is a *FileError.
	ErrMissing = errors.New("the changelog is missing")
	// ErrCorrupt: the content of a file is not what was written. The error is a *FileError.
	ErrCorrupt = errors.New("the content is damaged")
	// ErrNewer: the file was written by a newer version. The error is a *FileError.
	ErrNewer = errors.New("written by a newer version")
	// ErrDamaged: the backend's folder cannot be used. What it held can be built again from snapshots and changelogs.
	ErrDamaged = errors.New("the state folder is damaged")
	// ErrClosed: the store, view or transaction was closed.
	ErrClosed = errors.New("closed")
	// ErrLimit: a key, a value or the number of tables is over the limit.
	ErrLimit = errors.New("over the limit")
)

// FileError names the file, the batch and, if it is known, the place in the file of ErrMissing, ErrCorrupt or ErrNewer.
type FileError struct {
	File   string
	Batch  int64
	Offset int64 // in bytes; negative: the whole file
	Detail string
	Err    error
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("state of batch %d: %s", e.Batch, e.File)
	if e.Offset >= 0 {
		text += fmt.Sprintf(" at byte %d", e.Offset)
	}
	text += ": " + e.Err.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the sentinel, and with it what the file system said.
func (e *FileError) Unwrap() error { return e.Err }
