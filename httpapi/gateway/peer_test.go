package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// inBothEras runs a story with a client of each era against one world.
func inBothEras(t *testing.T, w *world, story func(*testing.T, era)) {
	for _, e := range eras {
		t.Run(string(e), func(t *testing.T) {
			w.T = t
			story(t, e)
		})
	}
}

func toolNames(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	list, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func textOf(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func TestAnotherLibrarysClientUsesTheToolsOfAllServers(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.program("two", mcptest.Fake{Era: mcptest.Modern})
	w.remote("far", mcptest.NewHTTP(t, mcptest.HTTP{Events: true}).URL)
	w.start()
	for _, name := range []events.ServerName{"one", "two", "far"} {
		w.await(name, projections.StateReady)
	}
	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		names := strings.Join(toolNames(t, s), " ")
		for _, want := range []string{"one__echo", "two__echo", "far__echo", "ledger__why"} {
			if !strings.Contains(names, want) {
				t.Errorf("%s is not among %s", want, names)
			}
		}
		for _, server := range []string{"one", "two", "far"} {
			r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: server + "__echo", Arguments: map[string]any{"text": "hello"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(r); r.IsError || got != `{"text":"hello"}` {
				t.Errorf("%s: %q, error %v", server, got, r.IsError)
			}
		}
	})
}

func TestAServersOwnErrorsComeThrough(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__fail"})
		if err != nil || !r.IsError || textOf(r) != "no such city" {
			t.Errorf("isError: %v %+v", err, r)
		}
		_, err = s.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__refuse"})
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || rpc.Code != -32042 || rpc.Message != "refused" || !strings.Contains(string(rpc.Data), `"n":9007199254740993`) {
			t.Errorf("JSON-RPC error: %v %+v", err, rpc)
		}
	})
}

func TestProgressReachesTheCaller(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		heard := make(chan *mcp.ProgressNotificationParams, 8)
		s := w.connect(e, "", func(o *mcp.ClientOptions) {
			o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params }
		})
		p := &mcp.CallToolParams{Name: "one__steps"}
		p.SetProgressToken("mine")
		if _, err := s.CallTool(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			got := <-heard
			if got.ProgressToken != "mine" || got.Progress != float64(i+1) || got.Total != 3 || !strings.HasPrefix(got.Message, "step") {
				t.Errorf("progress %d: %+v", i+1, got)
			}
		}
	})
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		before := len(w.recorded("one", events.TypeToolCallFailed))
		s := w.connect(e, "")
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "one__wait"})
			over <- err
		}()
		w.awaitEvents("one", events.TypeToolCallStarted, before+1)
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller got %v", err)
		}
		w.awaitEvents("one", events.TypeToolCallFailed, before+1)
		failed := w.recorded("one", events.TypeToolCallFailed)
		if got := failed[len(failed)-1].Data.(events.ToolCallFailed).Evidence.ErrorKind; got != events.KindCancelled {
			t.Errorf("recorded as %s", got)
		}
	})
}

func TestClientsHearThatTheListChanged(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		changed := make(chan struct{}, 16)
		s := w.connect(e, "", func(o *mcp.ClientOptions) {
			o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
		})
		toolNames(t, s)
		name := "more-" + string(e)
		w.program(name, mcptest.Fake{})
		w.reload()
		select {
		case <-changed:
		case <-t.Context().Done():
		}
		w.await(events.ServerName(name), projections.StateReady)
		if names := strings.Join(toolNames(t, s), " "); !strings.Contains(names, name+"__echo") {
			t.Errorf("the new list: %s", names)
		}
	})
}

func TestTheCallersNameIsOnRecord(t *testing.T) {
	w := newWorld(t)
	w.options.Caller = func(r *http.Request) string { return "local" }
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__echo", Arguments: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		started := w.recorded("one", events.TypeToolCallStarted)
		last := started[len(started)-1]
		if got := last.Data.(events.ToolCallStarted).Caller; got != "local/peer" || last.Actor != "local/peer" {
			t.Errorf("caller %q, actor %q", got, last.Actor)
		}
	})
}
