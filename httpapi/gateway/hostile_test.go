package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestAServerThatChangesItsToolsIsFollowed(t *testing.T) {
	w := newWorld(t)
	p, url := newPress(t, false)
	w.remote("press", url)
	w.start()
	w.await("press", projections.StateReady)
	s, changed := listening(t, w, "")
	if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "press__nothing", Arguments: map[string]any{}}); err != nil {
		t.Fatal(err) // it opens the session on which the server tells of changes
	}
	p.replaceTool("nothing", "something")
	<-changed
	if names := strings.Join(toolNames(t, s), " "); strings.Contains(names, "press__nothing") || !strings.Contains(names, "press__something") {
		t.Errorf("after the change: %s", names)
	}
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "press__nothing", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if text, f := failureOf(t, r); f["code"] != "tool_not_found" || !strings.Contains(text, "list the tools anew") {
		t.Errorf("a call of the tool that is no more: %q %v", text, f)
	}
	r, err = s.CallTool(context.Background(), &mcp.CallToolParams{Name: "press__something", Arguments: map[string]any{}})
	if err != nil || r.IsError {
		t.Errorf("a call of the new tool: %v %+v", err, r)
	}
}

func TestAFloodOfUpdatesDrownsNobody(t *testing.T) {
	w := newWorld(t)
	p, url := newPress(t, false)
	w.remote("press", url)
	w.program("steady", mcptest.Fake{})
	w.start()
	w.await("press", projections.StateReady)
	w.await("steady", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		reader, told := w.reader(e, "")
		subscribe(t, reader, "mcpledger://press/file:///a")
		subscribe(t, reader, "mcpledger://press/file:///b")
		until(t, told, func() { p.update("file:///a") })
		flood := make(chan struct{})
		go func() {
			defer close(flood)
			for range 5000 {
				p.update("file:///a")
			}
		}()
		for range 20 {
			r, err := reader.CallTool(context.Background(), &mcp.CallToolParams{Name: "steady__echo", Arguments: map[string]any{}})
			if err != nil || r.IsError {
				t.Fatalf("a call beside the flood: %v %+v", err, r)
			}
			for len(told) > 0 {
				<-told
			}
		}
		<-flood
		eventually(t, "what comes after the flood is told", func() bool {
			p.update("file:///b")
			for len(told) > 0 {
				if <-told == "mcpledger://press/file:///b" {
					return true
				}
			}
			return false
		})
		w.must(reader.Close())
	})
}

func TestAServerThatDiesLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	w.program("steady", mcptest.Fake{})
	w.program("mortal", mcptest.Fake{})
	w.start()
	w.await("steady", projections.StateReady)
	w.await("mortal", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		died := len(w.recorded("mortal", events.TypeToolCallFailed))
		s := w.connect(e, "")
		before := strings.Join(toolNames(t, s), " ")
		r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "mortal__exit"})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := failureOf(t, r); !strings.Contains(text, "exit code 7") {
			t.Errorf("the call in which it died: %s", text)
		}
		w.awaitEvents("mortal", events.TypeToolCallFailed, died+1)
		for _, server := range []string{"steady", "mortal"} {
			r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: server + "__echo", Arguments: map[string]any{}})
			if err != nil || r.IsError && server == "steady" {
				t.Errorf("%s after the death: %v %+v", server, err, r)
			}
		}
		if after := strings.Join(toolNames(t, s), " "); after != before {
			t.Errorf("the tools were %s, are %s", before, after)
		}
	})
}

func TestAStormOfChangedListsIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.options.ChangeInterval = time.Hour
	storm := &script{
		tools: `[{"name":"talk","inputSchema":{"type":"object"}}]`, capabilities: `{"tools":{},"resources":{"listChanged":true},"prompts":{"listChanged":true}}`,
		answers: map[string]string{"tools/call talk": `{"content":[]}`, "resources/list": `{"resources":[{"uri":"x:a","name":"a"}]}`},
		notices: map[string][]string{},
	}
	for range 1000 {
		storm.notices["tools/call talk"] = append(storm.notices["tools/call talk"],
			`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	}
	w.remote("storm", storm.serve(t))
	w.program("steady", mcptest.Fake{})
	w.start()
	w.await("storm", projections.StateReady)
	w.await("steady", projections.StateReady)
	c := w.raw("")
	stream, _ := c.streamOf("")
	for i := range 20 {
		c.result("tools/call", `{"name":"storm__talk"}`)
		c.result("tools/call", `{"name":"steady__echo","arguments":{}}`)
		c.result("resources/list", `{}`)
		if i == 0 {
			hears(t, stream, "resources/list_changed", "prompts/list_changed")
		}
	}
	// The next thing that is told is not of the storm.
	w.gateway.Missed(c.session)
	if heard := hears(t, stream, "tools/list_changed"); len(heard) != 1 {
		t.Errorf("after the first word of the storm: %q", heard)
	}
}

func TestAListWithoutEndIsNotOfferedAndTheOthersAre(t *testing.T) {
	w := newWorld(t)
	w.program("steady", mcptest.Fake{})
	var asked atomic.Int64
	for name, cursor := range map[string]func(page int64) string{
		"fresh": func(page int64) string { return fmt.Sprintf(`"%d"`, page) },
		"same":  func(int64) string { return `"again"` },
	} {
		rest := &script{tools: `[]`, capabilities: `{"tools":{},"resources":{}}`}
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var req struct {
				ID     json.RawMessage
				Method string
			}
			if _ = json.Unmarshal(body, &req); req.Method != "resources/list" {
				r.Body = io.NopCloser(bytes.NewReader(body))
				rest.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"resources":[{"uri":"x:a","name":"a"}],"nextCursor":%s}}`, req.ID, cursor(asked.Add(1)))
		}))
		t.Cleanup(front.Close)
		w.remote(name, front.URL)
	}
	w.remote("short", (&script{
		tools: `[]`, capabilities: `{"tools":{},"resources":{}}`, answers: map[string]string{"resources/list": `{"resources":[{"uri":"x:b","name":"b"}]}`},
	}).serve(t))
	w.start()
	for _, name := range []events.ServerName{"fresh", "same", "short"} {
		w.await(name, projections.StateReady)
	}
	c := w.raw("")
	for range 3 {
		if listed := string(c.result("resources/list", `{}`)); !strings.Contains(listed, "mcpledger://short/x:b") || strings.Contains(listed, "x:a") {
			t.Errorf("listed %s", listed)
		}
	}
	if n := asked.Load(); n > 70 {
		t.Errorf("the servers were asked for %d pages", n)
	}
}
