package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestEndingASubscriptionOpensNoSession(t *testing.T) {
	w := newWorld(t)
	launches := w.program("browser", mcptest.Fake{})
	w.entries["browser"]["mcpledger"] = map[string]any{"session": "per_client"}
	r := w.start()
	r.awaitState("browser", projections.StateReady)
	if out, err := r.Call(context.Background(), discovery.Call{Server: "browser", Tool: "echo", Client: "anna"}); err != nil || out.Failure != nil {
		t.Fatal(err, told(out))
	}
	r.Forget("anna")
	said, err := r.Ask(context.Background(), discovery.Question{
		Server: "browser", Method: "resources/unsubscribe", Params: json.RawMessage(`{"uri":"file:///a"}`), Client: "anna",
	})
	if err != nil || said.Failure != nil || string(said.Result) != `{}` {
		t.Errorf("%v, %+v", err, said)
	}
	wantLaunches(t, launches, 2, "one for discovery, one for the client that has gone")
}

func TestAnAttemptThatCannotBeRecordedIsNoneThatWasMade(t *testing.T) {
	w := newWorld(t)
	launches := w.program("broken", dead)
	disk := &fullDisk{}
	w.through = func(log events.Log) events.Log { disk.Log = log; return disk }
	r := w.start()
	r.awaitOutcome("broken")

	disk.refuse(events.TypeDiscoveryRunStarted)
	if refused, err := r.Retry(context.Background(), "broken"); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("without a log: refused %+v, %v", refused, err)
	}
	disk.refuse("")
	if refused, err := r.Retry(context.Background(), "broken"); err != nil || refused != nil {
		t.Errorf("in the same minute: refused %+v, %v", refused, err)
	}
	wantLaunches(t, launches, 2, "one at the start, one for the agent")
	r.stop()
	if refused, err := r.Retry(context.Background(), "broken"); !errors.Is(err, discovery.ErrStopping) {
		t.Errorf("after the end: refused %+v, %v", refused, err)
	}
}
