package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// listening connects a client that counts how often it hears that its list changed.
func listening(t *testing.T, w *world, path string) (*mcp.ClientSession, chan struct{}) {
	t.Helper()
	changed := make(chan struct{}, 1000)
	s := w.connect(legacy, path, func(o *mcp.ClientOptions) {
		o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
	})
	toolNames(t, s)
	return s, changed
}

func TestAGateTakesAServersToolsOffTheListAndLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	w.program("steady", mcptest.Fake{})
	w.remote("locked", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}}).URL)
	w.start()
	w.await("steady", projections.StateReady)
	w.await("locked", projections.StateReady)
	s, changed := listening(t, w, "")
	elsewhere, unchanged := listening(t, w, "?servers=steady")
	if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "locked__echo"}); err != nil {
		t.Fatal(err)
	}
	<-changed
	names := strings.Join(toolNames(t, s), " ")
	if strings.Contains(names, "locked__") || !strings.Contains(names, "steady__echo") {
		t.Errorf("offered behind the gate: %s", names)
	}
	// A round trip later the other client would have heard of it.
	toolNames(t, elsewhere)
	if n := len(unchanged); n != 0 {
		t.Errorf("a client whose list did not change was told so %d times", n)
	}
}

func TestAServerThatCriesWolfDisturbsNobody(t *testing.T) {
	w := newWorld(t)
	w.program("wolf", mcptest.Fake{})
	w.start()
	w.await("wolf", projections.StateReady)
	s, changed := listening(t, w, "")
	for range 100 {
		if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "wolf__change"}); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEvents("wolf", events.TypeDiscoverySucceeded, 2) // the list was read anew, and is the same
	toolNames(t, s)
	if n := len(changed); n != 0 {
		t.Errorf("the client was told %d times of a list that is the same", n)
	}
	if n := len(w.recorded("wolf", events.TypeDiscoveryStarted)); n > 4 {
		t.Errorf("the server was listed %d times", n)
	}
}

func TestTheToolsOfAPinnedServerComeBackWithTheEndOfThePin(t *testing.T) {
	w := newWorld(t)
	w.program("pinned", mcptest.Fake{})
	w.start()
	w.await("pinned", projections.StateReady)
	s, changed := listening(t, w, "")
	w.must(w.service.Pin(context.Background(), "pinned", time.Now().Add(time.Second), "maintenance", "someone"))
	late := time.NewTimer(patience)
	defer late.Stop()
	for !strings.Contains(strings.Join(toolNames(t, s), " "), "pinned__echo") {
		select {
		case <-changed:
		case <-late.C:
			t.Fatal("the client did not hear of the pin's end")
		}
	}
}
