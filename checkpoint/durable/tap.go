package durable

import (
	"io"
	"path"
	"regexp"
	"time"
)

// Tap calls fn around every operation of files, so that a build for tests can end the process, or a test can fail an
// operation, at a point it names. op is the operation and the moment: "sync:before", "sync:after"; a write is also cut
// in two, with "write:half" between. The operations are create, open, read, write, sync, close, link, rename, remove,
// mkdir, syncdir, list, stat, chtimes, lock and free. An error of fn before an operation keeps it from happening; one
// after it is returned although the operation happened. For link and rename the path is the new name.
func Tap(files Files, fn func(op, path string) error) Files {
	return &tapped{files: files, fn: fn, half: true}
}

var (
	classTemp   = regexp.MustCompile(`^\.(.+)\.[0-9a-f]{8}\.tmp$`)
	classSuffix = regexp.MustCompile(`-[0-9a-f]{8}(\b|$)`)
	classHex    = regexp.MustCompile(`[0-9a-f]{16,}`)
	classNumber = regexp.MustCompile(`[0-9]+`)
)

// Class names the kind of a path, the same for every batch: its last two elements with numbers as N, digests as H and
// the random part of a temporary name left out, for instance "offsets/N", "offsets/.N.tmp" or "revisions/H.json".
func Class(name string) string {
	dir, base := path.Base(path.Dir(name)), path.Base(name)
	base = classTemp.ReplaceAllString(base, ".$1.tmp")
	base = classHex.ReplaceAllString(base, "H")
	base = classSuffix.ReplaceAllString(base, "-A")
	base = classNumber.ReplaceAllString(base, "N")
	if dir == "." || dir == "/" {
		return base
	}
	return classNumber.ReplaceAllString(classHex.ReplaceAllString(dir, "H"), "N") + "/" + base
}

type tapped struct {
	files Files
	fn    func(op, path string) error
	half  bool
}

// around runs do between the two calls of fn.
func (t *tapped) around(op, name string, do func() error) error {
	if err := t.fn(op+":before", name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return t.fn(op+":after", name)
}

func (t *tapped) file(op, name string, open func(string) (File, error)) (File, error) {
	var f File
	err := t.around(op, name, func() (err error) {
		f, err = open(name)
		return err
	})
	if err != nil && f != nil {
		_ = f.Close() // the caller never sees the file
	}
	if err != nil {
		return nil, err
	}
	return &tappedFile{File: f, tap: t, name: name}, nil
}

func (t *tapped) Create(name string) (File, error) { return t.file("create", name, t.files.Create) }
func (t *tapped) Open(name string) (File, error)   { return t.file("open", name, t.files.Open) }

func (t *tapped) Link(oldname, newname string) error {
	return t.around("link", newname, func() error { return t.files.Link(oldname, newname) })
}

func (t *tapped) Rename(oldname, newname string) error {
	return t.around("rename", newname, func() error { return t.files.Rename(oldname, newname) })
}

func (t *tapped) Remove(name string) error {
	return t.around("remove", name, func() error { return t.files.Remove(name) })
}

func (t *tapped) MkdirAll(name string) error {
	return t.around("mkdir", name, func() error { return t.files.MkdirAll(name) })
}

func (t *tapped) SyncDir(name string) error {
	return t.around("syncdir", name, func() error { return t.files.SyncDir(name) })
}

func (t *tapped) List(name string) (infos []Info, err error) {
	err = t.around("list", name, func() (err error) {
		infos, err = t.files.List(name)
		return err
	})
	return infos, err
}

func (t *tapped) Stat(name string) (info Info, err error) {
	err = t.around("stat", name, func() (err error) {
		info, err = t.files.Stat(name)
		return err
	})
	return info, err
}

func (t *tapped) Chtimes(name string, mtime time.Time) error {
	return t.around("chtimes", name, func() error { return t.files.Chtimes(name, mtime) })
}

func (t *tapped) Lock(name, holder string) (lock io.Closer, err error) {
	err = t.around("lock", name, func() (err error) {
		lock, err = t.files.Lock(name, holder)
		return err
	})
	if err != nil && lock != nil {
		_ = lock.Close() // the caller never sees the lock
		lock = nil
	}
	return lock, err
}

func (t *tapped) Free(name string) (free int64, err error) {
	err = t.around("free", name, func() (err error) {
		free, err = t.files.Free(name)
		return err
	})
	return free, err
}

type tappedFile struct {
	File
	tap  *tapped
	name string
}

func (f *tappedFile) Write(b []byte) (n int, err error) {
	err = f.tap.around("write", f.name, func() (err error) {
		if !f.tap.half || len(b) < 2 {
			n, err = f.File.Write(b)
			return err
		}
		if n, err = f.File.Write(b[:len(b)/2]); err != nil {
			return err
		}
		if err := f.tap.fn("write:half", f.name); err != nil {
			return err
		}
		m, err := f.File.Write(b[n:])
		n += m
		return err
	})
	return n, err
}

func (f *tappedFile) Read(b []byte) (n int, err error) {
	err = f.tap.around("read", f.name, func() (err error) {
		n, err = f.File.Read(b)
		return err
	})
	return n, err
}

func (f *tappedFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.tap.around("read", f.name, func() (err error) {
		n, err = f.File.ReadAt(b, off)
		return err
	})
	return n, err
}

func (f *tappedFile) Sync() error {
	return f.tap.around("sync", f.name, f.File.Sync)
}

// Close closes the file whatever fn says before it: a handle must not leak.
func (f *tappedFile) Close() error {
	before := f.tap.fn("close:before", f.name)
	err := f.File.Close()
	if before != nil {
		return before
	}
	if err != nil {
		return err
	}
	return f.tap.fn("close:after", f.name)
}
