// Package migrations holds the numbered changes of the log's database schema and
// applies them. It knows SQL and nothing of events. Migrations are only added; one
// that was released is never edited.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// The errors of a schema that does not fit this program, for errors.Is.
var (
	// ErrNewer reports a database that a newer version of the program has migrated.
	ErrNewer = errors.New("schema is newer than this program")
	// ErrOlder reports a database that must be migrated before it can be read.
	ErrOlder = errors.New("schema is older than this program")
)

// oldestReadable is the oldest schema that has all that reading a log rests on.
const oldestReadable = 1

// Apply brings the database to the newest schema. It changes nothing and returns
// ErrNewer if the database is past it. Two processes must not apply at once: the
// caller holds a lock.
func Apply(ctx context.Context, db *sql.DB) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	current, newest, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > newest {
		return tooNew(current, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate from schema %d: %w", current, err)
	}
	return nil
}

// ApplyUpTo brings an empty database to the schema of a version, as Apply brings one
// to the newest.
func ApplyUpTo(ctx context.Context, db *sql.DB, version int64) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate to schema %d: %w", version, err)
	}
	return nil
}

// Version returns the schema that a database was migrated to. It writes nothing.
func Version(ctx context.Context, db *sql.DB) (int64, error) {
	var current int64
	if err := db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&current); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return current, nil
}

// Check returns nil if this program can read the database, with or without the
// migrations that are outstanding; else ErrNewer or ErrOlder. It writes nothing.
func Check(ctx context.Context, db *sql.DB) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	current, err := Version(ctx, db)
	switch {
	case err != nil:
		return err
	case current > newest:
		return tooNew(current, newest)
	case current < oldestReadable:
		return fmt.Errorf("schema %d, this program needs %d: %w", current, oldestReadable, ErrOlder)
	}
	return nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

func tooNew(current, newest int64) error {
	return fmt.Errorf("schema %d, this program knows %d: %w", current, newest, ErrNewer)
}
