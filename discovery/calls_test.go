package discovery_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func (r *running) call(server events.ServerName, tool, arguments string) discovery.CallOutcome {
	r.w.t.Helper()
	out, err := r.Call(context.Background(), discovery.Call{Server: server, Tool: tool, Arguments: json.RawMessage(arguments), Caller: "tester"})
	if err != nil {
		r.w.t.Fatalf("call %s/%s: %v", server, tool, err)
	}
	return out
}

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

func TestA401GatesTheConnectionAndACheckClearsIt(t *testing.T) {
	w := newWorld(t)
	up := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}})
	w.entries["remote"] = map[string]any{"url": up.URL}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	out := r.call("remote", "echo", `{}`)
	if out.Outcome != projections.OutcomeFailed || out.Failure.Code != discovery.CodeAuthRequired || !out.Dispatched {
		t.Fatalf("outcome %+v %+v", out, out.Failure)
	}
	if v := r.server("remote"); v.State != projections.StateBlocked || v.Gate == nil || v.Reachability != projections.Reachable {
		t.Errorf("gated: %s %+v", v.State, v.Gate)
	}
	before := up.Count("tools/call")
	out = r.call("remote", "echo", `{}`)
	if out.Outcome != projections.OutcomeRefused || out.Failure.Code != discovery.CodeAuthRequired || out.Dispatched || len(out.Failure.ClearsOn) == 0 {
		t.Errorf("behind the gate: %+v %+v", out, out.Failure)
	}
	if up.Count("tools/call") != before {
		t.Error("a refused call reached the server")
	}
	r.discover("remote")
	if v := r.server("remote"); v.State != projections.StateReady {
		t.Errorf("after a successful check: %s: %s", v.State, v.Reason)
	}
}
