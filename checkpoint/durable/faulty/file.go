package faulty

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// file is an open file of a process.
type file struct {
	process  *Process
	node     *node
	name     string
	offset   int64
	writable bool
	closed   bool
}

func (f *file) do(kind string, act func() error) error {
	return f.process.do(kind, f.name, func() error {
		if f.closed {
			return fs.ErrClosed
		}
		return act()
	})
}

func (f *file) Read(b []byte) (n int, err error) {
	n, err = f.ReadAt(b, f.offset)
	f.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	end := false
	err = f.do("read", func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		if off < int64(len(f.node.data)) {
			n = copy(b, f.node.data[off:])
		}
		end = n < len(b)
		return nil
	})
	if err != nil {
		return 0, err
	}
	if end {
		return n, io.EOF
	}
	return n, nil
}

// Write appends. A fault in the middle, or the end of the space, leaves a part of the bytes there.
func (f *file) Write(b []byte) (int, error) {
	f.process.fs.mu.Lock()
	defer f.process.fs.mu.Unlock()
	fault := f.process.begin("write", f.name, len(b))
	if fault.Err == nil && f.closed {
		fault.Err = fs.ErrClosed
	}
	if fault.Err == nil && !f.writable {
		fault.Err = syscall.EBADF
	}
	n := len(b)
	switch {
	case fault.Err != nil && fault.When == Before:
		n = 0
	case fault.Err != nil && fault.When == Half:
		n /= 2
	}
	if space := f.process.fs.space; space >= 0 && int64(n) > space {
		n = int(space)
		if fault.Err == nil {
			fault.Err = syscall.ENOSPC
		}
	}
	f.append(b[:n])
	return n, pathError("write", f.name, fault.Err)
}

func (f *file) append(b []byte) {
	if len(b) == 0 {
		return
	}
	f.node.data = append(f.node.data[:len(f.node.data):len(f.node.data)], b...)
	f.node.dirty, f.node.mtime = true, f.process.fs.now()
	if f.process.fs.space >= 0 {
		f.process.fs.space -= int64(len(b))
	}
}

// Sync makes the content durable. When it fails, the pages that were dirty are lost and called clean: a later sync
// succeeds and writes nothing of them.
func (f *file) Sync() error {
	err := f.do("sync", func() error {
		if !f.node.dropped {
			f.node.durable, f.node.dirty = f.node.data, false
		}
		return nil
	})
	if err != nil {
		f.process.fs.mu.Lock()
		defer f.process.fs.mu.Unlock()
		f.node.dropped = f.node.dropped || f.node.dirty
		return fmt.Errorf("%w: %w", durable.ErrSync, err)
	}
	return nil
}

func (f *file) Stat() (info durable.Info, err error) {
	err = f.do("stat", func() error {
		info = f.node.info(path.Base(path.Clean(f.name)))
		return nil
	})
	return info, err
}

// Close closes the file even when a fault says that it failed.
func (f *file) Close() error {
	err := f.do("close", func() error { return nil })
	f.closed = true
	return err
}
