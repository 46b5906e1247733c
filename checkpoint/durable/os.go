package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrSync is wrapped by every error of Sync and SyncDir. The kernel may have dropped the pages that it could not write
// and will report success next time, so a process that meets it must end and recover; it must never sync again and go on.
var ErrSync = errors.New("not known to be durable")

// errNotRegular refuses to open what may block or never end: a fifo, a device. A directory is refused with EISDIR.
var errNotRegular = errors.New("not a regular file")

// maxHolder bounds what is read of a lock's text, which another process wrote.
const maxHolder = 4 << 10

// OS returns the real file system. Files are made with mode 0644 and directories with 0755, less the process's umask.
func OS() Files { return osFiles{} }

type osFiles struct{}

func (osFiles) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Open follows symbolic links, as inputs may be links. O_NONBLOCK keeps a fifo from blocking the open; it is then refused.
func (osFiles) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (osFiles) Link(oldname, newname string) error   { return os.Link(oldname, newname) }
func (osFiles) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (osFiles) Remove(name string) error             { return os.Remove(name) }
func (osFiles) MkdirAll(name string) error           { return os.MkdirAll(name, 0o755) }

// SyncDir uses os.File.Sync, which is fsync on Linux and F_FULLFSYNC on Darwin, and which goes on after EINTR.
func (osFiles) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync directory: %w: %w", ErrSync, err), d.Close())
	}
	return d.Close()
}

func (osFiles) List(name string) ([]Info, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the directory was read
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, infoOf(info))
	}
	return infos, nil
}

func (osFiles) Stat(name string) (Info, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

func (osFiles) Chtimes(name string, mtime time.Time) error {
	return os.Chtimes(name, time.Time{}, mtime)
}

// Lock takes a kernel flock: it ends with the process however that ends, and is not inherited by a child.
func (osFiles) Lock(name, holder string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, holder); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lockFile(f *os.File, holder string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: errNotRegular}
	}
	err = flock(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &LockedError{Path: f.Name(), Holder: readHolder(f)}
	}
	if err != nil {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(holder), 0)
	return err
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func readHolder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, maxHolder))
	if err != nil || len(text) == 0 {
		return "another process"
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")
}

func (osFiles) Free(name string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(name, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
		}
		break
	}
	block := uint64(st.Bsize)
	if block != 0 && st.Bavail > math.MaxInt64/block {
		return math.MaxInt64, nil
	}
	return int64(st.Bavail * block), nil
}

// NoSpace reports whether an error says that the disk or the quota is full: a state that ends by itself.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

type osFile struct{ *os.File }

func (f osFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrSync, err)
	}
	return nil
}

func (f osFile) Stat() (Info, error) {
	info, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

func infoOf(i fs.FileInfo) Info {
	return Info{
		Name: i.Name(), Size: i.Size(), ModTime: i.ModTime(),
		Dir: i.IsDir(), Regular: i.Mode().IsRegular(),
	}
}
