package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

// openLog takes hold of the log in the data folder.
func (p *program) openLog(ctx context.Context, dir string, logger *slog.Logger) (*sqlite.Log, error) {
	log, err := sqlite.Open(ctx, dir, sqlite.Options{Now: p.now, Logger: logger})
	if err != nil {
		return nil, withNextStep(err)
	}
	return log, nil
}

// hasLog reports whether there is a log in dir.
func hasLog(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, sqlite.DatabaseFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// withNextStep adds to an error of the log what a person can do about it. A damaged one
// shows itself wherever it is read, and so report sees to that.
func withNextStep(err error) error {
	for _, known := range []struct {
		is   error
		next string
	}{
		{events.ErrInUse, "stop that service, or give another folder with --data"},
		{events.ErrNewer, "update this program, or give another folder with --data"},
		{sqlite.ErrDamagedKey, "put back the one that the log was written with, or remove it to have every server taken for new"},
		{syscall.ENOTDIR, "give a folder with --data"},
		{events.ErrUnavailable, "make room and the folder writable, or give another one with --data"},
		{fs.ErrPermission, "do it as the user the folder belongs to, or give another one with --data"},
		{fs.ErrNotExist, "give the folder of a service with --data"},
	} {
		if errors.Is(err, known.is) {
			return fmt.Errorf("%w; %s", err, known.next)
		}
	}
	return err
}
