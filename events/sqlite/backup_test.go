package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func TestABackupIsALogOfItsOwn(t *testing.T) {
	from := varied(t, 50)
	want := readAll(t, openReader(t, from))
	l := open(t, from) // in use
	for _, withKey := range []bool{false, true} {
		dest := filepath.Join(t.TempDir(), "backup")
		if err := sqlite.Backup(ctx, from, dest, withKey); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(dest, "secret.key"))
		if hasKey := err == nil; hasKey != withKey {
			t.Errorf("with key %t: %v", withKey, err)
		}
		if diff := cmp.Diff(want, readAll(t, openReader(t, dest))); diff != "" {
			t.Errorf("the backup differs (-log +backup):\n%s", diff)
		}
		if r := verify(t, dest, nil); !r.OK() || r.Signed != withKey {
			t.Errorf("verify of the backup: %+v", r)
		}
		if err := sqlite.Backup(ctx, from, dest, withKey); !errors.Is(err, sqlite.ErrNotEmpty) {
			t.Errorf("over a log: got %v, want ErrNotEmpty", err)
		}
		restored := open(t, dest)
		if restored.KeyCreated() == withKey {
			t.Errorf("with key %t: the key is said to be new: %t", withKey, restored.KeyCreated())
		}
		if r := add(t, restored, failure(1)); r.Last() != 51 {
			t.Errorf("the next event has sequence %d, want 51", r.Last())
		}
	}
	if r := add(t, l, failure(2)); r.Last() != 51 {
		t.Errorf("the log's own next event has sequence %d, want 51", r.Last())
	}
	if err := sqlite.Backup(ctx, t.TempDir(), filepath.Join(t.TempDir(), "x"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no log: got %v, want ErrNotExist", err)
	}
}

// One that overtakes another would be given its name, half written.
func TestOfBackupsIntoOneFolderAtTheSameTimeOneIsMade(t *testing.T) {
	from, dest := filled(t, 2000), t.TempDir()
	const backups = 4
	ended := make(chan error, backups)
	for range backups {
		go func() { ended <- sqlite.Backup(ctx, from, dest, true) }()
	}
	made := 0
	for range backups {
		switch err := <-ended; {
		case err == nil:
			made++
		case !errors.Is(err, events.ErrInUse) && !errors.Is(err, sqlite.ErrNotEmpty):
			t.Errorf("got %v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d backups were made, want 1", made)
	}
	if r := verify(t, dest, nil); !r.OK() {
		t.Errorf("verify of the backup: %+v", r)
	}
}
