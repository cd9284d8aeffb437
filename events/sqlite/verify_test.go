package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func TestVerifyFindsASoundLogSound(t *testing.T) {
	dir := filled(t, 700)
	r := verify(t, dir, nil)
	if !r.OK() || r.Events != 700 || r.Contents != 7 || !r.Signed || r.Head.Sequence != 700 {
		t.Errorf("got %+v, want 700 events and 7 contents, signed and without a problem", r)
	}
	if r := verify(t, dir, &r.Head); !r.OK() {
		t.Errorf("against its own head: %s", r.Problem)
	}
	if r := verify(t, filled(t, 0), nil); !r.OK() || r.Events != 0 {
		t.Errorf("an empty log: %+v", r)
	}
}

func TestVerifyFindsWhatWasDone(t *testing.T) {
	for _, c := range []struct {
		name       string
		statements []string
		bad        events.Sequence
		problem    string // part of it
	}{
		{"a changed payload", []string{"UPDATE events SET data = CAST(replace(data, '1', '2') AS BLOB) WHERE sequence = 30"}, 30, "not what was appended"},
		{"a changed time", []string{"UPDATE events SET time = time + 1 WHERE sequence = 31"}, 31, "not what was appended"},
		{"a changed time of recording", []string{"UPDATE events SET recorded_at = recorded_at + 1 WHERE sequence = 31"}, 31, "not what was appended"},
		{"a changed hash", []string{"UPDATE events SET hash = zeroblob(32) WHERE sequence = 32"}, 32, "not what was appended"},
		{"a changed name", []string{"UPDATE names SET name = 'other' WHERE name = 'weather'"}, 1, "not what was appended"},
		{"a name that is gone", []string{"DELETE FROM names WHERE name = 'weather'"}, 1, "follows name"},
		{"a payload that cannot be unpacked", []string{"UPDATE events SET data = x'1fff' WHERE sequence = 600"}, 600, "packed"},
		{"a removed row", []string{"DELETE FROM events WHERE sequence = 33"}, 33, "is missing"},
		{"the first row removed", []string{"DELETE FROM events WHERE sequence = 1"}, 1, "is missing"},
		{"a swapped pair", []string{
			"UPDATE events SET sequence = -1 WHERE sequence = 34", "UPDATE events SET sequence = 34 WHERE sequence = 35",
			"UPDATE events SET sequence = 35 WHERE sequence = -1"}, 34, "not what was appended"},
		{"the last row cut", []string{"DELETE FROM events WHERE sequence = 700"}, 700, "events 700 to 700 are missing"},
		{"the last hundred rows cut", []string{"DELETE FROM events WHERE sequence > 600"}, 601, "events 601 to 700 are missing"},
		{"all rows cut", []string{"DELETE FROM events"}, 1, "events 1 to 700 are missing"},
		{"the rows and the head cut", []string{"DELETE FROM events WHERE sequence > 600",
			"UPDATE head SET sequence = 600, hash = (SELECT hash FROM events WHERE sequence = 600)"}, 0, "not signed"},
		{"the head gone", []string{"DELETE FROM head"}, 1, "the head names event 0"},
		{"a changed content", []string{"UPDATE contents SET body = x'00' WHERE sequence = 3"}, 3, "is not what was appended"},
		{"a content that is gone", []string{"DELETE FROM contents WHERE sequence = 4"}, 4, "refers to a content that is missing"},
		{"a step of the clock made up", []string{"INSERT INTO clock_steps VALUES (5)"}, 0, "steps of the clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filled(t, 700)
			tamper(t, dir, c.statements...)
			r := verify(t, dir, nil)
			if r.Bad != c.bad || !strings.Contains(r.Problem, c.problem) {
				t.Errorf("got event %d, %q; want event %d, %q", r.Bad, r.Problem, c.bad, c.problem)
			}
			if strings.Contains(r.Problem, "\n") {
				t.Errorf("%q is more than a sentence", r.Problem)
			}
		})
	}
}

func TestVerifyFindsASchemaThatNoMigrationMade(t *testing.T) {
	for _, c := range []struct {
		name       string
		statements []string
		problem    string // how it ends
	}{
		{"triggers that are gone", []string{"DROP TRIGGER events_no_delete", "DROP TRIGGER events_no_update"},
			"schema 2: the trigger events_no_delete is missing, the trigger events_no_update is missing"},
		{"a trigger that lets all pass", []string{"DROP TRIGGER events_no_update", "CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT 1; END"},
			"the trigger events_no_update is another"},
		{"a trigger of somebody else", []string{"CREATE TRIGGER forget AFTER INSERT ON events BEGIN DELETE FROM marks; END"},
			"the trigger forget is not of it"},
		{"an index that is gone", []string{"DROP INDEX events_run"}, "the index events_run is missing"},
		{"a table of somebody else", []string{"CREATE TABLE notes (text)"}, "the table notes is not of it"},
		{"another column", []string{"ALTER TABLE marks ADD COLUMN note TEXT"}, "the table marks is another"},
		{"a table that is gone", []string{"DROP TABLE clock_steps"}, "the table clock_steps is missing"},
		{"a schema older than it says", []string{"DROP TABLE marks"}, "schema 2: the table marks is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filled(t, 20)
			for _, s := range c.statements {
				if err := execute(t, dir, s); err != nil {
					t.Fatal(err)
				}
			}
			if r := verify(t, dir, nil); r.Bad != 0 || !strings.HasSuffix(r.Problem, c.problem) {
				t.Errorf("got event %d, %q; want one that ends with %q", r.Bad, r.Problem, c.problem)
			}
		})
	}
}

func TestVerifyTakesASchemaThatIsYetToBeMigrated(t *testing.T) {
	dir := filled(t, 20)
	for _, s := range []string{"DROP TABLE marks", "DELETE FROM goose_db_version WHERE version_id = 2"} {
		if err := execute(t, dir, s); err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, dir, nil); !r.OK() || r.Events != 20 {
		t.Errorf("got %+v", r)
	}
}

// What SQLite notes for itself is no part of the schema.
func TestVerifyTakesADatabaseThatWasAnalysedAndCompacted(t *testing.T) {
	dir := filled(t, 20)
	for _, s := range []string{"ANALYZE", "VACUUM"} {
		if err := execute(t, dir, s); err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, dir, nil); !r.OK() {
		t.Error(r.Problem)
	}
}

func TestVerifyFindsOneFlippedByte(t *testing.T) {
	// A backup has no stale bytes in its pages, so every byte that is not zero counts.
	dir := filepath.Join(t.TempDir(), "copy")
	if err := sqlite.Backup(ctx, filled(t, 200), dir, true); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ledger.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last := bytes.Index(file, []byte("traceback")), bytes.LastIndex(file, []byte("traceback"))
	tried := 0
	for at := 0; at < len(file); at += 307 {
		if at < 4096*20 && at != first && at != last || file[at] == 0 {
			continue // most pages of the schema, and goose's table, come first
		}
		if page := at / 4096 * 4096; bytes.Contains(file[page:page+4096], []byte("CREATE T")) {
			continue // the schema's comments are no part of the log
		}
		tried++
		flipped := bytes.Clone(file)
		flipped[at] ^= 0x04
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir, nil); r.OK() {
			t.Errorf("a flipped byte at %d of %d was not found: %q", at, len(file), file[max(0, at-16):at+16])
		}
	}
	if tried < 30 {
		t.Errorf("only %d of %d bytes were tried", tried, len(file))
	}
}

func TestVerifyFindsAFileThatIsNoDatabase(t *testing.T) {
	dir := filled(t, 3)
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), bytes.Repeat([]byte("not a database. "), 512), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, nil); r.OK() || r.Bad != 1 {
		t.Errorf("got %+v, want a problem at event 1", r)
	}
}

func TestARollbackShowsAgainstANotedHead(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, failure(1), failure(2))
	closeLog(t, l)
	older := filepath.Join(t.TempDir(), "older.db")
	copyFile(t, filepath.Join(dir, "ledger.db"), older)

	l = open(t, dir)
	add(t, l, failure(3))
	noted, err := l.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	copyFile(t, older, filepath.Join(dir, "ledger.db"))

	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("an older copy alone: got %q; only a noted head tells", r.Problem)
	}
	if r := verify(t, dir, &noted); r.Bad != 3 || !strings.Contains(r.Problem, "older copy") {
		t.Errorf("against %v: got event %d, %q", noted, r.Bad, r.Problem)
	}

	l = open(t, dir)
	add(t, l, failure(4), failure(5))
	closeLog(t, l)
	if r := verify(t, dir, &noted); r.Bad != 3 || !strings.Contains(r.Problem, "written anew") {
		t.Errorf("rolled back and written on, against %v: got event %d, %q", noted, r.Bad, r.Problem)
	}
}

func TestEventsCannotBeChangedOrRemoved(t *testing.T) {
	dir := filled(t, 3)
	for _, statement := range []string{
		"UPDATE events SET subject = NULL", "DELETE FROM events WHERE sequence = 3",
		"UPDATE contents SET body = x''", "DELETE FROM contents", "UPDATE names SET name = 'x'", "DELETE FROM names",
	} {
		if err := execute(t, dir, statement); err == nil || !strings.Contains(err.Error(), "never") {
			t.Errorf("%s: got %v, want a refusal", statement, err)
		}
	}
	if r := verify(t, dir, nil); !r.OK() || r.Events != 3 {
		t.Errorf("after refusals: %+v", r)
	}
}
