package sqlite_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

// Batches that come at the same time share a transaction; what is wrong with one
// must not touch another.
func TestABadBatchDoesNotTouchItsNeighbours(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	taken := failure(0)
	add(t, l, taken)
	conflicting := taken
	conflicting.Actor = "somebody else"

	const callers, each = 16, 20
	var mu sync.Mutex
	places := map[events.Sequence]string{} // of good events
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				a, b := failure(i), failure(i)
				bad := c%2 == 1
				batch := []events.Event{a, taken, b}
				if bad {
					batch = []events.Event{a, conflicting, b}
					if i%2 == 0 {
						batch = []events.Event{conflicting}
					}
				}
				r, err := l.Append(ctx, batch)
				if bad {
					if !errors.Is(err, events.ErrConflict) {
						t.Errorf("a conflicting batch: got %v, %v", r, err)
					}
					continue
				}
				if err != nil || r.Duplicates != 1 || r.Sequences[1] != 1 || r.Sequences[2] != r.Sequences[0]+1 {
					t.Errorf("a good batch: got %+v, %v", r, err)
					continue
				}
				mu.Lock()
				places[r.Sequences[0]], places[r.Sequences[2]] = a.ID, b.ID
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	all := readAll(t, l)
	if want := 1 + callers/2*each*2; len(all) != want {
		t.Fatalf("%d events are there, want %d", len(all), want)
	}
	for i, e := range all {
		if e.Sequence != events.Sequence(i+1) {
			t.Fatalf("event %d has sequence %d", i+1, e.Sequence)
		}
		if i > 0 && places[e.Sequence] != e.ID {
			t.Errorf("event %d is %s, its appender was told %s", i+1, e.ID, places[e.Sequence])
		}
	}
	closeLog(t, l)
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("verify: %s", r.Problem)
	}
}

// What one commit shows is what the log holds, with the clock of the commit.
func TestCommitsAreShownInLogOrder(t *testing.T) {
	l := openWith(t, t.TempDir(), sqlite.Options{Now: time.Now, MaxGroup: 7})
	var shown [][]events.Event
	l.OnCommit(func(es []events.Event) { shown = append(shown, slices.Clone(es)) })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for i := range 10 {
				add(t, l, failure(i), failure(i+1))
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(readAll(t, l), slices.Concat(shown...)); diff != "" {
		t.Errorf("commits differ from the log (-log +commits):\n%s", diff)
	}
	for _, commit := range shown {
		if len(commit) > 8 {
			t.Errorf("a commit has %d events, want at most the group's 7 and what completes a batch", len(commit))
		}
		for _, e := range commit {
			if !e.RecordedAt.Equal(commit[0].RecordedAt) {
				t.Errorf("one commit is recorded at %v and %v", commit[0].RecordedAt, e.RecordedAt)
			}
		}
	}
}

// The answer to "what was known at noon" must not change when the clock is set back.
func TestAMomentIsFoundAcrossClockSteps(t *testing.T) {
	dir := t.TempDir()
	var now time.Time
	l := openWith(t, dir, sqlite.Options{Now: func() time.Time { return now }})
	minutes := []int{0, 1, 1, 5, 2, 3, 9, 4, 4, 8, 0, 7}
	for i, m := range minutes {
		now = noon.Add(time.Duration(m) * time.Minute)
		add(t, l, failure(i))
	}
	for m := -1; m < 11; m++ {
		at := noon.Add(time.Duration(m) * time.Minute)
		var want events.Sequence
		for i, recorded := range minutes {
			if recorded <= m {
				want = events.Sequence(i + 1)
			}
		}
		if got, err := l.SequenceAt(ctx, at); err != nil || got != want {
			t.Errorf("at minute %d: got %d, %v, want %d", m, got, err, want)
		}
	}
	closeLog(t, l)
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("verify: %s", r.Problem)
	}
}
