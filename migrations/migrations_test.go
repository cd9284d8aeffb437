package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"mcpledger/migrations"
)

func openDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestApplyMakesTheSchemaAndThenChangesNothing(t *testing.T) {
	ctx, db := context.Background(), openDB(t)
	for range 2 {
		if err := migrations.Apply(ctx, db); err != nil {
			t.Fatalf("apply: %v", err)
		}
		if err := migrations.Check(ctx, db); err != nil {
			t.Fatalf("check: %v", err)
		}
	}
	var tables int
	err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('events', 'contents', 'names', 'head', 'snapshots', 'marks')").Scan(&tables)
	if err != nil || tables != 6 {
		t.Errorf("%d of 6 tables are there, %v", tables, err)
	}
}

func TestADatabaseOfANewerProgramIsLeftAlone(t *testing.T) {
	ctx, db := context.Background(), openDB(t)
	if err := migrations.Apply(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(ctx, db); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("apply: got %v, want ErrNewer", err)
	}
	if err := migrations.Check(ctx, db); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("check: got %v, want ErrNewer", err)
	}
}

func TestCheckTellsWhetherADatabaseCanBeRead(t *testing.T) {
	ctx, db := context.Background(), openDB(t)
	if err := migrations.Check(ctx, db); err == nil {
		t.Error("check of an empty database: want an error")
	}
	if err := migrations.Apply(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("DELETE FROM goose_db_version WHERE version_id > 1"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(ctx, db); err != nil {
		t.Errorf("the first schema: got %v", err)
	}
	if _, err := db.Exec("DELETE FROM goose_db_version WHERE version_id > 0"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(ctx, db); !errors.Is(err, migrations.ErrOlder) {
		t.Errorf("got %v, want ErrOlder", err)
	}
}
