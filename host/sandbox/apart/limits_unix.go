//go:build unix

package apart

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// memorySlack is what the system gives a child above its limit of memory: Go takes address space in steps of 64 MiB, and
// the child's own look at its memory is to come first, for it can tell.
const memorySlack = 256 << 20

// cpuSlack is what it gets above its limit of processor time, which the kernel counts less exactly than it reports it.
const cpuSlack = time.Second

// maxFile bounds what a child can write, in bytes.
const maxFile = 1 << 30

// bound sets the limits of this process, for good, and closes what it was born with besides its three descriptors.
func bound(l Limits) error {
	for _, r := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CPU, uint64((l.CPU+cpuSlack)/time.Second) + 1},
		{unix.RLIMIT_DATA, uint64(l.Memory) + memorySlack},
		{unix.RLIMIT_FSIZE, maxFile},
		{unix.RLIMIT_CORE, 0},
	} {
		var have unix.Rlimit
		if err := unix.Getrlimit(r.resource, &have); err != nil {
			return err
		}
		most := min(r.most, have.Max)
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return closeInherited()
}

// closeInherited closes the descriptors that outlived the start of this program. Those that it opened itself do not outlive
// another one's, which is how they are told apart.
func closeInherited() error {
	entries, err := os.ReadDir("/dev/fd")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // a system without the list; then what was inherited stays
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // it is not ours to report on
		}
	}
	return nil
}

// used is the processor time of all threads of this process.
func used() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// killed says whether a process ended by the signal that nobody can catch.
func killed(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// ours says whether a file belongs to the user this process runs as.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}
