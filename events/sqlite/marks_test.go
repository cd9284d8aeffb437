package sqlite_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func saveMarks(t *testing.T, l *sqlite.Log, version string, bodies map[events.Sequence][]byte, drop ...events.Sequence) {
	t.Helper()
	if err := l.SaveMarks(ctx, version, bodies, drop); err != nil {
		t.Fatalf("save marks of %s: %v", version, err)
	}
}

func wantMarks(t *testing.T, l *sqlite.Log, version string, want map[events.Sequence]string) {
	t.Helper()
	sizes, err := l.Marks(ctx, version)
	if err != nil {
		t.Fatalf("marks of %s: %v", version, err)
	}
	got := map[events.Sequence]string{}
	for at, size := range sizes {
		body, err := l.LoadMark(ctx, version, at)
		if err != nil || len(body) != size {
			t.Errorf("mark of %s at %d has %d bytes, %v, said to be %d", version, at, len(body), err, size)
		}
		got[at] = string(body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks of %s (-want +got):\n%s", version, diff)
	}
}

func TestMarksAreKeptByVersionAndPlace(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, failure(1), failure(2), failure(3))
	saveMarks(t, l, "v", map[events.Sequence][]byte{1: []byte("one"), 2: []byte("two")})
	saveMarks(t, l, "w", map[events.Sequence][]byte{1: []byte("other")})
	saveMarks(t, l, "v", map[events.Sequence][]byte{1: []byte("again"), 3: []byte("three")}, 2)
	if err := l.SaveMarks(ctx, "v", map[events.Sequence][]byte{2: nil, 4: nil}, nil); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("a mark past the head: got %v, want ErrNotFound", err)
	}
	closeLog(t, l)
	for _, l := range []*sqlite.Log{open(t, dir), openReader(t, dir)} {
		wantMarks(t, l, "v", map[events.Sequence]string{1: "again", 3: "three"})
		wantMarks(t, l, "w", map[events.Sequence]string{1: "other"})
		if _, err := l.LoadMark(ctx, "v", 2); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("a mark that was dropped: got %v, want ErrNotFound", err)
		}
	}
	if err := openReader(t, dir).SaveMarks(ctx, "v", nil, nil); !errors.Is(err, sqlite.ErrReadOnly) {
		t.Errorf("a reader saves marks: got %v, want ErrReadOnly", err)
	}
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("verify: %s", r.Problem)
	}
}

func TestMarksOfTheLastVersionsSavedAreKept(t *testing.T) {
	l := open(t, t.TempDir())
	add(t, l, failure(1), failure(2))
	saveMarks(t, l, "v0", map[events.Sequence][]byte{1: []byte("early")})
	saveMarks(t, l, "v1", map[events.Sequence][]byte{1: []byte("early")})
	saveMarks(t, l, "v0", map[events.Sequence][]byte{2: []byte("late")})
	for i := range 3 {
		saveMarks(t, l, fmt.Sprint("later", i), map[events.Sequence][]byte{1: []byte("x")})
	}
	wantMarks(t, l, "v0", map[events.Sequence]string{1: "early", 2: "late"})
	wantMarks(t, l, "v1", map[events.Sequence]string{})
}

func TestAMarkThatIsNotOfThisLogIsIgnored(t *testing.T) {
	for name, statement := range map[string]string{
		"a changed body":       "UPDATE marks SET body = x'00'",
		"a moved place":        "UPDATE marks SET sequence = 2, hash = (SELECT hash FROM events WHERE sequence = 2)",
		"another event's hash": "UPDATE marks SET hash = (SELECT hash FROM events WHERE sequence = 2)",
		"a place past the end": "UPDATE marks SET sequence = 99",
		"another version's":    "UPDATE marks SET version = 'v'",
		"a snapshot":           "INSERT INTO snapshots SELECT 'v', 2, hash, mac, body FROM marks; DELETE FROM marks; INSERT INTO marks SELECT * FROM snapshots",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir)
			add(t, l, failure(1), failure(2))
			version := "v"
			if name == "another version's" {
				version = "w"
			}
			saveMarks(t, l, version, map[events.Sequence][]byte{1: []byte("state")})
			closeLog(t, l)
			if err := execute(t, dir, statement); err != nil {
				t.Fatal(err)
			}
			l = open(t, dir)
			sizes, err := l.Marks(ctx, "v")
			if err != nil || len(sizes) != 1 {
				t.Fatalf("the marks are %v, %v, want the one that was changed", sizes, err)
			}
			for at := range sizes {
				if body, err := l.LoadMark(ctx, "v", at); !errors.Is(err, events.ErrNotFound) {
					t.Errorf("the mark is %q, %v, want ErrNotFound", body, err)
				}
			}
		})
	}
}

// A folder that an older version of the program left can be read as it is, and is
// migrated when it is opened for writing.
func TestAnOlderFolderIsReadAndThenMigrated(t *testing.T) {
	dir := filled(t, 5)
	l := open(t, dir)
	for _, version := range []string{"moments/2", "2/rules"} {
		if err := l.SaveSnapshot(ctx, version, 5, []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	want := readAll(t, l)
	closeLog(t, l)
	for _, undo := range []string{"DROP TABLE marks", "DELETE FROM goose_db_version WHERE version_id > 1"} {
		if err := execute(t, dir, undo); err != nil {
			t.Fatal(err)
		}
	}

	r := openReader(t, dir)
	if diff := cmp.Diff(want, readAll(t, r)); diff != "" {
		t.Errorf("a reader sees another log (-want +got):\n%s", diff)
	}
	wantSnapshot(t, r, "2/rules", 5, "state")
	if sizes, err := r.Marks(ctx, "v"); err == nil {
		t.Errorf("marks %v of a folder that has no table for them", sizes)
	}
	closeLog(t, r)
	if report := verify(t, dir, nil); !report.OK() {
		t.Errorf("verify: %s", report.Problem)
	}

	l = open(t, dir)
	if diff := cmp.Diff(want, readAll(t, l)); diff != "" {
		t.Errorf("migrated, the log is another (-want +got):\n%s", diff)
	}
	wantSnapshot(t, l, "2/rules", 5, "state")
	wantNoSnapshot(t, l, "moments/2") // all marks in one, which nothing reads any more
	saveMarks(t, l, "v", map[events.Sequence][]byte{5: []byte("mark")})
	wantMarks(t, l, "v", map[events.Sequence]string{5: "mark"})
}
