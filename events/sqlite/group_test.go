package sqlite_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// What one commit shows is what the log holds. A batch is recorded at one time, not
// before it was appended.
func TestCommitsAreShownInLogOrder(t *testing.T) {
	var ticks atomic.Int64
	clock := func() time.Time { return noon.Add(time.Duration(ticks.Add(1))) }
	l := openWith(t, t.TempDir(), sqlite.Options{Now: clock, MaxGroup: 7})
	var shown [][]events.Event
	l.OnCommit(func(es []events.Event) { shown = append(shown, slices.Clone(es)) })
	var mu sync.Mutex
	appended := map[events.Sequence]time.Time{} // when each batch was, by its first event
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for i := range 10 {
				now := clock()
				r := add(t, l, failure(i), failure(i+1))
				mu.Lock()
				appended[r.Sequences[0]] = now
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	all := readAll(t, l)
	if diff := cmp.Diff(all, slices.Concat(shown...)); diff != "" {
		t.Errorf("commits differ from the log (-log +commits):\n%s", diff)
	}
	for _, commit := range shown {
		if len(commit) > 8 {
			t.Errorf("a commit has %d events, want at most the group's 7 and what completes a batch", len(commit))
		}
	}
	for first, now := range appended {
		a, b := all[first-1], all[first]
		if !a.RecordedAt.Equal(b.RecordedAt) || a.RecordedAt.Before(now) {
			t.Errorf("a batch appended at %v is recorded at %v and %v", now, a.RecordedAt, b.RecordedAt)
		}
	}
}

// One statement stores several events; how many there are must not show.
func TestABatchOfAnySizeIsStoredOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	want := 0
	for _, n := range []int{1, 2, 15, 16, 17, 50} {
		var batch []events.Event
		for i := range n {
			batch = append(batch, failure(i))
		}
		first := add(t, l, batch...)
		want += n
		again := add(t, l, batch...)
		if first.Duplicates != 0 || again.Duplicates != n || !slices.Equal(first.Sequences, again.Sequences) {
			t.Errorf("%d events: got %+v, and appended again %+v", n, first, again)
		}
		// A new event between those that are known has its own place.
		mixed := slices.Concat(batch[:n/2], []events.Event{failure(n)}, batch[n/2:])
		r := add(t, l, mixed...)
		want++
		if r.Duplicates != n || r.Sequences[n/2] != events.Sequence(want) {
			t.Errorf("one new event among %d: got %+v", n, r)
		}
	}
	if all := readAll(t, l); len(all) != want {
		t.Errorf("%d events are there, want %d", len(all), want)
	}
	closeLog(t, l)
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("verify: %s", r.Problem)
	}
}

// Who appends while the log is closed is told whether the event is stored.
func TestAnAppendDuringCloseIsStoredOrRefused(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		l := open(t, dir)
		var stored atomic.Int64
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for i := 0; ; i++ {
					_, err := l.Append(ctx, []events.Event{failure(i)})
					if errors.Is(err, events.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					stored.Add(1)
				}
			})
		}
		for stored.Load() < 100 && !t.Failed() {
			runtime.Gosched()
		}
		closeLog(t, l)
		wg.Wait()
		if n := len(readAll(t, openReader(t, dir))); int64(n) != stored.Load() {
			t.Errorf("%d events are there, %d appends say they stored one", n, stored.Load())
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
