package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/events/sqlite"
)

// unwritable has SQLite fail to make the file beside the database of dir that it shares
// with writers, as on a medium that cannot be written, whoever runs the test.
func unwritable(t *testing.T, dir string) {
	t.Helper()
	if err := os.Symlink("nowhere", filepath.Join(dir, "ledger.db-shm")); err != nil {
		t.Fatal(err)
	}
}

func TestALogOnAMediumThatCannotBeWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, eventstest.At(noon).Failed("weather", "k", events.Evidence{Error: "refused"}))
	closeLog(t, l)
	unwritable(t, dir)

	reader := openReader(t, dir)
	seen := 0
	for _, err := range reader.Read(ctx, events.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	if seen != 1 {
		t.Errorf("%d events, want 1", seen)
	}
	report, err := sqlite.Verify(ctx, dir, sqlite.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("verify: %q, %v", report.Problem, err)
	}
	copied := t.TempDir()
	if err := sqlite.Backup(ctx, dir, copied, true); err != nil {
		t.Fatal(err)
	}
	if head, err := openReader(t, copied).Head(ctx); err != nil || head.Sequence != 1 {
		t.Errorf("the copy ends at %d, %v", head.Sequence, err)
	}
}

// What a killed service left lies in a file beside the database, of which nothing must be
// passed over in silence.
func TestALogThatWasNotClosedIsNotReadInPartFromSuchAMedium(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, eventstest.At(noon).Failed("weather", "k", events.Evidence{Error: "refused"}))
	left := t.TempDir()
	for _, name := range []string{"ledger.db", "ledger.db-wal"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unwritable(t, left)
	if _, err := sqlite.OpenReader(ctx, left); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, events.ErrUnavailable)
	}
}
