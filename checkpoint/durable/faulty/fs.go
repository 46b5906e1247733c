// Package faulty is a file system in memory that can be made to fail and to lose power, the same way every time.
//
// It implements durable.Files for tests and for the simulator; the program never links it. It keeps what is cached apart
// from what is durable: content until the file is synced, names until their directory is. Several processes may use one
// FS, be killed, or lose their locks and go on. It must stay stricter than any real file system: what POSIX does not
// promise, a crash may take away.
package faulty

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// FS is the disk with the kernel's cache over it.
type FS struct {
	mu     sync.Mutex
	root   *node
	nodes  int
	ops    int
	faults func(Op) Fault
	space  int64 // bytes left; negative: no limit
	clock  func() time.Time
	trace  *[]string
}

// node is a file or a directory.
type node struct {
	id    int
	dir   bool
	mtime time.Time
	links int

	data    []byte // as read
	durable []byte // as after a power cut, apart from what may have been written back meanwhile
	dirty   bool
	dropped bool // a sync has failed: what was dirty then is called clean and never written

	entries map[string]*node // as read
	synced  map[string]*node // as after a power cut
	pending []change         // what lies between, in order

	locker *Process
}

// change is one step of a directory that is not durable yet. A rename inside a directory is one change: journals keep
// it whole.
type change struct {
	remove, add string // names; "" for none
	node        *node
}

func (c change) apply(entries map[string]*node) {
	if c.remove != "" && entries[c.remove] == c.node {
		delete(entries, c.remove)
	}
	if c.add != "" {
		entries[c.add] = c.node
	}
}

// New returns an empty file system without faults, of which everything is durable.
func New() *FS {
	f := &FS{space: -1}
	f.root = f.newNode(true)
	return f
}

// SetSpace limits the bytes that can still be written; a negative number lifts the limit.
func (f *FS) SetSpace(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space = bytes
}

// SetClock sets the source of modification times. Without one they count the operations in milliseconds from 2000-01-01.
func (f *FS) SetClock(now func() time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = now
}

// Ops returns how many operations there were.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// StartTrace begins to write down every operation with the class of its path (durable.Class).
func (f *FS) StartTrace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = &[]string{}
}

// Trace returns what was written down since StartTrace, one operation a line.
func (f *FS) Trace() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trace == nil || len(*f.trace) == 0 {
		return ""
	}
	return strings.Join(*f.trace, "\n") + "\n"
}

// Process returns a new process that uses the file system.
func (f *FS) Process() *Process { return &Process{fs: f} }

func (f *FS) newNode(dir bool) *node {
	f.nodes++
	n := &node{id: f.nodes, dir: dir, mtime: f.now()}
	if dir {
		n.entries, n.synced = make(map[string]*node), make(map[string]*node)
	}
	return n
}

func (f *FS) now() time.Time {
	if f.clock != nil {
		return f.clock()
	}
	return time.Unix(946684800, 0).Add(time.Duration(f.ops) * time.Millisecond)
}

// walk finds a node; the error is that of the system call.
func (f *FS) walk(name string) (*node, error) {
	at := f.root
	for _, part := range split(name) {
		if !at.dir {
			return nil, syscall.ENOTDIR
		}
		next, ok := at.entries[part]
		if !ok {
			return nil, syscall.ENOENT
		}
		at = next
	}
	return at, nil
}

// parent finds the directory of a name.
func (f *FS) parent(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err := f.walk(path.Join(parts[:len(parts)-1]...))
	if err != nil {
		return nil, "", err
	}
	if !dir.dir {
		return nil, "", syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], nil
}

// split cuts a path into its elements; a relative one is taken from the root.
func split(name string) []string {
	clean := strings.Trim(path.Clean("/"+name), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

func (n *node) change(c change) {
	c.apply(n.entries)
	n.pending = append(n.pending, c)
}

func (f *FS) drop(n *node) {
	n.links--
	if n.links == 0 && !n.dir && f.space >= 0 {
		f.space += int64(len(n.data))
	}
}

func (n *node) info(name string) durable.Info {
	return durable.Info{Name: name, Size: int64(len(n.data)), ModTime: n.mtime, Dir: n.dir, Regular: !n.dir}
}

func names(entries map[string]*node) []string {
	list := make([]string, 0, len(entries))
	for name := range entries {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (f *FS) note(op Op, size int) {
	if f.trace == nil {
		return
	}
	line := op.Kind + " " + durable.Class(op.Path)
	if op.Kind == "write" {
		line += fmt.Sprintf(" %d bytes", size)
	}
	*f.trace = append(*f.trace, line)
}
