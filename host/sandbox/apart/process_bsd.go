//go:build unix && !linux

package apart

import (
	"os/exec"
	"syscall"
)

// confine gives a child a process group of its own, which is killed as a whole.
func confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
