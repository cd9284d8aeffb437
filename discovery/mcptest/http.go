package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// HTTP describes a server over streamable HTTP, or over SSE. The zero HTTP is
// healthy.
type HTTP struct {
	Era Era
	// SSE is the transport of 2024-11-05; Events frames the answers of streamable HTTP
	// as events.
	SSE, Events bool
	// Sessionless hands out no session id.
	Sessionless bool

	Mishap Mishap
	At     string // the method, such as "tools/list"; empty for all
	// Times limits how often the mishap happens; 0 does not limit it.
	Times  int
	Status int
	Header map[string]string
	Body   string
	Bytes  int

	// Require are headers without which every request is answered with 401.
	Require map[string]string

	Tools, PageSize int
}

// Request is what a server was asked.
type Request struct {
	HTTPMethod string
	Method     string // of JSON-RPC; empty if the body is no message
	Header     http.Header
}

// Server is a fake server over HTTP, closed at the end of the test.
type Server struct {
	// URL is where clients connect.
	URL string

	spec    HTTP
	quit    chan struct{}
	streams chan message // for the SSE stream

	mu       sync.Mutex
	requests []Request
	mishaps  int
	session  string
}

// NewHTTP starts a server.
func NewHTTP(t testing.TB, spec HTTP) *Server {
	t.Helper()
	s := &Server{spec: spec, quit: make(chan struct{}), streams: make(chan message, 64)}
	backend := httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.quit)
		backend.CloseClientConnections()
		backend.Close()
	})
	s.URL = backend.URL + "/mcp"
	return s
}

// Requests returns what the server was asked, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns how many requests had that JSON-RPC method, or, for a name in
// capitals, that HTTP method.
func (s *Server) Count(method string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Method == method || r.HTTPMethod == method {
			n++
		}
	}
	return n
}

// Forget makes the server forget its session, as a restart does.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = "gone"
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req message
	_ = json.Unmarshal(body, &req)
	s.mu.Lock()
	s.requests = append(s.requests, Request{HTTPMethod: r.Method, Method: req.Method, Header: r.Header.Clone()})
	s.mu.Unlock()

	for name, value := range s.spec.Require {
		if r.Header.Get(name) != value {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fake"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
	}
	if s.spec.Mishap != Fine && (s.spec.At == "" || s.spec.At == req.Method) && s.strikes() {
		s.mishap(w, r, req)
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.stream(w, r)
	case http.MethodPost:
		s.post(w, r, req)
	case http.MethodDelete:
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *Server) strikes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mishaps++
	return s.spec.Times == 0 || s.mishaps <= s.spec.Times
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, req message) {
	if !s.knows(r, req) {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	reply, ok := s.answer(req, w)
	switch {
	case req.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case s.spec.SSE:
		w.WriteHeader(http.StatusAccepted)
		if ok {
			s.streams <- reply
		}
	case !ok:
		s.wait(r)
	default:
		s.reply(w, req, marshal(reply))
	}
}

// knows reports whether the request carries the session it should, and makes one for
// initialize.
func (s *Server) knows(r *http.Request, req message) bool {
	if s.spec.Sessionless || s.spec.SSE || s.spec.Era == Modern {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Method == "initialize" {
		s.session = fmt.Sprintf("session-%d", len(s.requests))
		return true
	}
	if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
		return true
	}
	return s.session != "" && r.Header.Get("Mcp-Session-Id") == s.session
}

// answer lets a call report progress on its own stream of events.
func (s *Server) answer(req message, w http.ResponseWriter) (message, bool) {
	m := mind{era: s.spec.Era, tools: s.spec.Tools, pageSize: s.spec.PageSize}
	m.send = func(n message) {
		if s.spec.SSE {
			s.streams <- n
			return
		}
		if s.spec.Events {
			event(w, n)
		}
	}
	m.ask = func(message) message { return message{} }
	if req.Method == "tools/call" && s.spec.Events {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	return m.answer(req)
}

func (s *Server) reply(w http.ResponseWriter, req message, body []byte) {
	s.mu.Lock()
	if req.Method == "initialize" && s.session != "" {
		w.Header().Set("Mcp-Session-Id", s.session)
	}
	s.mu.Unlock()
	if s.spec.Events {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\n", body)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// stream is what a GET opens: the SSE transport's stream, and nothing else.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if !s.spec.SSE {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?session=1\n\n")
	flush(w)
	for {
		select {
		case m := <-s.streams:
			if m.Method == closeStream {
				return
			}
			event(w, m)
		case <-r.Context().Done():
			return
		case <-s.quit:
			return
		}
	}
}

const closeStream = "close stream"

// CloseStream ends the stream of the SSE transport.
func (s *Server) CloseStream() { s.streams <- message{Method: closeStream} }
