package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// victim is the tool that goes wrong; echo is its sibling.
const victim = "tool-0001"

// rpcRequest is what of a request a bad server needs to know.
type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// badServer is a healthy server over HTTP, but for what its script does once it is
// armed.
type badServer struct {
	url    string
	inner  *mcptest.Server
	method string // at which the script runs; tools/call: of the victim alone
	script func(w http.ResponseWriter, r *http.Request, req rpcRequest)
	armed  atomic.Bool
	struck atomic.Int64 // how often the script ran
}

func newBadServer(t testing.TB, spec mcptest.HTTP, method string, script func(http.ResponseWriter, *http.Request, rpcRequest)) *badServer {
	spec.Tools = 1
	b := &badServer{inner: mcptest.NewHTTP(t, spec), method: method, script: script}
	backend := httptest.NewServer(b)
	t.Cleanup(func() {
		backend.CloseClientConnections()
		backend.Close()
	})
	b.url = backend.URL + "/mcp"
	return b
}

// ServeHTTP implements http.Handler.
func (b *badServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req rpcRequest
	_ = json.Unmarshal(body, &req)
	hit := b.armed.Load() && req.Method == b.method && (b.method != "tools/call" || req.Params.Name == victim)
	if !hit {
		b.inner.ServeHTTP(w, r)
		return
	}
	b.struck.Add(1)
	b.script(w, r, req)
}

// The scripts.

func status(code int, body string, header ...string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, _ rpcRequest) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// says answers with a JSON body in which %s stands for the request's id.
func says(body string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, req rpcRequest) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fill(body, req))
	}
}

// streams answers with events; each part is flushed, and %s stands for the id.
func streams(parts ...string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, req rpcRequest) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			_, _ = io.WriteString(w, fill(part, req))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func fill(text string, req rpcRequest) string {
	text = string(bytes.ReplaceAll([]byte(text), []byte("%id"), req.ID))
	return string(bytes.ReplaceAll([]byte(text), []byte("%token"), req.Params.Meta.ProgressToken))
}

// hangs stays until the client has gone.
func hangs(_ http.ResponseWriter, r *http.Request, _ rpcRequest) { <-r.Context().Done() }

// then runs one script after the other.
func then(scripts ...func(http.ResponseWriter, *http.Request, rpcRequest)) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		for _, script := range scripts {
			script(w, r, req)
		}
	}
}

// severs ends the connection; with a reset if hard.
func severs(hard bool) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, _ rpcRequest) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		if tcp, ok := conn.(interface{ SetLinger(int) error }); ok && hard {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// keepsAlive sends comments and no answer.
func keepsAlive(w http.ResponseWriter, r *http.Request, _ rpcRequest) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, ": keep-alive\n\n"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// pours sends size bytes between head and tail.
func pours(contentType, head string, size int, tail string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, req rpcRequest) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, fill(head, req))
		block := bytes.Repeat([]byte("x"), 64<<10)
		for range size / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, tail)
	}
}

// byteByByte sends an answer as events with CRLF, one byte at a time.
func byteByByte(data string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, _ *http.Request, req rpcRequest) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, b := range []byte("event: message\r\ndata: " + fill(data, req) + "\r\n\r\n") {
			_, _ = w.Write([]byte{b})
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// tryCall calls a tool with a time limit; 0 for the default.
func (r *running) tryCall(server events.ServerName, tool, arguments string, timeout time.Duration) (discovery.CallOutcome, error) {
	return r.Call(context.Background(), discovery.Call{
		Server: server, Tool: tool, Arguments: json.RawMessage(arguments), Caller: "tester", Timeout: timeout,
	})
}

// call is tryCall that must give an outcome.
func (r *running) call(server events.ServerName, tool, arguments string) discovery.CallOutcome {
	r.w.t.Helper()
	out, err := r.tryCall(server, tool, arguments, 0)
	if err != nil {
		r.w.t.Fatalf("call %s/%s: %v", server, tool, err)
	}
	return out
}

// wantCall fails the test unless the call succeeded.
func (r *running) wantCall(server events.ServerName, tool string) {
	r.w.t.Helper()
	out := r.call(server, tool, `{}`)
	if out.Outcome != projections.OutcomeSucceeded {
		r.w.t.Fatalf("%s/%s: %s", server, tool, told(out))
	}
}

// told is an outcome in one line.
func told(out discovery.CallOutcome) string {
	if out.Failure == nil {
		return string(out.Outcome)
	}
	return fmt.Sprintf("%s %s (%s), dispatched %v: %s", out.Outcome, out.Failure.Code, out.Failure.Class, out.Dispatched, out.Failure.Detail)
}

// generation is the session a recorded outcome came from; 0 for a refusal.
func (r *running) generation(out discovery.CallOutcome) int64 {
	r.w.t.Helper()
	for e, err := range r.log.Read(context.Background(), events.Query{ID: out.EventID}) {
		if err != nil {
			r.w.t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case events.ToolCallSucceeded:
			return d.Generation
		case events.ToolCallFailed:
			return d.Generation
		}
	}
	return 0
}

// eventually waits until what leaves no event holds.
func eventually(t testing.TB, awaited string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for range patience / (20 * time.Millisecond) {
		if holds() {
			return
		}
		<-ticker.C
	}
	t.Fatalf("waited in vain: %s", awaited)
}
