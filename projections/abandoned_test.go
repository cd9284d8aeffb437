package projections_test

import (
	"testing"

	"mcpledger/events"
	"mcpledger/projections"
)

// crash has the service end in the midst of an attempt and start again.
func (h *history) crash() {
	h.attempt(events.TriggerStartup)
	cut := h.events[len(h.events)-1]
	h.restart()
	h.add(events.Event{Subject: h.on, ConfigKey: h.key, RunID: cut.RunID, AttemptID: cut.AttemptID, Data: events.DiscoveryAbandoned{}})
}

func TestAServerThatTakesTheServiceDownIsTriedAtEachStartUntilItIsSkipped(t *testing.T) {
	h := newHistory()
	for n := 1; n <= 4; n++ {
		if d, ok := h.fold().Due(server, h.now); !ok || d.At.After(h.now) || d.Trigger != events.TriggerStartup {
			t.Errorf("start %d: due at %s by %q, want at once by startup", n, d.At, d.Trigger)
		}
		h.crash()
		if got := h.fold().Abandoned(server); got != n {
			t.Errorf("after crash %d: %d attempts in a row abandoned", n, got)
		}
	}
	if v := h.server(t); v.Decision != projections.DecideSkip || v.Skip.Cause.Class != "resource" {
		t.Errorf("after four crashes: %s, %s", v.Decision, v.Reason)
	}
}

func TestASuccessClearsAServerOfTheServicesEnds(t *testing.T) {
	h := newHistory()
	h.crash()
	h.attempt(events.TriggerStartup, succeeds)
	h.crash()
	if got := h.fold().Abandoned(server); got != 1 {
		t.Errorf("%d attempts in a row abandoned, want the one since the success", got)
	}
	if v := h.server(t); v.Streak != nil {
		t.Errorf("counted: %+v", v.Streak)
	}
}
