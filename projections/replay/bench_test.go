package replay_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// busyLog is a log on disk as a service leaves it: of ten events six are of calls
// and four of a run, of which one in four fails with a traceback.
func busyLog(tb testing.TB, n int) *sqlite.Log {
	tb.Helper()
	now := noon
	log, err := sqlite.Open(tb.Context(), tb.TempDir(), sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	newID := func() string { return uuid.Must(uuid.NewV7()).String() }
	stack := strings.Repeat("  File \"/home/ada/.cache/uv/archive/lib/python3.12/site-packages/server.py\", line 12, in main\n", 20)
	var batch []events.Event
	add := func(e events.Event) {
		e.ID, e.Source, e.Type, e.Time, e.DataVersion = newID(), self, e.Data.EventType(), now, 1
		batch = append(batch, e)
	}
	add(events.Event{Data: events.ServiceStarted{Instance: self}})
	server := func(i int) events.ServerName { return events.ServerName(fmt.Sprintf("server-%03d", i%200)) }
	for i := range 200 {
		add(events.Event{Subject: server(i), ConfigKey: key, Data: events.ServerConfigured{Change: events.ChangeAdded, Transport: events.TransportStdio}})
	}
	for i := 0; i < n; i += 10 {
		now = now.Add(time.Second)
		e := events.Event{Subject: server(i / 10), ConfigKey: key, RunID: newID(), AttemptID: newID()}
		add(events.Event{RunID: e.RunID, Data: events.DiscoveryRunStarted{Trigger: events.TriggerRetry, Servers: []events.ServerName{e.Subject}}})
		e.Data = events.DiscoveryStarted{Attempt: 1, Trigger: events.TriggerRetry, LimitMS: 60_000}
		add(e)
		e.Data = works
		if i%40 == 0 {
			spoke := int64(37)
			d := dies
			d.Evidence.StderrTail, d.Evidence.StderrBytes, d.Evidence.StderrLastMS = stack+dies.Evidence.StderrTail, 1840, &spoke
			e.Data = d
		}
		add(e)
		add(events.Event{RunID: e.RunID, Data: events.DiscoveryRunCompleted{Succeeded: 1, ElapsedMS: 900}})
		for range 3 {
			c := events.Event{Subject: server(i/10 + 1), ConfigKey: key, CallID: newID(), Actor: "agent"}
			c.Data = events.ToolCallStarted{Tool: "get_forecast", ArgumentsHash: strings.Repeat("ab", 32), ArgumentsSize: 120, Caller: "agent", Generation: 1}
			add(c)
			c.Data = events.ToolCallSucceeded{Tool: "get_forecast", ElapsedMS: 12, ResultSize: 900, Generation: 1}
			add(c)
		}
		if len(batch) > 1000 || i+10 >= n {
			if _, err := log.Append(tb.Context(), batch); err != nil {
				tb.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	return log
}

// BenchmarkReplay puts two sets through a log on disk. The bar is 300,000 events a
// second on 2 cores; the floor is the same log read and decoded, and nothing else. Of
// a machine that others use, the best pass says most; it is told with its own floor.
func BenchmarkReplay(b *testing.B) {
	log := busyLog(b, 200_000)
	candidate := set(b, "after: 3, for: [1h, 4h, 24h]", "after: 1, for: [6h]")
	type pass struct{ ours, floor float64 } // events per second
	var all []pass
	for b.Loop() {
		began := time.Now()
		read := int64(0)
		for _, err := range log.Read(b.Context(), events.Query{Bare: true}) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
		floor := time.Since(began)
		began = time.Now()
		report, err := replay.Run(b.Context(), log, rules.Default(), candidate, replay.Options{})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, pass{float64(read) / time.Since(began).Seconds(), float64(read) / floor.Seconds()})
		if report.Events != read {
			b.Fatalf("replayed %d events of %d", report.Events, read)
		}
	}
	slices.SortFunc(all, func(a, b pass) int { return cmp.Compare(a.ours, b.ours) })
	best := all[len(all)-1]
	b.ReportMetric(all[len(all)/2].ours, "p50-events/s")
	b.ReportMetric(best.ours, "best-events/s")
	b.ReportMetric(best.ours/best.floor, "of-read")
}
