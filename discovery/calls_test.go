package discovery_test

import (
	"strings"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestACallIsWrittenDownBeforeAndAfter(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	out := r.call("healthy", "echo", `{"text":"hello"}`)
	if out.Outcome != projections.OutcomeSucceeded || !out.Dispatched || !strings.Contains(string(out.Result), "hello") {
		t.Fatalf("outcome %+v %s", out, out.Result)
	}
	got := r.recorded("healthy", events.TypeToolCallStarted, events.TypeToolCallSucceeded)
	if len(got) != 2 || got[0].CallID != out.CallID || got[1].ID != out.EventID {
		t.Errorf("recorded %+v", got)
	}
	r.call("healthy", "echo", `{}`)
	starts := r.recorded("healthy", events.TypeToolCallStarted)
	if first, second := starts[0].Data.(events.ToolCallStarted), starts[1].Data.(events.ToolCallStarted); first.Generation != 0 || second.Generation != 1 {
		t.Errorf("started on sessions %d and %d, want none yet and 1", first.Generation, second.Generation)
	}
	if v := r.server("healthy"); v.Stats.Calls != 2 || v.Stats.CallFailures != 0 {
		t.Errorf("stats %+v", v.Stats)
	}
}
