package projections_test

import (
	"testing"

	"mcpledger/events"
)

// A host may name its attempts as it likes; a snapshot keeps what was appended.
func TestASnapshotKeepsIDsThatAreNoText(t *testing.T) {
	h := newHistory()
	h.add(events.Event{
		Subject: server, ConfigKey: h.key, RunID: "run", AttemptID: "attempt \xff",
		Data: events.DiscoveryStarted{Trigger: events.TriggerStartup, Attempt: 1},
	})
	open := throughSnapshot(t, h.fold()).Unfinished()
	if len(open) != 1 || open[0].AttemptID != "attempt \xff" {
		t.Errorf("the open attempts are %+v", open)
	}
}
