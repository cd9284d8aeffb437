package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// failureOf returns what a result says of a call that came to nothing.
func failureOf(t *testing.T, r *mcp.CallToolResult) (text string, f map[string]any) {
	t.Helper()
	if !r.IsError {
		t.Fatalf("no error: %+v", r)
	}
	f, ok := r.Meta["mcpledger/failure"].(map[string]any)
	if !ok {
		t.Fatalf("_meta %v", r.Meta)
	}
	return textOf(r), f
}

func TestACallThatCannotBeMadeSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.program("dead", mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: "ModuleNotFoundError: No module named 'frobnicate'\n"})
	w.remote("locked", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}}).URL)
	w.entries["off"] = map[string]any{"command": "true", "disabled": true}
	w.entries["unset"] = map[string]any{"command": "true", "env": map[string]string{"KEY": "${NO_SUCH_VARIABLE}"}}
	w.program("one", mcptest.Fake{})
	w.entries["one"]["mcpledger"] = map[string]any{"tools": map[string]any{"deny": []string{"environ"}}}
	w.start()
	w.await("one", projections.StateReady)
	w.await("locked", projections.StateReady)
	w.await("dead", projections.StateFailed)
	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		for _, c := range []struct {
			story, tool, code, text string
		}{
			{"a 401", "locked__echo", "auth_required", "wants a login"},
			{"a disabled server", "off__anything", "disabled", "disabled in its config"},
			{"a variable that is not set", "unset__anything", "missing_credentials", "is not set"},
			{"a program that dies at start", "dead__echo", "", "Nothing was sent. Somebody has to install what it needs."},
			{"a tool that is no more", "one__gone", "tool_not_found", "no tool of that name any more"},
			{"a tool that the config leaves out", "one__environ", "tool_not_found", "no tool of that name any more"},
			{"a server that is not there", "nobody__echo", "tool_not_found", "No server of that name"},
			{"no name of ours", "whatever", "tool_not_found", "No server here has a tool of that name"},
			{"a process that ends in the middle", "one__exit", "process_exited", "exit code 7"},
		} {
			t.Run(c.story, func(t *testing.T) {
				r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: c.tool})
				if err != nil {
					t.Fatal(err)
				}
				text, f := failureOf(t, r)
				if c.code != "" && f["code"] != c.code || !strings.Contains(text, c.text) {
					t.Errorf("%q, %v", text, f)
				}
			})
		}
	})
}

// Who is told that a call may have been carried out looks for what it did.
func TestACallThatAServerRefusesIsNotSaidToBeCarriedOut(t *testing.T) {
	for _, status := range []int{401, 403} {
		w := newWorld(t)
		w.remote("locked", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: status}).URL)
		w.start()
		w.await("locked", projections.StateReady)
		r, err := w.connect(modern, "").CallTool(context.Background(), &mcp.CallToolParams{Name: "locked__echo"})
		if err != nil {
			t.Fatal(err)
		}
		text, f := failureOf(t, r)
		if f["dispatched"] != true || !strings.Contains(text, "The call was sent, and the server refused it.") || strings.Contains(text, "carried") {
			t.Errorf("status %d: %q, %v", status, text, f)
		}
	}
}

// The agent that is told that the next call starts the program anew calls again.
func TestAProgramThatCannotBeStartedIsNotSaidToComeBack(t *testing.T) {
	w := newWorld(t)
	w.program("dead", mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: "ModuleNotFoundError: No module named 'frobnicate'\n"})
	w.start()
	w.await("dead", projections.StateFailed)
	s := w.connect(modern, "")
	for range 2 { // the second is refused at once, unless it comes late
		r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "dead__echo"})
		if err != nil {
			t.Fatal(err)
		}
		text, f := failureOf(t, r)
		if f["code"] != "process_exited" && f["code"] != "not_connected" || f["needs"] != "dependency" || strings.Contains(text, "anew") {
			t.Errorf("%q, %v, want what it needs, and no word of a new start", text, f)
		}
	}
}

func TestAServersTroubleLeavesTheOthersTools(t *testing.T) {
	w := newWorld(t)
	w.program("steady", mcptest.Fake{})
	w.program("doomed", mcptest.Fake{Fault: mcptest.Silent, At: "tools/call"})
	w.program("many", mcptest.Fake{Tools: 5000, PageSize: 500})
	w.start()
	for _, name := range []events.ServerName{"steady", "doomed", "many"} {
		w.await(name, projections.StateReady)
	}
	s := w.connect(modern, "")
	before := toolNames(t, s)
	if want := 3*mcptest.StandingTools + 5000 + 5; len(before) != want {
		t.Errorf("%d tools, want %d", len(before), want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	hanging := make(chan struct{})
	go func() {
		defer close(hanging)
		_, _ = s.CallTool(ctx, &mcp.CallToolParams{Name: "doomed__echo"})
	}()
	w.awaitEvents("doomed", events.TypeToolCallStarted, 1)
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "steady__echo", Arguments: map[string]any{}})
	if err != nil || r.IsError {
		t.Errorf("beside a call that hangs: %v %+v", err, r)
	}
	r, err = s.CallTool(context.Background(), &mcp.CallToolParams{Name: "steady__big", Arguments: map[string]any{"bytes": 17 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	if text, f := failureOf(t, r); f["code"] != "response_too_large" || !strings.Contains(text, "carried the call out") {
		t.Errorf("an answer of 17 MiB: %q %v", text, f)
	}
	cancel()
	<-hanging
	if after := toolNames(t, s); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("the list was %d tools, is %d", len(before), len(after))
	}
}

func TestAServerThatWantsSamplingIsRefusedInWords(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	s := w.connect(legacy, "")
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__ask"})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(r); !strings.Contains(got, "passes on no sampling, elicitation or roots") {
		t.Errorf("the server was told %s", got)
	}
}

func TestAResultThatWantsInputEndsTheCallWithAReason(t *testing.T) {
	w := newWorld(t)
	s := &script{
		tools:   `[{"name":"pick","inputSchema":{"type":"object"}}]`,
		answers: map[string]string{"tools/call pick": `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`},
	}
	w.remote("asks", s.serve(t))
	w.start()
	w.await("asks", projections.StateReady)
	var r mcp.CallToolResult
	if err := json.Unmarshal(w.raw("").result("tools/call", `{"name":"asks__pick"}`), &r); err != nil {
		t.Fatal(err)
	}
	if text, f := failureOf(t, &r); f["code"] != "input_required" || !strings.Contains(text, "elicitation") {
		t.Errorf("%q %v", text, f)
	}
}

func TestApplicationErrorsAreNoHTTPErrors(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := &rawClient{world: w, header: http.Header{"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"tools/call"}}}
	for _, tool := range []string{"one__refuse", "one__fail", "one__gone", "nobody__echo"} {
		c.header.Set("Mcp-Name", tool)
		status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `",` + modernMeta + `}}`)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", tool, status, body)
		}
	}
}

func TestACallOfAnotherShapeIsNotSent(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := w.raw("")
	for _, params := range []string{`{"name":"one__echo","arguments":[1]}`, `{"name":"one__echo","arguments":"x"}`, `{"arguments":{}}`} {
		status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
		if status != http.StatusOK || !strings.Contains(string(body), `-32602`) {
			t.Errorf("%s: %d %s", params, status, body)
		}
	}
	if calls := w.recorded("one", events.TypeToolCallStarted); len(calls) != 0 {
		t.Errorf("%d calls recorded", len(calls))
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"hand","version":"1"}}`
