package apart

import (
	"os/exec"
	"syscall"
)

// confine gives a child a process group of its own, which is killed as a whole, and ends it with the thread that starts it.
func confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
