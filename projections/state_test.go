package projections_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func TestAPinIsTheServers(t *testing.T) {
	pins := func(h *history) { h.about(events.SkipPinned{Reason: "broken"}) }
	clears := func(h *history) { h.about(events.SkipCleared{Reason: "fixed"}) }
	becomes := func(c events.Change, k events.ConfigKey) func(*history) {
		return func(h *history) { h.configure(c, k) }
	}
	for _, c := range []struct {
		name   string
		steps  []func(*history)
		pinned bool
	}{
		{"it outlives an edit", []func(*history){pins, becomes(events.ChangeKey, keyB)}, true},
		{"it outlives changed values", []func(*history){pins, becomes(events.ChangeValues, keyA2)}, true},
		{"once cleared it does not come back with old values", []func(*history){pins, becomes(events.ChangeValues, keyA2), clears, becomes(events.ChangeValues, keyA)}, false},
		{"nor with the old entry", []func(*history){pins, becomes(events.ChangeKey, keyB), clears, becomes(events.ChangeKey, keyA)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			for _, step := range c.steps {
				step(h)
			}
			if v := h.server(t); (v.Skip != nil && v.Skip.Reason == projections.SkipPinned) != c.pinned {
				t.Errorf("pinned %v, want %v: %s", !c.pinned, c.pinned, v.Reason)
			}
		})
	}
}

func TestChangedValuesKeepTheFactsASkipRestsOn(t *testing.T) {
	h := newHistory()
	facts := []events.LocalFact{{Path: "/usr/bin/acme-mcp"}}
	for n := range 4 { // the first failure, and three probes
		id := fmt.Sprint(n)
		for _, d := range []events.Data{events.DiscoveryStarted{Trigger: events.TriggerStartup, Attempt: 1, Facts: facts}, notFound} {
			h.add(events.Event{Subject: server, ConfigKey: h.key, RunID: id, AttemptID: id, Data: d})
		}
		h.configure(events.ChangeValues, events.ConfigKey("k1_aaaaaaaaaaaaaaaa."+id))
	}
	got, rests := h.fold().RequalifyFacts(server, h.now)
	if diff := cmp.Diff(facts, got); !rests || diff != "" {
		t.Errorf("rests on facts: %v (-want +got):\n%s", rests, diff)
	}
}

func TestAReporterOfOutcomesAloneOpensAndClosesGates(t *testing.T) {
	h := remote()
	report := func(attempt, call string, d events.Data) {
		h.add(events.Event{Source: "a-host", Subject: server, ConfigKey: keyB, RunID: attempt, AttemptID: attempt, CallID: call, Data: d})
		h.wait(time.Second)
	}
	gate := func() *projections.Gate {
		v, _ := h.fold().Reported("a-host", server, keyB, h.now)
		return v.Gate
	}
	for i := range 2 {
		report("", fmt.Sprint("call", i), unauthorized)
		if gate() == nil {
			t.Fatalf("call %d closed no gate", i)
		}
		report(fmt.Sprint("attempt", i), "", succeeds)
		if gate() != nil {
			t.Fatalf("success %d left the gate closed", i)
		}
	}
}

func TestWhatAReporterLeavesOpenIsBounded(t *testing.T) {
	s := projections.New(rules.Default())
	var place events.Sequence
	report := func(key events.ConfigKey, attempt, call string, d events.Data) {
		place++
		s.Apply(events.Event{
			ID: fmt.Sprint(place), Source: "a-host", Subject: server, ConfigKey: key, AttemptID: attempt, CallID: call,
			Sequence: place, Type: d.EventType(), Time: start, RecordedAt: start, Data: d,
		})
	}
	for n := range projections.MaxOpen + 10 {
		id := fmt.Sprint(n)
		if n == 1 {
			id = "" // a reporter may name none
		}
		report(keyA, id, "", events.DiscoveryStarted{Attempt: 1})
		report(keyA, "", id, events.ToolCallStarted{Tool: "now"})
	}
	if _, open := s.Remembered("a-host", server); open != 2*projections.MaxOpen {
		t.Errorf("%d attempts and calls are open, want %d", open, 2*projections.MaxOpen)
	}
	for n := range projections.MaxConnections + 10 {
		report(events.ConfigKey(fmt.Sprint("key", n)), "attempt", "", events.DiscoveryStarted{Attempt: 1})
	}
	if connections, _ := s.Remembered("a-host", server); connections != projections.MaxConnections {
		t.Errorf("%d connections are known, want %d", connections, projections.MaxConnections)
	}
}

func TestAnOutageIsOfOneServiceAlone(t *testing.T) {
	h := newHistory()
	for _, name := range []events.ServerName{"maps", "mail", "files"} {
		h.attemptOn(name, refused)
	}
	h.add(events.Event{Source: "mcpledger/other", Data: events.ServiceStarted{Instance: "mcpledger/other"}})
	h.add(events.Event{Source: "mcpledger/other", Subject: "disk", ConfigKey: keyA, RunID: "r", AttemptID: "a", Data: refused})
	v, _ := h.fold().Reported("mcpledger/other", "disk", keyA, h.now)
	if v.Streak == nil {
		t.Error("a failure was laid to the outage of another service")
	}
}

// attemptOn configures a server and records one attempt.
func (h *history) attemptOn(name events.ServerName, outcome events.Data) {
	h.on = name
	h.configure(events.ChangeAdded, keyA)
	h.attempt(events.TriggerRetry, outcome)
}
