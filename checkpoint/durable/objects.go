package durable

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
)

// ErrTooLarge is wrapped by Read when an object is larger than the caller will take.
var ErrTooLarge = errors.New("larger than the limit")

// Option changes how NewObjects works.
type Option func(*objects)

// WithUnique sets the source of the random part of temporary names, so that a simulation repeats itself. Two calls
// must never return the same text, in any process that shares the directory.
func WithUnique(unique func() string) Option {
	return func(o *objects) { o.unique = unique }
}

// NewObjects keeps objects as files below dir, which must exist, as must the directories in the names of objects.
func NewObjects(files Files, dir string, opts ...Option) Objects {
	o := &objects{files: files, dir: dir, unique: Unique}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// Unique returns 8 random hex digits.
func Unique() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process when the system has no randomness
	return hex.EncodeToString(b[:])
}

type objects struct {
	files  Files
	dir    string
	unique func() string
}

// PutIfAbsent gives the name to a file that is already complete and synced, and returns when the name is durable too.
// The temporary file goes last: until the directory is synced it is a second way to the content.
func (o *objects) PutIfAbsent(ctx context.Context, name string, content []byte) error {
	temp, final, err := o.prepare(ctx, name, content)
	if err != nil {
		return err
	}
	err = o.files.Link(temp, final)
	if err == nil {
		err = o.files.SyncDir(path.Dir(final))
	}
	if rerr := o.files.Remove(temp); err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (o *objects) Replace(ctx context.Context, name string, content []byte) error {
	temp, final, err := o.prepare(ctx, name, content)
	if err != nil {
		return err
	}
	if err := o.files.Rename(temp, final); err != nil {
		_ = o.files.Remove(temp) // a left-over is swept later
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := o.files.SyncDir(path.Dir(final)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// prepare writes the content under a temporary name. fs.ErrExist never comes from here: it would say that name is taken.
func (o *objects) prepare(ctx context.Context, name string, content []byte) (temp, final string, err error) {
	if err := ctx.Err(); err != nil {
		return "", "", fmt.Errorf("write %s: %w", name, err)
	}
	final = path.Join(o.dir, name)
	temp = TempName(final, o.unique())
	err = WriteFile(o.files, temp, content)
	if errors.Is(err, fs.ErrExist) {
		return "", "", fmt.Errorf("write %s: the temporary name %s is taken", name, path.Base(temp))
	}
	if err != nil {
		_ = o.files.Remove(temp) // a left-over is swept later
		return "", "", fmt.Errorf("write %s: %w", name, err)
	}
	return temp, final, nil
}

func (o *objects) Read(ctx context.Context, name string, max int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return ReadFile(o.files, path.Join(o.dir, name), max)
}

func (o *objects) List(ctx context.Context, dir string) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return o.files.List(path.Join(o.dir, dir))
}

// Remove returns once the name is gone for good.
func (o *objects) Remove(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	full := path.Join(o.dir, name)
	if err := o.files.Remove(full); err != nil {
		return err
	}
	return o.files.SyncDir(path.Dir(full))
}

// TempName is the name under which an object is written before it gets its own: hidden, and in the same directory.
func TempName(final, unique string) string {
	return path.Join(path.Dir(final), "."+path.Base(final)+"."+unique+".tmp")
}

// WriteFile makes a new file with the content and syncs it. It fails with fs.ErrExist when the name is taken. The name
// itself is durable only after SyncDir.
func WriteFile(files Files, name string, content []byte) error {
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	err = WriteAll(f, content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// WriteAll writes all of content, going on after short and interrupted writes.
func WriteAll(w io.Writer, content []byte) error {
	for len(content) > 0 {
		n, err := w.Write(content)
		if n < 0 || n > len(content) {
			return fmt.Errorf("write returned a count of %d: %w", n, io.ErrShortWrite)
		}
		content = content[n:]
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 && len(content) > 0 {
			return io.ErrShortWrite
		}
	}
	return nil
}

// ReadFile reads a regular file of at most max bytes; a larger one is ErrTooLarge.
func ReadFile(files Files, name string, max int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	_, err = io.Copy(&buf, io.LimitReader(f, max+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	if int64(buf.Len()) > max {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w of %d bytes", ErrTooLarge, max)}
	}
	return buf.Bytes(), nil
}

// MakeDir makes a directory and those of its parents that are missing, and returns when their names are durable. A
// directory that exists already is left alone: whoever made it syncs it.
func MakeDir(files Files, dir string) error {
	missing, err := missingDirs(files, dir)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range missing {
		if err := files.SyncDir(path.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// missingDirs returns the directories that MkdirAll would make, the innermost first.
func missingDirs(files Files, dir string) ([]string, error) {
	var missing []string
	for d := path.Clean(dir); ; d = path.Dir(d) {
		info, err := files.Stat(d)
		if err == nil && !info.Dir {
			return nil, &fs.PathError{Op: "mkdir", Path: d, Err: syscall.ENOTDIR}
		}
		if err == nil {
			return missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, d)
		if d == path.Dir(d) {
			return missing, nil
		}
	}
}
