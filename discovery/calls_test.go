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
	if v := r.server("healthy"); v.Stats.Calls != 1 || v.Stats.CallFailures != 0 {
		t.Errorf("stats %+v", v.Stats)
	}
}
