package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// answering returns a session with a server that answers calls by fn, which gets the
// request's id.
func answering(t *testing.T, fn func(w http.ResponseWriter, id string)) *upstream.Session {
	healthy := mcptest.NewHTTP(t, mcptest.HTTP{Sessionless: true})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &req)
		switch req.Method {
		case "tools/call":
			fn(w, string(req.ID))
		case "initialize":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, req.ID)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(backend.Close)
	target := remote(healthy)
	target.URL = backend.URL
	return open(t, target)
}

func TestRepliesToOtherRequestsOnAStreamAreLeftOut(t *testing.T) {
	s := answering(t, func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":4242,\"result\":{\"content\":[]}}\n\n")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{\"content\":[],\"mine\":true}}\n\n", id)
	})
	result, err := s.CallTool(t.Context(), "now", nil, upstream.CallOptions{})
	if err != nil || string(result) != `{"content":[],"mine":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

func TestAnAnswerOfTheWrongShapeWasDispatched(t *testing.T) {
	for name, c := range map[string]struct{ answer, says string }{
		"a result that is no object": {`"id":%s,"result":[]`, "the result of the call is no object with an array of content"},
		"content that is no array":   {`"id":%s,"result":{"content":{}}`, "the result of the call is no object with an array of content"},
		"content of no objects":      {`"id":%s,"result":{"content":["a"]}`, "the result of the call is no object with an array of content"},
		"no id":                      {`"unused":%s,"result":{"content":[],"key":"` + secret + `"}`, "the reply has no id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := answering(t, func(w http.ResponseWriter, id string) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0",`+c.answer+`}`, id)
			})
			_, err := s.CallTool(t.Context(), "now", nil, upstream.CallOptions{})
			if ev := evidenceOf(t, err); ev.ErrorKind != events.KindMalformed || !ev.Dispatched || ev.Error != c.says {
				t.Errorf("%s, dispatched %v: %s", ev.ErrorKind, ev.Dispatched, ev.Error)
			}
		})
	}
}

func TestTheStatusIsToldBeforeTheBodyIsThere(t *testing.T) {
	told := make(chan int, 1)
	s := answering(t, func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = http.NewResponseController(w).Flush()
		if status := <-told; status != http.StatusUnauthorized {
			t.Errorf("told %d", status)
		}
	})
	_, err := s.CallTool(t.Context(), "now", nil, upstream.CallOptions{OnStatus: func(status int) { told <- status }})
	if ev := evidenceOf(t, err); ev.HTTPStatus != http.StatusUnauthorized {
		t.Errorf("status %d", ev.HTTPStatus)
	}
}
