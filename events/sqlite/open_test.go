package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func TestOpenMakesAPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data #1? 100%")
	l := open(t, dir)
	add(t, l, failure(1))
	for name, want := range map[string]fs.FileMode{"": 0o700, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.lock": 0o600, "secret.key": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	key, err := sqlite.LoadKey(dir)
	if err != nil || len(key) != 32 {
		t.Errorf("the key has %d bytes, %v", len(key), err)
	}
	if a, b := sqlite.DeriveKey(key, "a"), sqlite.DeriveKey(key, "b"); len(a) != 32 || bytes.Equal(a, b) {
		t.Errorf("subkeys for two purposes: %x and %x", a, b)
	}
}

func TestALogIsReadAgainAfterItWasClosed(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, failure(1), failure(2))
	before := readAll(t, l)
	closeLog(t, l)
	if _, err := os.Stat(filepath.Join(dir, "ledger.db-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after closing the write-ahead log is still there: %v", err)
	}

	l = open(t, dir)
	if diff := cmp.Diff(before, readAll(t, l)); diff != "" {
		t.Errorf("a restart changed the log (-before +after):\n%s", diff)
	}
	if r := add(t, l, failure(3)); r.Last() != 3 {
		t.Errorf("the next event has sequence %d, want 3", r.Last())
	}
	if l.KeyCreated() {
		t.Error("the key is said to be new")
	}
}

func TestASecondWriterIsRefusedInOneSentence(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	_, err := sqlite.Open(ctx, dir, options)
	if !errors.Is(err, events.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse", err)
	}
	if want := fmt.Sprintf("process %d", os.Getpid()); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one sentence that names %s", err, want)
	}
	closeLog(t, l)
	open(t, dir)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   error
	}{
		{"a file that is no database", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "ledger.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, events.ErrCorrupt},
		{"a file that is cut", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "ledger.db"), 3*4096); err != nil {
				t.Fatal(err)
			}
		}, events.ErrCorrupt},
		{"a newer program's database", func(t *testing.T, dir string) {
			if err := execute(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
				t.Fatal(err)
			}
		}, events.ErrNewer},
		{"the last event is gone", func(t *testing.T, dir string) {
			tamper(t, dir, "DELETE FROM events WHERE sequence = 20")
		}, events.ErrCorrupt},
		{"another key", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "secret.key"), make([]byte, 32), 0o600); err != nil {
				t.Fatal(err)
			}
		}, events.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filled(t, 20)
			c.damage(t, dir)
			_, err := sqlite.Open(ctx, dir, options)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a sentence", err)
			}
		})
	}
	t.Run("a folder that cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(ctx, filepath.Join(file, "data"), options); !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
	})
	t.Run("no clock", func(t *testing.T) {
		if _, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{}); err == nil {
			t.Error("want an error")
		}
	})
}

func TestALostKeyIsMadeAnewAndSaidSo(t *testing.T) {
	dir := filled(t, 3)
	if err := os.Remove(filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, nil); !r.OK() || r.Signed {
		t.Errorf("without a key: %+v, want no problem and no signature checked", r)
	}
	l := open(t, dir)
	if !l.KeyCreated() {
		t.Error("the key is not said to be new")
	}
	closeLog(t, l)
	if r := verify(t, dir, nil); !r.OK() || !r.Signed {
		t.Errorf("with a new key: %+v", r)
	}
}

func TestAReaderChangesNothing(t *testing.T) {
	if _, err := sqlite.OpenReader(ctx, filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v, want ErrNotExist", err)
	}
	empty := t.TempDir()
	if _, err := sqlite.OpenReader(ctx, empty); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no log: got %v, want ErrNotExist", err)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("the reader left %v in the folder, %v", left, err)
	}

	dir := filled(t, 3)
	r := openReader(t, dir)
	if _, err := r.Append(ctx, []events.Event{failure(4)}); !errors.Is(err, sqlite.ErrReadOnly) {
		t.Errorf("append: got %v, want ErrReadOnly", err)
	}
	if err := r.SaveSnapshot(ctx, "v", 1, nil); !errors.Is(err, sqlite.ErrReadOnly) {
		t.Errorf("save a snapshot: got %v, want ErrReadOnly", err)
	}
	if err := r.Unavailable(); err != nil {
		t.Errorf("a reader is unavailable: %v", err)
	}
	if got := readAll(t, r); len(got) != 3 {
		t.Errorf("read %d events, want 3", len(got))
	}
	if err := execute(t, dir, "DELETE FROM goose_db_version WHERE version_id > 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenReader(ctx, dir); err == nil {
		t.Error("a log to be migrated was opened for reading")
	}
}

func TestAReaderFollowsAWriter(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, failure(1))
	r := openReader(t, dir)
	next := events.Sequence(1)
	for e, err := range r.Follow(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Sequence != next {
			t.Fatalf("followed %d, want %d", e.Sequence, next)
		}
		if next++; next > 4 {
			break
		}
		add(t, l, failure(int(next)))
	}
	want, err := l.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Head(ctx); err != nil || got != want {
		t.Errorf("the reader's head is %v, %v, want %v", got, err, want)
	}
}
