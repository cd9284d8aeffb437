package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/httpapi/access"
	"mcpledger/httpapi/gateway"
)

// unasked is the gateway.Discovery of requests that come to nothing before it is asked.
type unasked struct{ gateway.Discovery }

func (unasked) Forget(string)                                             {}
func (unasked) OnNotice(func(events.ServerName, string, upstream.Notice)) {}

// Whether a client knows problems or JSON-RPC alone, it can tell what is wrong.
func TestARefusalAtTheEndpointOfMCPIsAProblemAndAnErrorOfJSONRPC(t *testing.T) {
	w := newWorld(t)
	g, err := gateway.New(gateway.Options{
		Log: w.log, Engine: w.engine, Discovery: unasked{}, Version: "test",
		Logger: slog.New(slog.DiscardHandler), Now: w.clock.Now,
	})
	w.must(err)
	w.api.Mount("/mcp", access.Call, nil, g.Serve)
	ctx, stop := context.WithCancelCause(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	t.Cleanup(func() { stop(errors.New("test over")); running.Wait() })
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	send := func(method, body string, how ...asking) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		r.Header.Set("Content-Type", "application/json")
		for _, h := range how {
			h(r)
		}
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		return rec
	}
	begun := send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`)
	session := header("Mcp-Session-Id", begun.Header().Get("Mcp-Session-Id"))
	want(t, "ping", send(http.MethodPost, ping, session).Code, http.StatusOK)
	for _, c := range []struct {
		story, method string
		how           []asking
		status        int
		code          string
	}{
		{"no session", http.MethodPost, nil, 400, "session_missing"},
		{"a session there is not", http.MethodPost, []asking{header("Mcp-Session-Id", "none")}, 404, "session_not_found"},
		{"its stream", http.MethodGet, []asking{header("Mcp-Session-Id", "none")}, 404, "session_not_found"},
		{"its end", http.MethodDelete, []asking{header("Mcp-Session-Id", "none")}, 404, "session_not_found"},
		{"a version there is not", http.MethodPost, []asking{session, header("MCP-Protocol-Version", "1999-01-01")}, 400, "unknown_protocol_version"},
		{"no JSON", http.MethodPost, []asking{header("Content-Type", "text/plain")}, 415, "unsupported_media_type"},
		{"a method there is not", http.MethodPut, nil, 405, "method_not_allowed"},
		{"no token from elsewhere", http.MethodPost, []asking{from(elsewhere)}, 401, "unauthenticated"},
	} {
		t.Run(c.story, func(t *testing.T) {
			rec := send(c.method, ping, c.how...)
			var said struct {
				Status  int
				Code    string
				Detail  string
				JSONRPC string
				ID      *int
				Error   *mcp.JSONRPCErrorDetails
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &said); err != nil {
				t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
			}
			want(t, "status", rec.Code, c.status)
			want(t, "status in the body", said.Status, c.status)
			want(t, "content type", rec.Header().Get("Content-Type"), "application/problem+json")
			want(t, "code", said.Code, c.code)
			if said.JSONRPC != "2.0" || said.ID != nil || said.Error == nil || said.Error.Message != said.Detail || said.Detail == "" {
				t.Errorf("no error of JSON-RPC: %s", rec.Body)
			}
		})
	}
}

func TestACommonClientOfMCPTellsWhyItIsRefused(t *testing.T) {
	w := newWorld(t)
	w.api.Mount("/mcp", access.Call, nil, func(http.ResponseWriter, *http.Request) error {
		return &gateway.Refusal{Status: http.StatusServiceUnavailable, Code: "busy", Detail: "too many sessions are open"}
	})
	front := httptest.NewServer(w.api)
	t.Cleanup(front.Close)
	c, err := client.NewStreamableHttpClient(front.URL + "/mcp")
	w.must(err)
	t.Cleanup(func() { _ = c.Close() })
	w.must(c.Start(t.Context()))
	_, err = c.Initialize(context.Background(), mcp.InitializeRequest{})
	if err == nil || !strings.Contains(err.Error(), "too many sessions are open") {
		t.Errorf("the client says %v", err)
	}
}
