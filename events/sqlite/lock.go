package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"mcpledger/events"
)

const lockFile = "ledger.lock"

// acquire takes the lock of the data folder for this process. The lock goes when
// the returned file is closed or the process ends, however it ends. A held lock
// gives events.ErrInUse.
func acquire(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := "another process"
		if pid, readErr := os.ReadFile(path); readErr == nil && len(bytes.TrimSpace(pid)) > 0 {
			holder = "process " + string(bytes.TrimSpace(pid))
		}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held for writing by %s", events.ErrInUse, dir, holder)
		}
		return nil, unwritable(err)
	}
	// The pid is for the sentence above; without it that names nobody.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}
