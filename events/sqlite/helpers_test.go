package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/events/sqlite"
)

var (
	ctx  = context.Background()
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	options = sqlite.Options{Now: time.Now}
)

func open(t testing.TB, dir string) *sqlite.Log {
	t.Helper()
	return openWith(t, dir, options)
}

func openWith(t testing.TB, dir string, opts sqlite.Options) *sqlite.Log {
	t.Helper()
	l, err := sqlite.Open(ctx, dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func openReader(t testing.TB, dir string) *sqlite.Log {
	t.Helper()
	l, err := sqlite.OpenReader(ctx, dir)
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closeLog(t testing.TB, l *sqlite.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func add(t testing.TB, l events.Log, batch ...events.Event) events.Receipt {
	t.Helper()
	r, err := l.Append(ctx, batch)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return r
}

func readAll(t testing.TB, l events.Log) []events.Event {
	t.Helper()
	var all []events.Event
	for e, err := range l.Read(ctx, events.Query{}) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, e)
	}
	return all
}

// failure is an event of the i-th attempt, with a long text of its own or one that
// repeats.
func failure(i int) events.Event {
	exit := 1
	return eventstest.At(noon.Add(time.Duration(i)*time.Second)).Failed("weather", "k1_abcdefghijklmnop.abcdefghijklmnop", events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, ErrorKind: events.KindExit, ExitCode: &exit,
		StderrTail: strings.Repeat(fmt.Sprintf("line %d of a traceback\n", i%7), 40), ElapsedMS: int64(i),
	})
}

// filled makes a closed log of n failures and returns its folder.
func filled(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir)
	var batch []events.Event
	for i := range n {
		batch = append(batch, failure(i))
	}
	add(t, l, batch...)
	closeLog(t, l)
	return dir
}

// execute runs a statement on the database of a log behind its back.
func execute(t testing.TB, dir, statement string) error {
	t.Helper()
	db := openRaw(t, dir)
	defer db.Close()
	_, err := db.Exec(statement)
	return err
}

// openRaw opens the database of a log behind its back.
func openRaw(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// tamper changes the database of a log as somebody does who drops its triggers.
func tamper(t testing.TB, dir string, statements ...string) {
	t.Helper()
	for _, table := range []string{"events", "contents", "names"} {
		statements = append([]string{"DROP TRIGGER " + table + "_no_update", "DROP TRIGGER " + table + "_no_delete"}, statements...)
	}
	for _, s := range statements {
		if err := execute(t, dir, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func verify(t testing.TB, dir string, noted *events.Head) sqlite.VerifyReport {
	t.Helper()
	r, err := sqlite.Verify(ctx, dir, sqlite.VerifyOptions{Head: noted})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return r
}

func export(t testing.TB, dir string, span sqlite.Span) []byte {
	t.Helper()
	l, err := sqlite.OpenReader(ctx, dir)
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	defer l.Close()
	var out bytes.Buffer
	if err := sqlite.Export(ctx, l, &out, span); err != nil {
		t.Fatalf("export: %v", err)
	}
	return out.Bytes()
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
