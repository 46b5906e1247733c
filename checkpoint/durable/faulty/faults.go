package faulty

import (
	"errors"
	"math/rand/v2"
	"syscall"
)

// Op is one operation of a process, before it happens. Kind is one of create, open, read, write, sync, close, link,
// rename, remove, mkdir, syncdir, list, stat, chtimes, lock, free. Path is the new name for link and rename.
type Op struct {
	N    int // counted from 1 over all processes
	Kind string
	Path string
}

// Writes reports whether the operation changes anything or makes it durable.
func (o Op) Writes() bool {
	switch o.Kind {
	case "create", "write", "sync", "link", "rename", "remove", "mkdir", "syncdir", "chtimes", "lock":
		return true
	}
	return false
}

// Moment is how far an operation gets before its fault.
type Moment int

// The moments.
const (
	Before Moment = iota // nothing happens
	Half                 // a write writes half of its bytes, a sync may have written some; others: Before
	After                // it happens, and fails nevertheless
)

// Fault is what happens to an operation. The zero Fault lets it be.
type Fault struct {
	Err  error
	When Moment
}

// The errors of processes that are no more.
var (
	ErrStopped = errors.New("the machine has stopped")
	ErrKilled  = errors.New("the process was killed")
)

// SetFaults decides about every operation from now on; nil takes all faults away. It is called with the file system
// locked and must not use it.
func (f *FS) SetFaults(faults func(Op) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// StopAt stops the machine in operation n, counted from now: that one gets as far as when says, and nothing happens
// after it. Crash then gives what is left on the disk.
func (f *FS) StopAt(n int, when Moment) { f.stop(n, when, func(Op) bool { return true }) }

// StopAtChange is StopAt counting only the operations that write.
func (f *FS) StopAtChange(n int, when Moment) { f.stop(n, when, Op.Writes) }

func (f *FS) stop(n int, when Moment, counts func(Op) bool) {
	left, stopped := n, false
	f.SetFaults(func(op Op) Fault {
		if stopped {
			return Fault{Err: ErrStopped}
		}
		if counts(op) {
			left--
		}
		if left > 0 {
			return Fault{}
		}
		stopped = true
		return Fault{Err: ErrStopped, When: when}
	})
}

// FailNth fails the n-th operation that match accepts, counted from now, and all later ones too if forever is set.
func (f *FS) FailNth(n int, match func(Op) bool, fault Fault, forever bool) {
	seen := 0
	f.SetFaults(func(op Op) Fault {
		if !match(op) {
			return Fault{}
		}
		seen++
		if seen == n || (forever && seen > n) {
			return fault
		}
		return Fault{}
	})
}

// FailAtRandom fails every operation that writes with the given probability, with errors that a disk can give.
func (f *FS) FailAtRandom(r *rand.Rand, probability float64) {
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES, syscall.EDQUOT, syscall.EINTR, syscall.EMFILE}
	f.SetFaults(func(op Op) Fault {
		if !op.Writes() || r.Float64() >= probability {
			return Fault{}
		}
		return Fault{Err: errs[r.IntN(len(errs))], When: Moment(r.IntN(3))}
	})
}

// begin counts an operation and returns its fault. A killed process gets no further.
func (p *Process) begin(kind, name string, size int) Fault {
	f := p.fs
	if p.dead {
		return Fault{Err: ErrKilled}
	}
	f.ops++
	op := Op{N: f.ops, Kind: kind, Path: name}
	f.note(op, size)
	if f.faults == nil {
		return Fault{}
	}
	return f.faults(op)
}

// do runs one operation under the lock with its fault.
func (p *Process) do(kind, name string, act func() error) error {
	p.fs.mu.Lock()
	defer p.fs.mu.Unlock()
	fault := p.begin(kind, name, 0)
	if fault.Err != nil && fault.When != After {
		return pathError(kind, name, fault.Err)
	}
	if err := act(); err != nil {
		return pathError(kind, name, err)
	}
	return pathError(kind, name, fault.Err)
}
