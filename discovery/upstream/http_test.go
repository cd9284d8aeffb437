package upstream_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestAnHTTPServerThatFailsLeavesEvidence(t *testing.T) {
	const half = `{"jsonrpc":"2.0","id":2,"result":{"tools":[`
	tests := []struct {
		name   string
		server mcptest.HTTP
		set    func(*testing.T, *upstream.Target)
		want   events.Evidence
		// bodyFrom compares only that the excerpt begins so.
		bodyFrom string
		// until is the method at whose arrival the limits end; empty: they take their time.
		until string
	}{
		{
			name: "401 at the handshake",
			server: mcptest.HTTP{Mishap: mcptest.Status, At: "initialize", Status: 401, Body: `{"error":"invalid_token","key":"` + secret + `"}`, Header: map[string]string{
				"WWW-Authenticate": `Bearer resource_metadata="https://example.com/x", error="invalid_token"`, "Content-Type": "application/json",
			}},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 401 Unauthorized", ErrorKind: events.KindHTTPStatus, HTTPStatus: 401,
				WWWAuthenticate: `Bearer resource_metadata="https://example.com/x", error="invalid_token"`, ContentType: "application/json",
				BodyExcerpt: `{"error":"invalid_token","key":"«API_KEY»"}`,
			},
		},
		{
			name:   "403 at the initialized notification",
			server: mcptest.HTTP{Mishap: mcptest.Status, At: "notifications/initialized", Status: 403, Body: "insufficient scope"},
			want: events.Evidence{
				Phase: events.PhaseInitialized, Error: "HTTP status 403 Forbidden", ErrorKind: events.KindHTTPStatus, HTTPStatus: 403,
				ContentType: "text/plain; charset=utf-8", BodyExcerpt: "insufficient scope", SessionSent: true, ProtocolVersion: "2025-11-25",
			},
		},
		{
			name:   "404 for a wrong address",
			server: mcptest.HTTP{Mishap: mcptest.Status, Status: 404, Body: "nothing here"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 404 Not Found", ErrorKind: events.KindHTTPStatus, HTTPStatus: 404,
				ContentType: "text/plain; charset=utf-8", BodyExcerpt: "nothing here",
			},
		},
		{
			name:   "405 from a server of the old transport",
			server: mcptest.HTTP{Mishap: mcptest.Status, Status: 405},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 405 Method Not Allowed", ErrorKind: events.KindHTTPStatus, HTTPStatus: 405,
			},
		},
		{
			name: "429 with a time to wait",
			server: mcptest.HTTP{Mishap: mcptest.Status, At: "tools/list", Status: 429, Body: `{"message":"slow down"}`, Header: map[string]string{
				"Retry-After": "7", "Content-Type": "application/json",
			}},
			want: events.Evidence{
				Phase: events.PhaseListTools, Error: "HTTP status 429 Too Many Requests", ErrorKind: events.KindHTTPStatus, HTTPStatus: 429,
				RetryAfterMS: 7000, ContentType: "application/json", BodyExcerpt: `{"message":"slow down"}`, SessionSent: true, ProtocolVersion: "2025-11-25",
			},
		},
		{
			name: "500 with a JSON-RPC error",
			server: mcptest.HTTP{Mishap: mcptest.Status, At: "tools/list", Status: 500, Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"kaboom","data":{"n":1}}}`,
				Header: map[string]string{"Content-Type": "application/json"}},
			want: events.Evidence{
				Phase: events.PhaseListTools, Error: "HTTP status 500 Internal Server Error", ErrorKind: events.KindHTTPStatus, HTTPStatus: 500,
				ContentType: "application/json", BodyExcerpt: `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"kaboom","data":{"n":1}}}`,
				JSONRPCCode: ptr(-32603), JSONRPCMessage: "kaboom", JSONRPCData: `{"n":1}`, SessionSent: true, ProtocolVersion: "2025-11-25",
			},
		},
		{
			name: "503 as a page",
			server: mcptest.HTTP{Mishap: mcptest.Status, Status: 503, Body: "<html><title>Down</title></html>",
				Header: map[string]string{"Content-Type": "text/html"}},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 503 Service Unavailable", ErrorKind: events.KindHTTPStatus, HTTPStatus: 503,
				ContentType: "text/html", BodyExcerpt: "<html><title>Down</title></html>",
			},
		},
		{
			name: "a page instead of an answer",
			server: mcptest.HTTP{Mishap: mcptest.Status, Status: 200, Body: "<html><title>Sign in</title></html>",
				Header: map[string]string{"Content-Type": "text/html"}},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "unexpected content type: text/html", ErrorKind: events.KindMalformed, HTTPStatus: 200,
				ContentType: "text/html", BodyExcerpt: "<html><title>Sign in</title></html>",
			},
		},
		{
			name:   "a redirect, which is not followed",
			server: mcptest.HTTP{Mishap: mcptest.Status, Status: 302, Header: map[string]string{"Location": "https://user:pass@login.example.com/start?state=1#here"}},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 302 Found", ErrorKind: events.KindRedirect, HTTPStatus: 302,
				Location: "https://login.example.com/start",
			},
		},
		{
			name:   "silence before the headers",
			server: mcptest.HTTP{Mishap: mcptest.HangHeaders, At: "initialize"},
			set:    func(_ *testing.T, target *upstream.Target) { target.Budget.Total = 200 * time.Millisecond },
			until:  "initialize",
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "did not answer the handshake within 200ms", ErrorKind: events.KindTimeoutHeaders, LimitMS: 200,
			},
		},
		{
			name:   "silence in the body",
			server: mcptest.HTTP{Mishap: mcptest.HangBody, At: "tools/list"},
			set:    func(_ *testing.T, target *upstream.Target) { target.Budget.List = 3 * time.Second },
			want: events.Evidence{
				Phase: events.PhaseListTools, Error: "did not list its tools within 3s", ErrorKind: events.KindTimeoutBody, LimitMS: 3000, HTTPStatus: 200,
				ContentType: "application/json", SessionSent: true, ProtocolVersion: "2025-11-25",
			},
			bodyFrom: half,
		},
		{
			name:   "a body that is cut",
			server: mcptest.HTTP{Mishap: mcptest.CutBody, At: "tools/list"},
			want: events.Evidence{
				Phase: events.PhaseListTools, Error: "failed to decode response: unexpected EOF", ErrorKind: events.KindEOF, HTTPStatus: 200,
				ContentType: "application/json", SessionSent: true, ProtocolVersion: "2025-11-25",
			},
			bodyFrom: half,
		},
		{
			name:   "a connection that is reset",
			server: mcptest.HTTP{Mishap: mcptest.Reset, At: "tools/list"},
			want: events.Evidence{
				Phase: events.PhaseListTools, ErrorKind: events.KindReset, SessionSent: true, ProtocolVersion: "2025-11-25",
			},
		},
		{
			name:   "a body without end",
			server: mcptest.HTTP{Mishap: mcptest.HugeBody, At: "tools/list", Bytes: 1 << 20},
			set:    func(_ *testing.T, target *upstream.Target) { target.MaxMessageBytes = 100_000 },
			want: events.Evidence{
				Phase: events.PhaseListTools, Error: "failed to decode response: message exceeds the limit", ErrorKind: events.KindOversized, HTTPStatus: 200,
				ContentType: "application/json", SessionSent: true, ProtocolVersion: "2025-11-25",
			},
			bodyFrom: `{"jsonrpc":"2.0","id":1,"result":"xxx`,
		},
		{
			name:   "no JSON",
			server: mcptest.HTTP{Mishap: mcptest.Garbled, At: "initialize", Body: `{"jsonrpc":`},
			want: events.Evidence{
				Phase: events.PhaseHandshake, ErrorKind: events.KindMalformed, Error: "failed to decode response: unexpected EOF", HTTPStatus: 200,
				ContentType: "application/json", BodyExcerpt: `{"jsonrpc":`,
			},
		},
		{
			name:   "JSON that is no reply",
			server: mcptest.HTTP{Mishap: mcptest.Garbled, At: "initialize", Body: `[1,2]`},
			want: events.Evidence{
				Phase: events.PhaseHandshake, ErrorKind: events.KindMalformed, HTTPStatus: 200,
				ContentType: "application/json", BodyExcerpt: `[1,2]`,
				Error: "failed to decode response: json: cannot unmarshal array into Go value of type transport.JSONRPCResponse",
			},
		},
		{
			name:   "nothing",
			server: mcptest.HTTP{Mishap: mcptest.Empty, At: "initialize"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, ErrorKind: events.KindEOF, Error: "failed to decode response: EOF", HTTPStatus: 200,
				ContentType: "application/json",
			},
		},
		{
			name:   "the answer to another request",
			server: mcptest.HTTP{Mishap: mcptest.Misnumbered, At: "tools/list"},
			want: events.Evidence{
				Phase: events.PhaseListTools, ErrorKind: events.KindMalformed, Error: "the reply has another id than the request", HTTPStatus: 200,
				ContentType: "application/json", SessionSent: true, ProtocolVersion: "2025-11-25",
			},
			bodyFrom: `{"jsonrpc":"2.0","id":424242,`,
		},
		{
			name:   "events without an answer",
			server: mcptest.HTTP{Mishap: mcptest.Empty, At: "initialize", Events: true},
			want: events.Evidence{
				Phase: events.PhaseHandshake, ErrorKind: events.KindEOF, Error: "unexpected nil response", HTTPStatus: 200,
				ContentType: "text/event-stream", BodyExcerpt: "data:",
			},
		},
		{
			name:   "events that are no JSON",
			server: mcptest.HTTP{Mishap: mcptest.Garbled, At: "initialize", Events: true, Body: "oops"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, ErrorKind: events.KindMalformed, Error: "unexpected nil response", HTTPStatus: 200,
				ContentType: "text/event-stream", BodyExcerpt: "data: oops",
			},
		},
		{
			name:   "a header is missing",
			server: mcptest.HTTP{Require: map[string]string{"Authorization": "Bearer right"}},
			set: func(_ *testing.T, target *upstream.Target) {
				target.Headers = map[string]string{"Authorization": "Bearer wrong-one-1234"}
			},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "HTTP status 401 Unauthorized", ErrorKind: events.KindHTTPStatus, HTTPStatus: 401,
				WWWAuthenticate: `Bearer realm="fake"`, ContentType: "text/plain; charset=utf-8", BodyExcerpt: "unauthorized",
			},
		},
		{
			name: "nobody listens",
			set:  func(t *testing.T, target *upstream.Target) { target.URL = "http://" + mcptest.FreeAddress(t) + "/mcp" },
			want: events.Evidence{Phase: events.PhaseConnect, ErrorKind: events.KindRefused},
		},
		{
			name: "no such host",
			set:  func(t *testing.T, target *upstream.Target) { target.URL = "http://no-such-host.invalid/mcp" },
			want: events.Evidence{Phase: events.PhaseConnect, ErrorKind: events.KindDNS},
		},
		{
			name: "https where http is spoken",
			set: func(t *testing.T, target *upstream.Target) {
				target.URL = strings.Replace(target.URL, "http:", "https:", 1)
			},
			want: events.Evidence{Phase: events.PhaseConnect, ErrorKind: events.KindTLS},
		},
		{
			name: "a certificate nobody vouches for",
			set: func(t *testing.T, target *upstream.Target) {
				server := httptest.NewUnstartedServer(http.NotFoundHandler())
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.StartTLS()
				t.Cleanup(server.Close)
				target.URL = server.URL
			},
			want: events.Evidence{Phase: events.PhaseConnect, ErrorKind: events.KindTLS},
		},
		{
			name: "an address that accepts and says no more",
			set: func(t *testing.T, target *upstream.Target) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				target.URL = "https://" + l.Addr().String()
				target.Budget.Total = 200 * time.Millisecond
			},
			want: events.Evidence{
				Phase: events.PhaseConnect, Error: "did not answer the handshake within 200ms", ErrorKind: events.KindTimeoutConnect, LimitMS: 200,
			},
		},
		{
			name: "no address at all",
			set:  func(t *testing.T, target *upstream.Target) { target.URL = "weather" },
			want: events.Evidence{Phase: events.PhaseConnect, Error: "url: not an http or https address"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			server := mcptest.NewHTTP(t, tt.server)
			target := remote(server)
			if tt.set != nil {
				tt.set(t, &target)
			}
			if tt.until != "" {
				target.At = once(func() bool { return server.Count(tt.until) > 0 })
			}
			got := failsAtSomePoint(t, target)
			tt.want.Transport = events.TransportHTTP
			if tt.want.Error == "" {
				got.Error = "" // names a port
			}
			if tt.bodyFrom != "" {
				if !strings.HasPrefix(got.BodyExcerpt, tt.bodyFrom) {
					t.Errorf("body %q, want %q...", got.BodyExcerpt, tt.bodyFrom)
				}
				if len(got.BodyExcerpt) > events.MaxBodyBytes {
					t.Errorf("body excerpt of %d bytes", len(got.BodyExcerpt))
				}
				got.BodyExcerpt = ""
			}
			wantEvidence(t, got, tt.want)
		})
	}
}

// failsAtSomePoint returns the evidence of an Open or of the ListTools after it.
func failsAtSomePoint(t *testing.T, target upstream.Target) events.Evidence {
	t.Helper()
	s, err := upstream.Open(t.Context(), target)
	if err == nil {
		defer func() { _ = s.Close(context.Background()) }()
		_, err = s.ListTools(t.Context())
	}
	if err == nil {
		t.Fatal("nothing failed")
	}
	return evidenceOf(t, err)
}

func TestHeadersGoWithEveryRequestAlsoTheLast(t *testing.T) {
	checkLeaks(t)
	server := mcptest.NewHTTP(t, mcptest.HTTP{Require: map[string]string{"Authorization": "Bearer right", "X-Team": "blue"}})
	target := remote(server)
	target.Headers = map[string]string{"authorization": "Bearer right", "x-team": "blue"}
	s := open(t, target)
	if _, err := s.ListTools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := server.Requests()
	last := requests[len(requests)-1]
	if last.HTTPMethod != http.MethodDelete || last.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("the session was not ended: %+v", last)
	}
	for _, r := range requests {
		if r.Header.Get("Authorization") != "Bearer right" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("%s %s without the headers", r.HTTPMethod, r.Method)
		}
	}
}

func TestNothingIsSentTwice(t *testing.T) {
	for _, mishap := range []mcptest.Mishap{mcptest.Reset, mcptest.CutBody, mcptest.Empty, mcptest.Status} {
		t.Run(string(mishap), func(t *testing.T) {
			checkLeaks(t)
			server := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mishap, Status: 503, At: "tools/call"})
			_, err := open(t, remote(server)).CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
			if ev := evidenceOf(t, err); !ev.Dispatched {
				t.Errorf("evidence says it was not sent: %+v", ev)
			}
			if n := server.Count("tools/call"); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestACallNobodyListensToWasNotDispatched(t *testing.T) {
	checkLeaks(t)
	backend := httptest.NewServer(mcptest.NewHTTP(t, mcptest.HTTP{Sessionless: true}))
	target := remote(mcptest.NewHTTP(t, mcptest.HTTP{}))
	target.URL = backend.URL
	s := open(t, target)
	backend.CloseClientConnections()
	backend.Close()
	var ev events.Evidence
	eventually(t, "the old connection is noticed to be closed", func() bool {
		_, err := s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
		ev = evidenceOf(t, err)
		return ev.ErrorKind == events.KindRefused
	})
	if ev.Dispatched || ev.Phase != events.PhaseCallTool {
		t.Errorf("evidence %+v", ev)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	checkLeaks(t)
	elsewhere := mcptest.NewHTTP(t, mcptest.HTTP{})
	server := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, Status: 307, Header: map[string]string{"Location": elsewhere.URL}})
	if ev := openFails(t, remote(server)); ev.ErrorKind != events.KindRedirect || ev.Location != elsewhere.URL {
		t.Errorf("evidence %+v", ev)
	}
	if got := elsewhere.Requests(); len(got) != 0 {
		t.Errorf("followed to %+v", got)
	}
}

func TestOnlyARefusalToBeginSoIsAnsweredWithAnotherBeginning(t *testing.T) {
	for status, want := range map[int]int{400: 1, 404: 1, 405: 1, 401: 0, 403: 0, 429: 0, 500: 0, 503: 0} {
		checkLeaks(t)
		server := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, Status: status})
		if ev := openFails(t, remote(server)); ev.HTTPStatus != status {
			t.Errorf("evidence %+v", ev)
		}
		if got := server.Count("server/discover"); got != want || server.Count("initialize") != 1 {
			t.Errorf("status %d: %d times initialize, %d times server/discover, want 1 and %d", status, server.Count("initialize"), got, want)
		}
	}
}

func TestAForgottenSessionIsOver(t *testing.T) {
	checkLeaks(t)
	server := mcptest.NewHTTP(t, mcptest.HTTP{})
	s := open(t, remote(server))
	server.Forget()
	_, err := s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
	if ev := evidenceOf(t, err); ev.HTTPStatus != 404 || !ev.SessionSent || ev.ErrorKind != events.KindHTTPStatus {
		t.Errorf("evidence %+v", ev)
	}
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the session lasts")
	}
	calls := server.Count("tools/call")
	_, err = s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
	if ev := evidenceOf(t, err); ev.HTTPStatus != 404 || ev.Dispatched {
		t.Errorf("evidence %+v", ev)
	}
	if server.Count("tools/call") != calls {
		t.Error("a call was sent on a session that is over")
	}
}

func TestAHostileStreamOfRepliesLeaksNothing(t *testing.T) {
	checkLeaks(t)
	server := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Twice, At: "tools/call"})
	s := open(t, remote(server))
	for range 10 {
		if _, err := s.CallTool(t.Context(), "echo", json.RawMessage(`{}`), upstream.CallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
