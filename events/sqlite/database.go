package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"mcpledger/migrations"
)

// openReads opens the database of dir for reading.
func openReads(ctx context.Context, dir string) (*sql.DB, error) {
	path := filepath.Join(dir, DatabaseFile)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	reads, err := openChecked(ctx, path, "ro")
	if code(err) != sqlite3.SQLITE_CANTOPEN {
		return reads, explain(schemaError(err))
	}
	// To share what it reads with a writer SQLite makes a file beside the database. Where
	// it cannot, nobody writes either, unless over another mount of the folder, and a log
	// that was closed in good order can be read as it lies there.
	switch wal, statErr := os.Stat(path + "-wal"); {
	case errors.Is(statErr, fs.ErrNotExist), statErr == nil && wal.Size() == 0:
		reads, err = openChecked(ctx, path, asItLies)
		return reads, explain(schemaError(err))
	case statErr == nil:
		err = fmt.Errorf("%w: what was appended last lies in %s-wal and is read only where files can be made beside it", err, path)
	}
	return nil, explain(err)
}

// openChecked opens a database file for reading and looks at its schema.
func openChecked(ctx context.Context, path, mode string) (*sql.DB, error) {
	reads, err := openDB(path, mode, busyTimeout)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, reads); err != nil {
		return nil, errors.Join(err, reads.Close())
	}
	return reads, nil
}

// busyTimeout is how long a connection waits for a lock that another holds.
const busyTimeout = 5 * time.Second

// writing is the pragmas of a connection that writes. The checkpointer does what
// wal_autocheckpoint would do in the midst of an append.
var writing = []string{"journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(0)", "journal_size_limit(67108864)"}

// asItLies is the mode of a database that is read without a look at what others do to it.
const asItLies = "ro&immutable=1"

// openDB opens a database file that exists, in a mode of SQLite's URIs or asItLies.
func openDB(path, mode string, busy time.Duration, pragmas ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	pragmas = append([]string{fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds())}, pragmas...)
	query := url.Values{"_pragma": pragmas, "_error_rc": {"1"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: "mode=" + mode + "&" + query.Encode()}).String())
}
