// Package durable is the one door to the file system for everything that must survive a crash.
//
// Files is the lower floor: the operations of a POSIX file system that durability is made of, small enough to be
// simulated with all its faults. Objects, above it, writes whole objects durably and at most once. The package knows
// no format and no protocol; it must not decide what is written or when.
package durable

import (
	"context"
	"io"
	"time"
)

// Info describes one directory entry.
type Info struct {
	Name    string // base name
	Size    int64
	ModTime time.Time
	Dir     bool
	Regular bool
}

// File is an open file. It is not safe for concurrent use.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Sync returns once the file's content is durable. After an error the file must be given up: the kernel may have
	// dropped the pages and will report success next time.
	Sync() error
	Stat() (Info, error)
}

// Files is a file system. Names are slash-separated paths, absolute or relative to the process. Errors satisfy
// errors.Is with fs.ErrExist, fs.ErrNotExist and fs.ErrPermission where they apply, and name the path.
type Files interface {
	// Create makes a new file for writing and fails with fs.ErrExist when the name is taken.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// Link gives oldname a second name and fails with fs.ErrExist when newname is taken: create-if-absent.
	Link(oldname, newname string) error
	// Rename replaces newname.
	Rename(oldname, newname string) error
	Remove(name string) error
	// MkdirAll makes a directory and its parents; what exists is left alone.
	MkdirAll(name string) error
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
	// List returns a directory's entries in byte order of name.
	List(name string) ([]Info, error)
	Stat(name string) (Info, error)
	// Chtimes sets a file's modification time.
	Chtimes(name string, mtime time.Time) error
	// Lock takes an exclusive lock that ends with the process and writes holder, a text for people, into the file.
	// It fails with a *LockedError when another process holds it.
	Lock(name, holder string) (io.Closer, error)
	// Free returns the bytes left for this process on the file system of name.
	Free(name string) (int64, error)
}

// Objects is a store of whole objects. Names are slash-separated and relative to the store.
type Objects interface {
	// PutIfAbsent writes an object durably and fails with fs.ErrExist, changing nothing, when the name is taken.
	PutIfAbsent(ctx context.Context, name string, content []byte) error
	// Replace writes an object durably whether or not the name is taken. A reader sees the old or the new one.
	Replace(ctx context.Context, name string, content []byte) error
	Read(ctx context.Context, name string, max int64) ([]byte, error)
	List(ctx context.Context, dir string) ([]Info, error)
	Remove(ctx context.Context, name string) error
}

// LockedError says that another process holds a lock. Holder is what it wrote about itself.
type LockedError struct {
	Path, Holder string
}

func (e *LockedError) Error() string { return "lock " + e.Path + ": held by " + e.Holder }
