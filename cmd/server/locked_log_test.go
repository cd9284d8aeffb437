package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/events"
)

// gatedServer is an MCP server over HTTP whose one tool answers when it is let.
type gatedServer struct {
	calls atomic.Int64
	let   chan struct{}
}

func (g *gatedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var result string
	switch req.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"gated","version":"1"}}`, req.Params.ProtocolVersion)
	case "tools/list":
		result = `{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		g.calls.Add(1)
		select {
		case <-g.let:
		case <-r.Context().Done():
		}
		result = `{"content":[{"type":"text","text":"paid"}]}`
	default: // a notification
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

// lockLog keeps everybody else from writing to the log, as a full disk or another program
// does, until unlock is called.
func (s *mortalService) lockLog() (unlock func()) {
	s.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.data, "ledger.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		s.Fatal(err)
	}
	conn, err := db.Conn(s.Context())
	if err == nil {
		_, err = conn.ExecContext(s.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		s.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(s.Context()), "ROLLBACK"); err != nil {
			s.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// refusedCall is what is told of a call without an outcome, at the API or at the MCP
// endpoint.
type refusedCall struct {
	Status     int
	Code       string `json:"code"`
	CallID     string `json:"call_id"`
	Dispatched bool   `json:"dispatched"`
	told       string // all of it
}

// callBoth calls the tool at the API and at the MCP endpoint at the same time.
func (s *mortalService) callBoth() (api, endpoint <-chan refusedCall) {
	s.Helper()
	overREST, overMCP := make(chan refusedCall, 1), make(chan refusedCall, 1)
	go func() {
		said := refusedCall{}
		defer func() { overREST <- said }()
		res, err := http.Post(s.address+"/api/servers/gated/tools/pay/call", "application/json", strings.NewReader(`{}`))
		if err != nil {
			s.Error(err)
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		_ = json.Unmarshal(body, &said)
		said.Status, said.told = res.StatusCode, string(body)
	}()
	go func() {
		said := refusedCall{}
		defer func() { overMCP <- said }()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(s.Context(), &mcp.StreamableClientTransport{Endpoint: s.address + "/mcp", MaxRetries: -1}, nil)
		if err != nil {
			s.Error(err)
			return
		}
		defer session.Close()
		result, err := session.CallTool(s.Context(), &mcp.CallToolParams{Name: "gated__pay"})
		if err != nil {
			s.Error(err)
			return
		}
		failure, _ := json.Marshal(result.Meta["mcpledger/failure"])
		_ = json.Unmarshal(failure, &said)
		whole, _ := json.Marshal(result)
		said.told = string(whole)
	}()
	return overREST, overMCP
}

// ends returns how each call that was started ended, by its id.
func (s *mortalService) ends() map[string][]events.Type {
	s.Helper()
	var page struct {
		Items []struct {
			Type   events.Type `json:"type"`
			CallID string      `json:"call_id"`
		} `json:"items"`
	}
	if err := s.client().get(s.Context(), "/api/events?server=gated&limit=1000", nil, &page); err != nil {
		s.Fatal(err)
	}
	ends := map[string][]events.Type{}
	for _, e := range page.Items {
		switch e.Type {
		case events.TypeToolCallStarted:
			if _, known := ends[e.CallID]; !known {
				ends[e.CallID] = nil
			}
		case events.TypeToolCallSucceeded, events.TypeToolCallFailed, events.TypeToolCallAbandoned:
			ends[e.CallID] = append(ends[e.CallID], e.Type)
		}
	}
	return ends
}

// What cannot be recorded is not sent; what was sent and cannot be recorded is told apart
// from it, and nobody gets its answer. Both are seen from outside, on a log that another
// program has locked.
func TestCallsOnALogThatCannotBeWrittenSayWhetherTheyWereSent(t *testing.T) {
	gated := &gatedServer{let: make(chan struct{})}
	front := httptest.NewServer(gated)
	defer front.Close()
	s := newMortalService(t)
	if err := os.WriteFile(s.config, fmt.Appendf(nil, `{"mcpServers": {"gated": {"url": %q}}}`, front.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	waitFor(t, "the server is ready", func() bool {
		var v struct{ State string }
		return s.client().get(t.Context(), "/api/servers/gated", nil, &v) == nil && v.State == "ready"
	})

	unlock := s.lockLog()
	api, endpoint := s.callBoth()
	if said := <-api; said.Status != http.StatusServiceUnavailable || said.Code != "log_unavailable" || said.Dispatched {
		t.Errorf("a start that cannot be recorded, at the API: %+v", said)
	}
	if said := <-endpoint; said.Code != "log_unavailable" || said.Dispatched || !strings.Contains(said.told, "nothing was sent") {
		t.Errorf("a start that cannot be recorded, at the MCP endpoint: %+v", said)
	}
	if n := gated.calls.Load(); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	unlock()

	waitFor(t, "the log is written again", func() bool {
		var ready struct{ Writable bool }
		return s.client().get(t.Context(), "/readyz", nil, &ready) == nil && ready.Writable
	})
	api, endpoint = s.callBoth()
	waitFor(t, "both calls are under way", func() bool { return gated.calls.Load() == 2 })
	unlock = s.lockLog()
	close(gated.let)
	overREST, overMCP := <-api, <-endpoint
	unlock()
	if overREST.Status != http.StatusInternalServerError || overREST.Code != "outcome_unrecorded" {
		t.Errorf("an outcome that cannot be recorded, at the API: %+v", overREST)
	}
	if overMCP.Code != "outcome_unrecorded" || !strings.Contains(overMCP.told, "Do not repeat it") {
		t.Errorf("an outcome that cannot be recorded, at the MCP endpoint: %+v", overMCP)
	}
	for _, said := range []refusedCall{overREST, overMCP} {
		if !said.Dispatched || said.CallID == "" || strings.Contains(said.told, "paid") {
			t.Errorf("of a call that was sent: %+v", said)
		}
	}
	waitFor(t, "each call that was started has an end", func() bool {
		ends := s.ends()
		for _, end := range ends {
			if len(end) != 1 {
				return false
			}
		}
		return len(ends[overREST.CallID]) == 1 && len(ends[overMCP.CallID]) == 1
	})
	if n := gated.calls.Load(); n != 2 {
		t.Errorf("%d calls were sent, want the two", n)
	}
}
