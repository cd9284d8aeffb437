package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mcpledger/events"
)

// The errors of this log beyond those of package events, for errors.Is.
var (
	// ErrReadOnly reports an append to a log opened for reading.
	ErrReadOnly = errors.New("log opened for reading only")
	// ErrNotEmpty reports an import into a log that has events, or a backup into a
	// folder that holds a log.
	ErrNotEmpty = errors.New("not empty")
	// ErrDamagedKey reports a secret.key that is none. A log is not opened with it.
	ErrDamagedKey = errors.New("damaged key")
	// ErrDamagedExport reports an export that is not what Export wrote.
	ErrDamagedExport = errors.New("damaged export")
)

// code returns SQLite's primary result code in err, 0 if there is none.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// explain adds to an error of SQLite the sentinel of package events it amounts to.
func explain(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", events.ErrCorrupt, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	}
	return err
}

// isUnique reports whether err is the refusal of a second row with the same key.
func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// unscannable says what it means that a column's value has another type than its
// table gives it: a damaged file.
func unscannable(err error) error {
	return fmt.Errorf("%w: %w", events.ErrCorrupt, err)
}
