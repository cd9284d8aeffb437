package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func wantSnapshot(t *testing.T, l *sqlite.Log, version string, sequence events.Sequence, body string) {
	t.Helper()
	got, b, err := l.LoadSnapshot(ctx, version)
	if err != nil || got != sequence || string(b) != body {
		t.Errorf("snapshot %q is %q at %d, %v, want %q at %d", version, b, got, err, body, sequence)
	}
}

func wantNoSnapshot(t *testing.T, l *sqlite.Log, version string) {
	t.Helper()
	if _, b, err := l.LoadSnapshot(ctx, version); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("snapshot %q is %q, %v, want ErrNotFound", version, b, err)
	}
}

func TestTheLastSnapshotOfAVersionIsKept(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	wantNoSnapshot(t, l, "v1")
	add(t, l, failure(1), failure(2))
	for _, s := range []struct {
		version  string
		sequence events.Sequence
		body     string
	}{{"v1", 1, "one"}, {"v2", 1, "other"}, {"v1", 2, "two"}, {"v0", 0, ""}} {
		if err := l.SaveSnapshot(ctx, s.version, s.sequence, []byte(s.body)); err != nil {
			t.Fatalf("save %s: %v", s.version, err)
		}
	}
	if err := l.SaveSnapshot(ctx, "v1", 3, nil); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("a snapshot past the head: got %v, want ErrNotFound", err)
	}
	closeLog(t, l)
	l = open(t, dir)
	wantSnapshot(t, l, "v1", 2, "two")
	wantSnapshot(t, l, "v2", 1, "other")
	wantSnapshot(t, l, "v0", 0, "")
	wantSnapshot(t, openReader(t, dir), "v1", 2, "two")
	for i := range 4 {
		if err := l.SaveSnapshot(ctx, fmt.Sprint("later", i), 2, bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	wantNoSnapshot(t, l, "v1") // four versions are kept
}

func TestASnapshotThatIsNotOfThisLogIsIgnored(t *testing.T) {
	for name, statement := range map[string]string{
		"a changed body":       "UPDATE snapshots SET body = x'00'",
		"a moved place":        "UPDATE snapshots SET sequence = 1, hash = (SELECT hash FROM events WHERE sequence = 1)",
		"a place past the end": "UPDATE snapshots SET sequence = 99",
		"another version's":    "UPDATE snapshots SET version = 'v'",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir)
			add(t, l, failure(1), failure(2))
			version := "v"
			if name == "another version's" {
				version = "w"
			}
			if err := l.SaveSnapshot(ctx, version, 2, []byte("state")); err != nil {
				t.Fatal(err)
			}
			closeLog(t, l)
			if err := execute(t, dir, statement); err != nil {
				t.Fatal(err)
			}
			wantNoSnapshot(t, open(t, dir), "v")
		})
	}
	t.Run("a log that was rolled back and written on", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir)
		add(t, l, failure(1))
		closeLog(t, l)
		older := filepath.Join(t.TempDir(), "older.db")
		copyFile(t, filepath.Join(dir, "ledger.db"), older)
		l = open(t, dir)
		add(t, l, failure(2))
		if err := l.SaveSnapshot(ctx, "v", 2, []byte("state")); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		var version, hash, mac, body []byte
		db := openRaw(t, dir)
		if err := db.QueryRow("SELECT version, hash, mac, body FROM snapshots").Scan(&version, &hash, &mac, &body); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		copyFile(t, older, filepath.Join(dir, "ledger.db"))
		db = openRaw(t, dir)
		if _, err := db.Exec("INSERT INTO snapshots (version, sequence, hash, mac, body) VALUES ('v', 2, ?, ?, ?)", hash, mac, body); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		l = open(t, dir)
		wantNoSnapshot(t, l, "v") // beyond the head
		add(t, l, failure(3))
		wantNoSnapshot(t, l, "v") // of another event 2
	})
}
