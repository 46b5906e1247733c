package demo

import (
	"os/exec"
	"syscall"
)

// bind takes a child out of the terminal's process group, whose keys are for the demo, and ends it with the demo.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
