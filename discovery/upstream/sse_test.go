package upstream_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestAnSSEStreamThatEndsEndsTheCallAndTheSession(t *testing.T) {
	checkLeaks(t)
	server := mcptest.NewHTTP(t, mcptest.HTTP{SSE: true})
	target := remote(server)
	target.Transport = events.TransportSSE
	s := open(t, target)
	failed := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(), "wait", nil, upstream.CallOptions{})
		failed <- err
	}()
	eventually(t, "the call arrives", func() bool { return server.Count("tools/call") > 0 })
	server.CloseStream()
	got := evidenceOf(t, <-failed)
	got.ContentType, got.HTTPStatus = "", 0
	wantEvidence(t, got, events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportSSE, Error: "EOF", ErrorKind: events.KindEOF,
		EndedBy: events.EndedByServer, Dispatched: true, ProtocolVersion: "2025-11-25",
	})
	<-s.Done()
}

func TestAnSSEServerThatFailsLeavesEvidence(t *testing.T) {
	handler := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			w.(http.Flusher).Flush()
			if status == 200 && contentType == "text/event-stream" {
				<-r.Context().Done()
			}
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    events.Evidence
		limit   time.Duration // 0: one that is not reached
	}{
		{
			name: "401", handler: handler(401, "text/plain", "no"),
			want: events.Evidence{Error: "HTTP status 401 Unauthorized", ErrorKind: events.KindHTTPStatus, HTTPStatus: 401, ContentType: "text/plain", BodyExcerpt: "no"},
		},
		{
			name: "a page", handler: handler(200, "text/html", "<html>"),
			want: events.Evidence{Error: "EOF", ErrorKind: events.KindMalformed, HTTPStatus: 200, ContentType: "text/html", BodyExcerpt: "<html>", EndedBy: events.EndedByServer},
		},
		{
			name: "an endpoint on another host", handler: handler(200, "text/event-stream", "event: endpoint\ndata: http://evil.example.com/x\n\n"),
			want: events.Evidence{
				Error: errForeignText, ErrorKind: events.KindMalformed, HTTPStatus: 200, ContentType: "text/event-stream",
				BodyExcerpt: "event: endpoint\ndata: http://evil.example.com/x", EndedBy: events.EndedByServer,
			},
		},
		{
			name: "no endpoint", limit: 3 * time.Second, handler: handler(200, "text/event-stream", ": hello\n\n"),
			want: events.Evidence{
				Error: "did not answer the handshake within 3s", ErrorKind: events.KindTimeoutBody, HTTPStatus: 200, LimitMS: 3000,
				ContentType: "text/event-stream", BodyExcerpt: ": hello",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			server := httptest.NewServer(tt.handler)
			t.Cleanup(server.Close)
			target := upstream.Target{
				Transport: events.TransportSSE, URL: server.URL, Now: time.Now,
				Budget: upstream.Budget{Total: cmp.Or(tt.limit, patience)},
			}
			tt.want.Phase, tt.want.Transport = events.PhaseConnect, events.TransportSSE
			wantEvidence(t, openFails(t, target), tt.want)
		})
	}
}

const errForeignText = "request for another scheme or host than the configured one"
