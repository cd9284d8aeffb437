package replay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/projections"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// wildServers and wildSources are who a wild log is about.
var (
	wildServers = []events.ServerName{"weather", "maps", "mail"}
	wildSources = []string{self, "mcpledger/other", "a-host"}
)

// drawWildLog draws a log that no service of ours would write: several reporters tell of
// the same servers, late and by clocks that go backwards; attempts end that never began
// and begin without an end; rules, configs and pins change in the middle; and some events
// are of types that nobody knows.
func drawWildLog(t *rapid.T) events.Log {
	wall, told := noon, noon
	log := eventstest.NewLog(func() time.Time { return wall })
	number := rapid.IntRange(1, 4)
	keys := []events.ConfigKey{key, other, values(1), values(2), events.DefaultConfigKey, ""}
	kinds := []func() events.Data{
		func() events.Data { return events.ServiceStarted{Instance: self} },
		func() events.Data { return events.ServiceStopped{} },
		func() events.Data {
			return events.ServerConfigured{
				Change:    rapid.SampledFrom([]events.Change{events.ChangeAdded, events.ChangeKey, events.ChangeValues, events.ChangeSettings}).Draw(t, "change"),
				Transport: events.TransportStdio, Disabled: number.Draw(t, "disabled") == 1,
			}
		},
		func() events.Data { return events.ServerRemoved{} },
		func() events.Data {
			return events.DiscoveryRunStarted{
				Trigger: rapid.SampledFrom([]events.Trigger{events.TriggerStartup, events.TriggerManual, events.TriggerRetry}).Draw(t, "run trigger"),
				Servers: rapid.SliceOfN(rapid.SampledFrom(wildServers), 0, 3).Draw(t, "planned"),
			}
		},
		func() events.Data { return events.DiscoveryRunCompleted{} },
		func() events.Data {
			return events.DiscoveryStarted{
				Attempt: number.Draw(t, "attempt"),
				Trigger: rapid.SampledFrom([]events.Trigger{events.TriggerStartup, events.TriggerOnUse, events.TriggerSkipExpired, ""}).Draw(t, "trigger"),
			}
		},
		func() events.Data { return rapid.SampledFrom([]events.Data{dies, refuses, works}).Draw(t, "outcome") },
		func() events.Data {
			return events.DiscoveryFailed{Evidence: rapid.SampledFrom(faults).Draw(t, "fault").Evidence}
		},
		func() events.Data { return events.DiscoveryCancelled{ElapsedMS: 5} },
		func() events.Data { return events.DiscoveryAbandoned{} },
		func() events.Data {
			return events.DiscoverySkipped{
				Reason: rapid.SampledFrom([]string{"identical_failures", "auth", "pinned", "?"}).Draw(t, "reason"),
				Since:  told, Until: told.Add(time.Duration(number.Draw(t, "skipped for")) * time.Hour),
			}
		},
		func() events.Data { return events.CatalogueChanged{Hash: "h", Tools: []byte("[]")} },
		func() events.Data { return events.ToolCallStarted{Tool: "now"} },
		func() events.Data {
			return rapid.SampledFrom([]events.Data{callFine, callDown}).Draw(t, "call outcome")
		},
		func() events.Data {
			return events.ToolCallFailed{Tool: "now", Evidence: login(rapid.SampledFrom([]int{401, 403, 500}).Draw(t, "status")).Evidence}
		},
		func() events.Data { return events.ToolCallAbandoned{Tool: "now"} },
		func() events.Data { return events.ToolCallRefused{Tool: "now"} },
		func() events.Data { return events.SkipPinned{Reason: "broken", Until: told.Add(time.Hour)} },
		func() events.Data { return events.SkipCleared{} },
		func() events.Data { return events.SkipRequalified{} },
		func() events.Data {
			set := rapid.SampledFrom([]string{"default", "call-scoped", "lost"}).Draw(t, "activated")
			return events.RulesActivated{Set: set, Hash: set, Text: "neither here nor there"}
		},
		func() events.Data { return events.Unknown{Type: "weather.changed", JSON: []byte(`{"to":"rain"}`)} },
	}
	for i := range rapid.IntRange(0, 150).Draw(t, "events") {
		wall = wall.Add(time.Duration(rapid.Int64Range(0, 3_600_000).Draw(t, "later")) * time.Millisecond)
		told = wall
		if number.Draw(t, "clock") == 1 {
			told = wall.Add(time.Duration(rapid.Int64Range(-48*3_600_000, 3_600_000).Draw(t, "by the clock")) * time.Millisecond)
		}
		e := events.Event{
			ID: fmt.Sprint("event ", i), DataVersion: 1, Time: told,
			Source:    rapid.SampledFrom(wildSources).Draw(t, "source"),
			Subject:   rapid.SampledFrom(wildServers).Draw(t, "server"),
			ConfigKey: rapid.SampledFrom(keys).Draw(t, "key"),
			Data:      rapid.SampledFrom(kinds).Draw(t, "kind")(),
		}
		if number.Draw(t, "in a run") > 1 {
			e.RunID, e.AttemptID = fmt.Sprint("run ", number.Draw(t, "run")), fmt.Sprint("attempt ", number.Draw(t, "of the run"))
			e.CallID = fmt.Sprint("call ", number.Draw(t, "call"))
		}
		e.Type = e.Data.EventType()
		if _, err := log.Append(t.Context(), []events.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func replayed(t *rapid.T, log events.Log, baseline, candidate *rules.Set, opts replay.Options) replay.Report {
	report, err := replay.Run(t.Context(), log, baseline, candidate, opts)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Whatever a log holds, a set is the same as itself; two sets compared the other way
// round differ by as much the other way; and what a filter counts adds up to the whole.
func TestReplayOfAWildLogIsConsistent(t *testing.T) {
	hasty := set(t, "after: 3, for: [1h, 4h, 24h]", "after: 1, for: [6h]")
	scoped, err := rules.Builtin("call-scoped")
	if err != nil {
		t.Fatal(err)
	}
	gating, err := rules.Builtin("any-failure-gates")
	if err != nil {
		t.Fatal(err)
	}
	sets := rapid.SampledFrom([]*rules.Set{rules.Default(), hasty, scoped, gating})
	rapid.Check(t, func(t *rapid.T) {
		log := drawWildLog(t)
		a, b := sets.Draw(t, "baseline"), sets.Draw(t, "candidate")

		itself := replayed(t, log, a, a, replay.Options{})
		if want := (replay.Totals{Failures: itself.Totals.Failures}); itself.Verdict != replay.Same || itself.Totals != want || len(itself.Servers)+len(itself.Failures) > 0 {
			t.Fatalf("%s against itself: %+v", a.Name(), itself)
		}

		whole := replayed(t, log, a, b, replay.Options{All: true})
		back := replayed(t, log, b, a, replay.Options{All: true})
		if diff := cmp.Diff(whole, turned(back), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Verdict" }, cmp.Ignore())); diff != "" {
			t.Fatalf("%s to %s, and the other way round (-there +back):\n%s", a.Name(), b.Name(), diff)
		}
		var times int64
		for _, k := range whole.Kinds {
			times += k.Times
		}
		if n := whole.Totals.Failures; n != int64(len(whole.Failures)) || n != times {
			t.Fatalf("%d failures, %d listed, %d by kinds", n, len(whole.Failures), times)
		}

		var byServer replay.Totals
		for _, name := range wildServers {
			if r, err := replay.Run(t.Context(), log, a, b, replay.Options{Servers: []events.ServerName{name}}); err == nil {
				byServer = sum(byServer, r.Totals)
			}
		}
		if diff := cmp.Diff(whole.Totals, byServer); diff != "" {
			t.Fatalf("servers alone do not add up (-whole +sum):\n%s", diff)
		}
		cut := noon.Add(time.Duration(rapid.Int64Range(int64(-24*time.Hour), int64(100*time.Hour)).Draw(t, "cut")))
		before, after := replayed(t, log, a, b, replay.Options{Until: cut}), replayed(t, log, a, b, replay.Options{Since: cut})
		if diff := cmp.Diff(whole.Totals, sum(before.Totals, after.Totals)); diff != "" {
			t.Fatalf("what is before and after %s does not add up (-whole +sum):\n%s", cut, diff)
		}
	})
}

// turned is a report as it is the other way round; the verdict is not its opposite.
func turned(r replay.Report) replay.Report {
	r.Baseline, r.Candidate = r.Candidate, r.Baseline
	failures, reclassified := r.Totals.Failures, r.Totals.Reclassified
	r.Totals = replay.Totals{
		Failures: failures, Reclassified: reclassified,
		AttemptsAvoided: -r.Totals.AttemptsAvoided, TimeAvoidedMS: -r.Totals.TimeAvoidedMS,
		RecoveriesDelayed: -r.Totals.RecoveriesDelayed, DelayMS: -r.Totals.DelayMS,
		GoodCallsRefused: -r.Totals.GoodCallsRefused, AttemptsUnknown: -r.Totals.AttemptsUnknown,
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		s.Was, s.Now = s.Now, s.Was
		s.AttemptsAvoided, s.RecoveriesDelayed = -s.AttemptsAvoided, -s.RecoveriesDelayed
		s.GoodCallsRefused, s.AttemptsUnknown = -s.GoodCallsRefused, -s.AttemptsUnknown
	}
	for i := range r.Failures {
		f := &r.Failures[i]
		f.Was, f.Now = f.Now, f.Was
	}
	for i := range r.Kinds {
		k := &r.Kinds[i]
		k.Was, k.Now = k.Now, k.Was
	}
	return r
}

func sum(a, b replay.Totals) replay.Totals {
	return replay.Totals{
		Failures: a.Failures + b.Failures, Reclassified: a.Reclassified + b.Reclassified,
		AttemptsAvoided: a.AttemptsAvoided + b.AttemptsAvoided, TimeAvoidedMS: a.TimeAvoidedMS + b.TimeAvoidedMS,
		RecoveriesDelayed: a.RecoveriesDelayed + b.RecoveriesDelayed, DelayMS: a.DelayMS + b.DelayMS,
		GoodCallsRefused: a.GoodCallsRefused + b.GoodCallsRefused, AttemptsUnknown: a.AttemptsUnknown + b.AttemptsUnknown,
	}
}

// The state at any place of a wild log is the same from the beginning, from a snapshot of
// any place before it, and through an engine on however many cores.
func TestFoldOfAWildLogIsTheSameFromAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := drawWildLog(rt)
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(rapid.IntRange(1, 4).Draw(rt, "cores")))
		whole, resumed := projections.New(rules.Default()), projections.New(rules.Default())
		for e, err := range log.Read(t.Context(), events.Query{}) {
			if err != nil {
				rt.Fatal(err)
			}
			whole.Apply(e)
			resumed.Apply(e)
			if rapid.IntRange(0, 9).Draw(rt, "restart") > 0 {
				continue
			}
			b, err := resumed.Snapshot()
			if err != nil {
				rt.Fatal(err)
			}
			if resumed, err = projections.Restore(rules.Default(), b); err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(snapshot(rt, whole), snapshot(rt, resumed)); diff != "" {
			rt.Fatalf("restarts changed the fold (-whole +resumed):\n%s", diff)
		}
		if whole.Sequence() == 0 {
			return
		}
		engine := projections.NewEngine(log, rules.Default(), nil)
		at, _, err := engine.At(t.Context(), projections.Moment{Sequence: whole.Sequence()}, rules.Default(), noon.AddDate(1, 0, 0))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(snapshot(rt, whole), snapshot(rt, at)); diff != "" {
			rt.Fatalf("an engine says otherwise (-fold +engine):\n%s", diff)
		}
	})
}
