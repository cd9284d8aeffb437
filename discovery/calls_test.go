package discovery_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
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

// overheard is a log that says when somebody begins to follow it.
type overheard struct {
	events.Log
	followed func()
}

func (o overheard) Follow(ctx context.Context, after events.Sequence) iter.Seq2[events.Event, error] {
	o.followed()
	return o.Log.Follow(ctx, after)
}

// awaited has the service begin its first attempt once a call waits for it. A client that
// is started together with the service calls that early.
func (w *world) awaited() *running {
	w.t.Helper()
	w.held = make(chan struct{})
	begin := sync.OnceFunc(func() { close(w.held) })
	w.t.Cleanup(begin)
	w.through = func(l events.Log) events.Log { return overheard{l, begin} }
	return w.start()
}

func TestACallWaitsForTheFirstAttemptThoughItHasNotBegun(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	if out := w.awaited().call("healthy", "echo", `{"text":"hello"}`); out.Outcome != projections.OutcomeSucceeded {
		t.Errorf("outcome %s: %+v", out.Outcome, out.Failure)
	}
}

// A server that hangs would hold whoever calls it for its time twice.
func TestACallThatWaitedForAnAttemptInVainMakesNoneOfItsOwn(t *testing.T) {
	const limit = 7 * time.Second
	w := newWorld(t)
	w.clock = newTestClock()
	launches := w.program("silent", mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
	w.entries["silent"]["mcpledger"] = map[string]any{"timeouts": map[string]any{"start": limit.String()}}
	r := w.awaited()
	called := r.background(discovery.Call{Server: "silent", Tool: "echo"})
	w.clock.awaitLimit(t, limit)
	eventually(t, "the program is started", func() bool { return mcptest.Launches(launches) > 0 })
	w.clock.advance(limit)
	out := <-called
	if out.Outcome != projections.OutcomeRefused || out.Dispatched || out.Failure.Code != discovery.CodeNotConnected ||
		out.Failure.Class != rules.ClassTimeout || !strings.HasPrefix(out.Failure.Detail, "did not answer the handshake within 7s") {
		t.Errorf("the call: %s", told(out))
	}
	wantLaunches(t, launches, 1, "the attempt that the call waited for")
	if got := r.recorded("silent", events.TypeToolCallRefused); len(got) != 1 {
		t.Errorf("recorded %d refusals, want 1", len(got))
	}
}
