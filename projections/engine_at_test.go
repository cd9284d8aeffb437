package projections_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// The engine leaves events unread that no state rests on. The state at any place, theirs
// too, is the fold of all there are.
func TestAMomentIsTheFoldOfEveryEventUpToIt(t *testing.T) {
	h := newHistory()
	for range 4 {
		h.add(events.Event{Data: events.DiscoveryRunStarted{Trigger: events.TriggerRetry, Servers: []events.ServerName{server}}})
		h.attempt(events.TriggerRetry, diesOnImport)
		h.add(events.Event{Data: events.DiscoveryRunCompleted{Failed: 1}})
		h.about(events.ToolCallRefused{Tool: "forecast", Reason: "skip"})
		h.about(events.SessionDiscarded{Reason: "idle"})
		h.add(events.Event{Data: events.Unknown{Type: "weather.observed", JSON: []byte(`{"rain":true}`)}})
		h.add(events.Event{Data: events.LogImported{From: "elsewhere"}})
		h.add(events.Event{Data: events.ServiceStopped{}})
	}
	log := newMemory()
	log.add(t, h.events...)
	e := projections.NewEngine(log, rules.Default(), nil)
	e.Keep(5, 1<<20)
	if err := e.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := events.Sequence(len(h.events))
	if diff := cmp.Diff(refold(t, log, rules.Default(), all), present(t, e)); diff != "" {
		t.Errorf("caught up (-fold of all +engine):\n%s", diff)
	}
	for at := events.Sequence(1); at <= all; at++ {
		s, now, err := e.At(t.Context(), projections.Moment{Sequence: at}, nil, log.now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(refold(t, log, rules.Default(), at), snapshot(t, s)); diff != "" {
			t.Errorf("at %d (-fold of all +engine):\n%s", at, diff)
		}
		if now.IsZero() || !now.Equal(s.RecordedAt()) {
			t.Errorf("at %d now is %v, want %v", at, now, s.RecordedAt())
		}
	}
}
