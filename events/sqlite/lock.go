package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"mcpledger/events"
)

// LockFile is the name of the file in a data folder that is locked while a process has
// the log open for writing.
const LockFile = "ledger.lock"

// A held lock is asked for again, since its holder may be about to let go of it: one that
// was just told to stop, or killed. When the holder is gone already, what it was starting
// when it was killed has the lock until it becomes another program, which on a busy
// machine takes a while.
const (
	lockPoll  = 20 * time.Millisecond
	goingWait = time.Second     // for a holder that is there
	goneWait  = 5 * time.Second // for what is left of one that is not
)

// acquire takes the lock of the data folder for this process. The lock goes when
// the returned file is closed or the process ends, however it ends. A lock that stays
// held gives events.ErrInUse.
func acquire(ctx context.Context, dir string) (*os.File, error) {
	path := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := lock(ctx, f, dir); err != nil {
		_ = f.Close()
		return nil, err
	}
	// The pid is for those who ask in vain; without it they wait no longer, and name nobody.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// lock locks the lock file f of the folder dir, waiting a moment if it must.
func lock(ctx context.Context, f *os.File, dir string) error {
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for waited := time.Duration(0); ; waited += lockPoll {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return unwritable(err)
		}
		holder, patience := holderOf(f.Name())
		if waited >= patience {
			return fmt.Errorf("%w: %s is held for writing by %s", events.ErrInUse, dir, holder)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holderOf says who holds the lock file at path, and how long it is waited for.
func holderOf(path string) (name string, patience time.Duration) {
	content, _ := os.ReadFile(path) // it may be empty for a moment, and is not needed
	pid, err := strconv.Atoi(string(bytes.TrimSpace(content)))
	if err != nil || pid <= 0 {
		return "another process", goingWait
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return fmt.Sprintf("what is left of process %d", pid), goneWait
	}
	return fmt.Sprintf("process %d", pid), goingWait
}
