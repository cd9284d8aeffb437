package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"mcpledger/discovery"
	"mcpledger/discovery/config"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/httpapi"
)

// served is a world whose discovery is the real one, with one server over HTTP that
// it has not attempted yet.
type served struct {
	*world
	service *discovery.Service
}

func newServed(t testing.TB, server *mcptest.Server) *served {
	t.Helper()
	s := &served{}
	s.world = newColdWorld(t, func(c *httpapi.Config) {
		file := filepath.Join(t.TempDir(), "mcp.json")
		entry := fmt.Sprintf(`{"mcpServers":{"far/away":{"type":"http","url":%q}}}`, server.URL)
		if err := os.WriteFile(file, []byte(entry), 0o600); err != nil {
			t.Fatal(err)
		}
		key := make([]byte, 32)
		s.service = discovery.New(discovery.Options{
			Log: c.Log, Engine: c.Engine, Source: instance, Version: "test", Now: c.Now, CallKey: key,
			Logger: slog.New(slog.DiscardHandler),
			Load: func() (*config.Config, error) {
				return config.Load(config.Options{Files: []string{file}, Key: key})
			},
		})
		c.Discovery, c.Ready = s.service, s.service.Started
	})
	return s
}

// run has the service work until the end of the test, and waits for its first run.
func (s *served) run(t testing.TB) {
	t.Helper()
	s.must(s.service.Start(t.Context(), os.Getpid()))
	ctx, stop := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.service.Run(ctx) }()
	t.Cleanup(func() {
		stop(errors.New("test over"))
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	for e, err := range s.log.Follow(t.Context(), 0) {
		s.must(err)
		if e.Type == events.TypeDiscoveryRunCompleted {
			return
		}
	}
}

func TestUntilTheConfigIsInForceReadsSaySo(t *testing.T) {
	s := newServed(t, mcptest.NewHTTP(t, mcptest.HTTP{}))
	s.must(s.engine.CatchUp(t.Context()))
	s.get("/api/tools").refused(http.StatusServiceUnavailable, "catching_up")
	a := s.get("/readyz").is(http.StatusServiceUnavailable)
	want(t, "reason", a.at("reason"), "the config is not in force yet")
	s.must(s.service.Start(t.Context(), os.Getpid()))
	want(t, "the first answer", s.get("/api/tools").is(http.StatusOK).at(0, "name"), "far/away")
	want(t, "ready", s.get("/readyz").is(http.StatusOK).at("ready"), true)
}

func TestCallsGoThroughTheServiceAndAreRecorded(t *testing.T) {
	server := mcptest.NewHTTP(t, mcptest.HTTP{})
	s := newServed(t, server)
	s.must(s.engine.CatchUp(t.Context()))
	s.run(t)
	const tools = "/api/servers/far%2Faway/tools/"

	a := s.ask(http.MethodPost, tools+"echo/call", `{"arguments":{"n":9007199254740993,"text":"sun \u0026 rain"}}`).is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "succeeded")
	var raw struct {
		Result struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	a.into(&raw)
	want(t, "what was said back", string(raw.Result.StructuredContent), `{"n":9007199254740993,"text":"sun \u0026 rain"}`)
	e := s.get("/api/events/" + a.at("event_id").(string)).is(http.StatusOK)
	want(t, "recorded", e.at("type"), "toolcall.succeeded")
	want(t, "of the call", e.at("call_id"), a.at("call_id").(string))
	want(t, "by", e.at("actor"), "local")

	a = s.ask(http.MethodPost, tools+"refuse/call", "").is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "failed")
	want(t, "code", a.at("failure", "code"), "remote_mcp_error")
	want(t, "JSON-RPC code", a.at("failure", "jsonrpc_code"), -32042.0)
	if !contains(a.body, `"jsonrpc_data":{"n":9007199254740993}`) {
		t.Errorf("the error's data was changed:\n%s", a.body)
	}

	a = s.ask(http.MethodPost, tools+"fail/call", "").is(http.StatusOK)
	want(t, "code", a.at("failure", "code"), "tool_error")
	want(t, "the result of a tool error", a.at("result", "isError"), true)

	sent := server.Count("tools/call")
	a = s.ask(http.MethodPost, tools+"nothing/call", "").is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "refused")
	want(t, "code", a.at("failure", "code"), "tool_not_found")
	want(t, "calls sent for it", server.Count("tools/call")-sent, 0)
	e = s.get("/api/events/" + a.at("event_id").(string)).is(http.StatusOK)
	want(t, "recorded", e.at("type"), "toolcall.refused")
	s.ask(http.MethodPost, "/api/servers/nobody/tools/echo/call", "").refused(http.StatusNotFound, "server_not_found")
}
