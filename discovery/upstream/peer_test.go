package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// envPeer makes the test binary a server by the library it names, over stdio.
const envPeer = "UPSTREAM_TEST_PEER"

// peerWithoutUpdates is its value for one that tells of no resource's updates.
const peerWithoutUpdates = "without updates"

// libraries make the server of the story below, each with an MCP library that others
// use: that of the specification's authors, and the one whose client we build on.
var libraries = map[string]func() peer{"go-sdk": newSDKPeer, "mcp-go": newMCPGoPeer}

// peer is a server by a library, in the ways in which it is reached. It has the tools
//
//	add      returns the sum of the integers a and b as structuredContent {"sum":N}
//	fail     returns a result with isError
//	hold     reports progress 1 of 2 "holding", and returns once release was called
//	release  has hold return
//	grow     adds the tool "more", of which clients are told
type peer struct {
	stdio  func() error
	legacy http.Handler // streamable HTTP, up to 2025-11-25
	modern http.Handler // streamable HTTP, 2026-07-28
	sse    http.Handler
}

func servePeer() {
	serve := func() error { return newSDKServer(nil).Run(context.Background(), &mcp.StdioTransport{}) }
	if name := os.Getenv(envPeer); name != peerWithoutUpdates {
		serve = libraries[name]().stdio
	}
	if serve() != nil {
		os.Exit(1)
	}
}

// peers are the ways to reach a library's server, each known to speak the era that the
// server speaks, or spoke before.
func peers(t *testing.T, library string) map[string]upstream.Target {
	t.Helper()
	stdio := target(mcptest.Fake{})
	stdio.Env = []string{envPeer + "=" + library}
	modern := func(t upstream.Target) upstream.Target { t.Era = upstream.EraModern; return t }
	serve := func(h http.Handler, kind events.Transport, path string) upstream.Target {
		backend := httptest.NewServer(h)
		t.Cleanup(func() { backend.CloseClientConnections(); backend.Close() })
		target := remote(mcptest.NewHTTP(t, mcptest.HTTP{}))
		target.Transport, target.URL = kind, backend.URL+path
		return target
	}
	server := libraries[library]
	return map[string]upstream.Target{
		"stdio":                      stdio,
		"stdio, 2026-07-28":          modern(stdio),
		"http":                       serve(server().legacy, events.TransportHTTP, "/mcp"),
		"http, no longer 2026-07-28": modern(serve(server().legacy, events.TransportHTTP, "/mcp")),
		"http, 2026-07-28":           modern(serve(server().modern, events.TransportHTTP, "/mcp")),
		"sse":                        serve(server().sse, events.TransportSSE, "/sse"),
	}
}

func TestAServerByAnotherLibraryIsUnderstood(t *testing.T) {
	for library := range libraries {
		for name, peer := range peers(t, library) {
			t.Run(library+" over "+name, func(t *testing.T) { understand(t, peer, strings.HasSuffix(name, ", 2026-07-28")) })
		}
	}
}

// understand has a peer do all it can; modern says which era it is to be reached by.
func understand(t *testing.T, peer upstream.Target, modern bool) {
	changed := make(chan struct{}, 1)
	peer.OnToolsChanged = func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	s := open(t, peer)
	if modern != (s.Info().Era == upstream.EraModern) {
		t.Errorf("speaks %s", s.Info().ProtocolVersion)
	}
	catalogue, err := s.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"add", "fail", "grow", "hold", "release"} {
		if !slices.Contains(catalogue.Names(), tool) {
			t.Errorf("of its tools %v, %s is not listed", catalogue.Names(), tool)
		}
	}
	result, err := s.CallTool(t.Context(), "add", json.RawMessage(`{"a":2,"b":3}`), upstream.CallOptions{})
	if err != nil {
		t.Fatalf("%v: %+v", err, evidenceOf(t, err))
	}
	var got struct {
		StructuredContent struct{ Sum int }
	}
	if err := json.Unmarshal(result, &got); err != nil || got.StructuredContent.Sum != 5 {
		t.Errorf("result %s, %v", result, err)
	}
	var reported []upstream.Progress
	_, err = s.CallTool(t.Context(), "hold", nil, upstream.CallOptions{Total: 10 * time.Second, Progress: func(p upstream.Progress) {
		reported = append(reported, p)
		if _, err := s.CallTool(t.Context(), "release", nil, upstream.CallOptions{}); err != nil {
			t.Errorf("a call beside another: %v", err)
		}
	}})
	if err != nil || len(reported) != 1 || reported[0] != (upstream.Progress{Progress: 1, Total: 2, Message: "holding"}) {
		t.Errorf("progress %v, %v", reported, err)
	}
	if _, err := s.CallTool(t.Context(), "no-such-tool", nil, upstream.CallOptions{}); evidenceOf(t, err).JSONRPCCode == nil {
		t.Errorf("an unknown tool gives %+v", evidenceOf(t, err))
	}
	failed, err := s.CallTool(t.Context(), "fail", nil, upstream.CallOptions{})
	if ev := evidenceOf(t, err); ev.ErrorKind != events.KindToolError || !bytes.Contains(failed, []byte("no such city")) {
		t.Errorf("a result with isError is %s, %s", ev.ErrorKind, failed)
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
	peer.Era = s.Info().Era
	again := open(t, peer)
	if got, want := again.Info().ProtocolVersion, s.Info().ProtocolVersion; got != want {
		t.Errorf("known by its era it speaks %s, before %s", got, want)
	}
	if _, err := again.CallTool(t.Context(), "add", json.RawMessage(`{"a":2,"b":3}`), upstream.CallOptions{}); err != nil {
		t.Errorf("known by its era it does not add: %v", err)
	}
}
