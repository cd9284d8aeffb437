package sqlite_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/eventstest"
)

// Where no index helps, a page is looked for in stretches of the log; what lies in
// any of them must be found, in either direction.
func TestARareEventIsFoundInALongLog(t *testing.T) {
	const n = 40_000
	rare := []int{0, 16_383, 16_384, 16_385, 32_768, 39_999}
	l := open(t, t.TempDir())
	var want []events.Sequence
	for from := 0; from < n; from += 1000 {
		var batch []events.Event
		for i := from; i < from+1000; i++ {
			e := eventstest.At(noon).Failed("weather", "k", events.Evidence{ElapsedMS: int64(i)})
			if slices.Contains(rare, i) {
				e.Source, e.AttemptID = "rare", "the attempt"
				want = append(want, events.Sequence(i+1))
			}
			batch = append(batch, e)
		}
		add(t, l, batch...)
	}
	for name, q := range map[string]events.Query{"source": {Source: "rare"}, "attempt": {AttemptID: "the attempt"}} {
		for _, desc := range []bool{false, true} {
			for limit := range len(rare) + 2 {
				q.Desc, q.Limit = desc, limit
				want := slices.Clone(want)
				if desc {
					slices.Reverse(want)
				}
				if limit > 0 && limit < len(want) {
					want = want[:limit]
				}
				var got []events.Sequence
				for e, err := range l.Read(ctx, q) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, e.Sequence)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("by %s, limit %d, newest first %t (-want +got):\n%s", name, limit, desc, diff)
				}
			}
		}
	}
}

// Contents that no longer fit into the cache are read again.
func TestManyLongTextsAreReadThroughASmallCache(t *testing.T) {
	opts := options
	opts.CacheBytes = 10_000
	l := openWith(t, t.TempDir(), opts)
	var want []string
	for i := range 200 {
		text := fmt.Sprintf("%0*d", 300+i*20, i)
		want = append(want, text)
		add(t, l, eventstest.At(noon).Failed("weather", "k", events.Evidence{StderrTail: text}))
	}
	for range 2 {
		var got []string
		for _, e := range readAll(t, l) {
			got = append(got, e.Data.(events.DiscoveryFailed).Evidence.StderrTail)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("texts (-appended +read):\n%s", diff)
		}
	}
}
