//go:build !linux

package demo

import (
	"os/exec"
	"syscall"
)

// bind takes a child out of the terminal's process group, whose keys are for the demo. It ends with the demo because its
// standard input does.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
