package faulty

import (
	"fmt"
	"io"
	"math"
	"path"
	"syscall"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Process is one process's door to a file system.
type Process struct {
	fs   *FS
	dead bool
}

var _ durable.Files = (*Process)(nil)

// Kill ends the process: its locks fall, nothing it does has an effect any more, and what it has written stays in the
// kernel's cache.
func (p *Process) Kill() {
	p.fs.mu.Lock()
	defer p.fs.mu.Unlock()
	p.dead = true
	p.fs.root.unlock(p)
}

// LoseLocks lets other processes take the locks of this one, which goes on without knowing: a zombie.
func (p *Process) LoseLocks() {
	p.fs.mu.Lock()
	defer p.fs.mu.Unlock()
	p.fs.root.unlock(p)
}

func (n *node) unlock(p *Process) {
	if n.locker == p {
		n.locker = nil
	}
	for _, child := range n.entries {
		child.unlock(p)
	}
}

// Create implements durable.Files.
func (p *Process) Create(name string) (durable.File, error) {
	var n *node
	err := p.do("create", name, func() error {
		dir, base, err := p.fs.parent(name)
		if err != nil {
			return err
		}
		if dir.entries[base] != nil {
			return syscall.EEXIST
		}
		n = p.fs.newNode(false)
		n.links = 1
		dir.change(change{add: base, node: n})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &file{process: p, node: n, name: name, writable: true}, nil
}

// Open implements durable.Files.
func (p *Process) Open(name string) (durable.File, error) {
	var n *node
	err := p.do("open", name, func() (err error) {
		if n, err = p.fs.walk(name); err == nil && n.dir {
			return syscall.EISDIR
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{process: p, node: n, name: name}, nil
}

// Link implements durable.Files.
func (p *Process) Link(oldname, newname string) error {
	return p.do("link", newname, func() error {
		n, err := p.fs.walk(oldname)
		if err != nil {
			return err
		}
		dir, base, err := p.fs.parent(newname)
		if err != nil {
			return err
		}
		if n.dir {
			return syscall.EPERM
		}
		if dir.entries[base] != nil {
			return syscall.EEXIST
		}
		n.links++
		dir.change(change{add: base, node: n})
		return nil
	})
}

// Rename implements durable.Files. Across directories it is two changes, either of which may be lost.
func (p *Process) Rename(oldname, newname string) error {
	return p.do("rename", newname, func() error {
		n, err := p.fs.walk(oldname)
		if err != nil {
			return err
		}
		from, oldBase, err := p.fs.parent(oldname)
		if err != nil {
			return err
		}
		to, newBase, err := p.fs.parent(newname)
		if err != nil {
			return err
		}
		if there := to.entries[newBase]; there == n {
			return nil
		} else if there != nil {
			if err := replaceable(n, there); err != nil {
				return err
			}
			p.fs.drop(there)
		}
		if from == to {
			from.change(change{remove: oldBase, add: newBase, node: n})
			return nil
		}
		to.change(change{add: newBase, node: n})
		from.change(change{remove: oldBase, node: n})
		return nil
	})
}

func replaceable(n, there *node) error {
	switch {
	case there.dir && !n.dir:
		return syscall.EISDIR
	case !there.dir && n.dir:
		return syscall.ENOTDIR
	case there.dir && len(there.entries) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// Remove implements durable.Files.
func (p *Process) Remove(name string) error {
	return p.do("remove", name, func() error {
		dir, base, err := p.fs.parent(name)
		if err != nil {
			return err
		}
		n := dir.entries[base]
		if n == nil {
			return syscall.ENOENT
		}
		if n.dir && len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		dir.change(change{remove: base, node: n})
		p.fs.drop(n)
		return nil
	})
}

// MkdirAll implements durable.Files.
func (p *Process) MkdirAll(name string) error {
	return p.do("mkdir", name, func() error {
		at := p.fs.root
		for _, part := range split(name) {
			next := at.entries[part]
			if next == nil {
				next = p.fs.newNode(true)
				at.change(change{add: part, node: next})
			}
			if !next.dir {
				return syscall.ENOTDIR
			}
			at = next
		}
		return nil
	})
}

// SyncDir implements durable.Files. After a failure the changes are still to be written: a journal keeps them.
func (p *Process) SyncDir(name string) error {
	err := p.do("syncdir", name, func() error {
		n, err := p.fs.walk(name)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		for _, c := range n.pending {
			c.apply(n.synced)
		}
		n.pending = nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("sync directory: %w: %w", durable.ErrSync, err)
	}
	return nil
}

// List implements durable.Files.
func (p *Process) List(name string) ([]durable.Info, error) {
	var infos []durable.Info
	err := p.do("list", name, func() error {
		n, err := p.fs.walk(name)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		for _, base := range names(n.entries) {
			infos = append(infos, n.entries[base].info(base))
		}
		return nil
	})
	return infos, err
}

// Stat implements durable.Files.
func (p *Process) Stat(name string) (info durable.Info, err error) {
	err = p.do("stat", name, func() error {
		n, err := p.fs.walk(name)
		if err == nil {
			info = n.info(path.Base(path.Clean(name)))
		}
		return err
	})
	return info, err
}

// Chtimes implements durable.Files.
func (p *Process) Chtimes(name string, mtime time.Time) error {
	return p.do("chtimes", name, func() error {
		n, err := p.fs.walk(name)
		if err == nil {
			n.mtime = mtime
		}
		return err
	})
}

// Lock implements durable.Files.
func (p *Process) Lock(name, holder string) (io.Closer, error) {
	var n *node
	var held *durable.LockedError
	err := p.do("lock", name, func() error {
		dir, base, err := p.fs.parent(name)
		if err != nil {
			return err
		}
		if n = dir.entries[base]; n == nil {
			n = p.fs.newNode(false)
			n.links = 1
			dir.change(change{add: base, node: n})
		}
		if n.dir {
			return syscall.EISDIR
		}
		if n.locker != nil {
			held = &durable.LockedError{Path: name, Holder: string(n.data)}
			return nil
		}
		n.locker, n.data, n.dirty = p, []byte(holder), true
		return nil
	})
	if err != nil {
		return nil, err
	}
	if held != nil {
		return nil, held
	}
	return &lock{process: p, node: n}, nil
}

type lock struct {
	process *Process
	node    *node
}

// Close gives the lock up, unless it was lost to another process.
func (l *lock) Close() error {
	l.process.fs.mu.Lock()
	defer l.process.fs.mu.Unlock()
	if l.node.locker == l.process {
		l.node.locker = nil
	}
	return nil
}

// Free implements durable.Files.
func (p *Process) Free(name string) (free int64, err error) {
	err = p.do("free", name, func() error {
		_, err := p.fs.walk(name)
		free = p.fs.space
		if free < 0 {
			free = math.MaxInt64
		}
		return err
	})
	return free, err
}
