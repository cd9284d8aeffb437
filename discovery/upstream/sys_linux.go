package upstream

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr starts a process as leader of a group of its own, and has the kernel
// kill it should the thread that started it end, as it does when we are killed.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// sealDescriptors marks every descriptor we hold, also those we were started with,
// to be closed in the programs we start.
func sealDescriptors() {
	const all = ^uint(0)
	// An old kernel may lack the call. Those of our own opening are marked anyway.
	_ = unix.CloseRange(3, all, unix.CLOSE_RANGE_CLOEXEC)
}

// awaitExit returns once the process has ended. It is not reaped yet, so its id and
// its group's cannot be given to another.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
