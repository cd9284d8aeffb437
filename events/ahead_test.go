package events_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/eventstest"
)

// many is a log of n events.
func many(t *testing.T, n int) events.Log {
	t.Helper()
	log := eventstest.NewLog(time.Now)
	for i := range n {
		if _, err := log.Append(t.Context(), []events.Event{eventstest.At(time.Now()).Succeeded("weather", "k", i)}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestReadingAheadGivesEveryEventOnceInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 6, 7, 8, 20, 21} {
		synctest.Test(t, func(t *testing.T) {
			log := many(t, n)
			var sizes, want []int
			at := events.Sequence(0)
			for piece, err := range events.Ahead(t.Context(), log, events.Query{}, 7) {
				if err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, len(piece))
				for _, e := range piece {
					if at++; e.Sequence != at {
						t.Fatalf("event %d came in the place of %d", e.Sequence, at)
					}
				}
			}
			for left := n; left > 0; left -= 7 {
				want = append(want, min(left, 7))
			}
			if diff := cmp.Diff(want, sizes); diff != "" {
				t.Errorf("of %d events the pieces have (-want +got):\n%s", n, diff)
			}
		})
	}
}

// A goroutine left behind would be a deadlock in the bubble.
func TestReadingAheadEndsWithItsReader(t *testing.T) {
	for name, use := range map[string]func(*testing.T, iter.Seq2[[]events.Event, error], context.CancelFunc){
		"who has enough": func(t *testing.T, pieces iter.Seq2[[]events.Event, error], _ context.CancelFunc) {
			for _, err := range pieces {
				if err != nil {
					t.Error(err)
				}
				return
			}
		},
		"who never begins": func(_ *testing.T, _ iter.Seq2[[]events.Event, error], cancel context.CancelFunc) { cancel() },
		"who is cancelled": func(t *testing.T, pieces iter.Seq2[[]events.Event, error], cancel context.CancelFunc) {
			var last error
			for _, last = range pieces {
				cancel()
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("a cancelled reader got %v", last)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				use(t, events.Ahead(ctx, many(t, 50), events.Query{}, 7), cancel)
				cancel()
				synctest.Wait()
			})
		})
	}
}

// breaking is a log whose reads end in an error after ten events.
type breaking struct{ events.Log }

func (b breaking) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		q.Limit = 10
		for e, err := range b.Log.Read(ctx, q) {
			if !yield(e, err) {
				return
			}
		}
		yield(events.Event{}, fmt.Errorf("read: %w", events.ErrCorrupt))
	}
}

func TestReadingAheadEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		var last error
		for piece, err := range events.Ahead(t.Context(), breaking{many(t, 50)}, events.Query{}, 5) {
			read, last = read+len(piece), err
		}
		if read != 10 || !errors.Is(last, events.ErrCorrupt) {
			t.Errorf("read %d events, then %v", read, last)
		}
	})
}
