package projections_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/projections"
)

// drawHistory draws any order of what can happen to a few servers, seen by this
// service and by a reporter, with restarts and waits in between.
func drawHistory(t *rapid.T) []events.Event {
	h := newHistory()
	outcomes := []events.Data{
		diesOnImport, diesOnOther, answers401, refused, notFound, succeeds, cancelled, events.DiscoveryAbandoned{},
	}
	others := []events.Data{
		catalogue, events.SkipPinned{Reason: "broken"}, events.SkipCleared{Reason: "fixed"}, events.SkipRequalified{Reason: "installed"},
		events.ServerRemoved{}, events.DiscoverySkipped{Reason: "identical_failures"},
		events.Unknown{Type: "weather.changed", JSON: []byte(`{"to":"rain"}`)},
		events.ToolCallStarted{Tool: "now"}, events.ToolCallFailed{Tool: "now", Evidence: answers401.Evidence}, events.ToolCallAbandoned{Tool: "now"},
		events.ToolCallSucceeded{Tool: "now", ElapsedMS: 1234}, events.ToolCallFailed{Tool: "now", Dispatched: true, IsError: true, Evidence: noSuchCity.Evidence, ElapsedMS: 7},
	}
	triggers := []events.Trigger{events.TriggerStartup, events.TriggerRetry, events.TriggerManual, events.TriggerCheck, events.TriggerVerify}
	keys := []events.ConfigKey{keyA, keyA2, keyB}
	changes := []events.Change{events.ChangeKey, events.ChangeValues, events.ChangeSettings}
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		h.wait(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "wait")))
		h.on = rapid.SampledFrom([]events.ServerName{server, server, h.on}).Draw(t, "on")
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0:
			h.restart()
		case 1:
			h.configure(rapid.SampledFrom(changes).Draw(t, "change"), rapid.SampledFrom(keys).Draw(t, "key"))
		case 2:
			h.add(events.Event{Subject: "weather", ConfigKey: events.DefaultConfigKey, Source: "a-host", Data: rapid.SampledFrom(outcomes).Draw(t, "reported")})
		case 3, 4:
			d := rapid.SampledFrom(others).Draw(t, "other")
			h.add(events.Event{Subject: h.on, ConfigKey: h.key, CallID: "call", Data: d})
		case 5:
			h.attemptIn("a run", events.TriggerRetry, rapid.SampledFrom(outcomes).Draw(t, "outcome"))
		case 6: // several servers are lost together
			for _, name := range []events.ServerName{"maps", "mail", "files", server} {
				h.attemptOn(name, refused)
			}
		case 7: // one that never keeps its values
			for n := range rapid.IntRange(1, 40).Draw(t, "keys") {
				h.configure(events.ChangeValues, events.ConfigKey(fmt.Sprintf("%s.%d", rapid.SampledFrom(keys).Draw(t, "entry").Entry(), n)))
				h.attempt(events.TriggerRetry, diesOnImport)
			}
		case 8:
			h.add(events.Event{Data: events.ServiceStarted{}, Source: rapid.SampledFrom([]string{self, "mcpledger/other"}).Draw(t, "service")})
		default:
			h.attempt(rapid.SampledFrom(triggers).Draw(t, "trigger"), rapid.SampledFrom(outcomes).Draw(t, "outcome"))
		}
	}
	return h.events
}

// snapshot gives a state as people read it.
func snapshot(t rapid.TB, s *projections.State) string {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := cbor.Diagnose(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// throughSnapshot restores a state from its own snapshot.
func throughSnapshot(t rapid.TB, s *projections.State) *projections.State {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := projections.Restore(s.Rules(), b)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

// A restart at any point must not change the answer.
func TestSnapshotAnywhereGivesSameFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawHistory(t)
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		resumed := throughSnapshot(t, fold(all[:cut]))
		for _, e := range all[cut:] {
			resumed.Apply(e)
		}
		if diff := cmp.Diff(snapshot(t, fold(all)), snapshot(t, resumed)); diff != "" {
			t.Fatalf("restart at %d changed the fold (-whole +resumed):\n%s", cut, diff)
		}
	})
}

// Asking must not change what is asked, and the same moment gets the same answer.
func TestQuestionsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawHistory(t)
		s := fold(all)
		before := snapshot(t, s)
		now := all[len(all)-1].Time.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "later")))
		ask := func() string {
			b, err := json.Marshal([]any{s.Servers(now), s.Unfinished(), s.Config()})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if first, second := ask(), ask(); first != second {
			t.Fatalf("asked twice:\n%s\n%s", first, second)
		}
		for _, v := range s.Servers(now) {
			s.Due(v.Name, now)
			s.SkipNote(v.Name, now)
			s.RequalifyFacts(v.Name, now)
			v.Clearings()
			v.ClearsOn()
		}
		if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
			t.Fatalf("questions changed the state:\n%s", diff)
		}
	})
}

// Whatever happened, a configured server is listed with a state and a reason, and a
// skip that holds has an end or can be cleared by hand.
func TestEveryConfiguredServerIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawHistory(t)
		now := all[len(all)-1].Time
		own := ""
		configured := map[string]map[events.ServerName]bool{}
		for _, e := range all {
			if configured[e.Source] == nil {
				configured[e.Source] = map[events.ServerName]bool{}
			}
			switch e.Data.(type) {
			case events.ServiceStarted:
				own = e.Source
			case events.ServerConfigured:
				configured[e.Source][e.Subject] = true
			case events.ServerRemoved:
				delete(configured[e.Source], e.Subject)
			}
		}
		listed := fold(all).Servers(now)
		if len(configured[own]) != len(listed) {
			t.Fatalf("configured %v, listed %d", configured[own], len(listed))
		}
		for _, v := range listed {
			if v.State == "" || v.Reason == "" || v.Needs == "" || v.Decision == "" {
				t.Fatalf("incomplete: %+v", v)
			}
			if v.Skip != nil && len(v.ClearsOn()) == 0 {
				t.Fatalf("nothing clears %+v", v.Skip)
			}
		}
	})
}
