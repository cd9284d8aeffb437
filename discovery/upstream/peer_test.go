package upstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// envPeer makes the test binary a server by another library, over stdio.
const envPeer = "UPSTREAM_TEST_PEER"

// peerWithoutUpdates is its value for one that tells of no resource's updates.
const peerWithoutUpdates = "without updates"

// newPeer is a server by another library than ours, with a tool that adds another, and
// one that tells of an update of the resource it names.
func newPeer() *mcp.Server {
	return newPeerWith(&mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
}

func newPeerWith(options *mcp.ServerOptions) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, options)
	server.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	type touched struct {
		URI string `json:"uri"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, in touched) (*mcp.CallToolResult, any, error) {
		return nil, nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
	})
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(ctx context.Context, req *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "adding"})
		}
		return nil, map[string]int{"sum": in.A + in.B}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		server.AddTool(&mcp.Tool{Name: "more", InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		return nil, nil, nil
	})
	return server
}

func servePeer() {
	peer := newPeer()
	if os.Getenv(envPeer) == peerWithoutUpdates {
		peer = newPeerWith(nil)
	}
	if err := peer.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// peers are the ways to reach the other library's server.
func peers(t *testing.T) map[string]upstream.Target {
	t.Helper()
	stdio := target(mcptest.Fake{})
	stdio.Env = []string{envPeer + "=1"}
	serve := func(h http.Handler, kind events.Transport) upstream.Target {
		backend := httptest.NewServer(h)
		t.Cleanup(func() { backend.CloseClientConnections(); backend.Close() })
		target := remote(mcptest.NewHTTP(t, mcptest.HTTP{}))
		target.Transport, target.URL = kind, backend.URL
		return target
	}
	server := func() func(*http.Request) *mcp.Server {
		peer := newPeer()
		return func(*http.Request) *mcp.Server { return peer }
	}
	stateless := &mcp.StreamableHTTPOptions{Stateless: true}
	modern := func(t upstream.Target) upstream.Target { t.Era = upstream.EraModern; return t }
	return map[string]upstream.Target{
		"stdio":                      stdio,
		"stdio, 2026-07-28":          modern(stdio),
		"http":                       serve(mcp.NewStreamableHTTPHandler(server(), nil), events.TransportHTTP),
		"http, no longer 2026-07-28": modern(serve(mcp.NewStreamableHTTPHandler(server(), nil), events.TransportHTTP)),
		"http, 2026-07-28":           modern(serve(mcp.NewStreamableHTTPHandler(server(), stateless), events.TransportHTTP)),
		"sse":                        serve(mcp.NewSSEHandler(server(), nil), events.TransportSSE),
	}
}

func TestAServerByAnotherLibraryIsUnderstood(t *testing.T) {
	for name, peer := range peers(t) {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{}, 1)
			peer.OnToolsChanged = func() {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			s := open(t, peer)
			if modern := strings.HasSuffix(name, ", 2026-07-28"); modern != (s.Info().Era == upstream.EraModern) {
				t.Errorf("speaks %s", s.Info().ProtocolVersion)
			}
			catalogue, err := s.ListTools(t.Context())
			if err != nil || catalogue.Len() != 3 {
				t.Fatalf("tools %v, %v", catalogue.Names(), err)
			}
			var reported []upstream.Progress
			result, err := s.CallTool(t.Context(), "add", json.RawMessage(`{"a":2,"b":3}`), upstream.CallOptions{
				Progress: func(p upstream.Progress) { reported = append(reported, p) },
			})
			if err != nil {
				t.Fatalf("%v: %+v", err, evidenceOf(t, err))
			}
			var got struct {
				StructuredContent struct{ Sum int }
			}
			if err := json.Unmarshal(result, &got); err != nil || got.StructuredContent.Sum != 5 {
				t.Errorf("result %s, %v", result, err)
			}
			if len(reported) != 1 || reported[0] != (upstream.Progress{Progress: 1, Total: 2, Message: "adding"}) {
				t.Errorf("progress %v", reported)
			}
			if _, err := s.CallTool(t.Context(), "no-such-tool", nil, upstream.CallOptions{}); evidenceOf(t, err).JSONRPCCode == nil {
				t.Errorf("an unknown tool gives %+v", evidenceOf(t, err))
			}
			// A server may announce what it began with, and the stream for notices may open
			// late; so the tools grow until it is heard.
			eventually(t, "the change of tools is announced", func() bool {
				if _, err := s.CallTool(t.Context(), "grow", nil, upstream.CallOptions{}); err != nil {
					t.Fatal(err)
				}
				select {
				case <-changed:
					return true
				case <-time.After(100 * time.Millisecond):
					return false
				}
			})
		})
	}
}
