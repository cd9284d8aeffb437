package projections_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/projections"
	"mcpledger/projections/rules"
	"mcpledger/projections/simulate"
)

// checkedLog is a log on disk of about n events: so many servers over HTTP,
// checked every quarter of an hour, of which one in ten never answers.
func checkedLog(tb testing.TB, servers, n int) *sqlite.Log {
	tb.Helper()
	fleet := simulate.Fleet{Name: "checked", Start: start, Span: time.Duration(n/servers/4) * 15 * time.Minute}
	for i := range servers {
		s := simulate.Server{Name: events.ServerName(fmt.Sprintf("server-%04d", i)), Kind: simulate.Healthy, Transport: events.TransportHTTP}
		if i%10 == 9 {
			s.Kind = simulate.Unanswering
			s.Broken = []simulate.Breakage{{From: start, To: start.AddDate(10, 0, 0), Failure: simulate.Failure{Evidence: refused.Evidence}}}
		}
		fleet.Servers = append(fleet.Servers, s)
	}
	var now time.Time
	log, err := sqlite.Open(tb.Context(), tb.TempDir(), sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	var batch []events.Event
	flush := func() {
		if _, err := log.Append(tb.Context(), batch); err != nil {
			tb.Fatal(err)
		}
		batch = batch[:0]
	}
	fleet.Run(rules.Default(), func(e events.Event) {
		now = e.Time
		if batch = append(batch, e); len(batch) == 1000 {
			flush()
		}
	})
	flush()
	return log
}

// BenchmarkAt asks for moments anywhere in a log of a million events, whose marks are
// stored. The bar is 50 ms.
func BenchmarkAt(b *testing.B) {
	const n = 1_000_000
	for _, servers := range []int{100, 1000} {
		b.Run(fmt.Sprint(servers, " servers"), func(b *testing.B) {
			log := checkedLog(b, servers, n)
			engine := caughtUp(b, log, rules.Default(), log)
			if err := engine.SaveSnapshot(b.Context(), true); err != nil {
				b.Fatal(err)
			}
			head, err := log.Head(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			chance := rand.New(rand.NewPCG(1, 2))
			var took []time.Duration
			for b.Loop() {
				at := projections.Moment{Sequence: events.Sequence(1 + chance.Int64N(int64(head.Sequence)))}
				began := time.Now()
				if _, _, err := engine.At(b.Context(), at, nil, time.Now()); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
