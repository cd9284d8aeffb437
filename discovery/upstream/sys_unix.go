//go:build unix && !linux

package upstream

import (
	"os/exec"
	"syscall"
)

// groupAttr starts a process as leader of a group of its own.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// sealDescriptors does nothing: what Go opens is closed in programs it starts.
func sealDescriptors() {}

// awaitExit returns once the process has ended. It is reaped at once, for its end
// cannot be seen otherwise here.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }
