package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"mcpledger/events"
)

// Backup copies the log in dir into the folder dest, which it makes, while the log
// may be in use. The copy is a data folder as of one moment. It has the secret key
// only if withKey is set; restored without it every server is a new connection.
// ErrNotEmpty if dest has a log, events.ErrInUse while another backup makes one there.
func Backup(ctx context.Context, dir, dest string, withKey bool) error {
	if err := backup(ctx, dir, dest, withKey); err != nil {
		return fmt.Errorf("back up %s to %s: %w", dir, dest, err)
	}
	return nil
}

func backup(ctx context.Context, dir, dest string, withKey bool) (err error) {
	if _, err := os.Stat(filepath.Join(dir, DatabaseFile)); err != nil {
		return err
	}
	var key []byte
	if withKey {
		if key, err = LoadKey(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return err
	}
	locked, err := lockFolder(dest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	path := filepath.Join(dest, DatabaseFile)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s has a log: %w", dest, ErrNotEmpty)
	}
	if withKey {
		if err := writeFileSync(filepath.Join(dest, keyFile), key); err != nil {
			return err
		}
	}
	// The database gets its name once it is whole.
	temp := path + ".tmp"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := createPrivate(temp); err != nil {
		return err
	}
	if err := vacuumInto(ctx, dir, temp); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(dest)
}

// lockFolder keeps other backups out of the folder dir until the file it returns is closed.
// Two of them would put what is not whole yet under the other's name.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: another backup is under way there", events.ErrInUse)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// vacuumInto writes the database of dir into an empty file, and syncs it.
func vacuumInto(ctx context.Context, dir, file string) error {
	reads, err := openReads(ctx, dir)
	if err != nil {
		return err
	}
	_, err = reads.ExecContext(ctx, "VACUUM INTO ?", file)
	if err := errors.Join(explain(err), reads.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
