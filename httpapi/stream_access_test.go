package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
)

// What happens after a token is void is not for whoever still has a stream open.
func TestAStreamEndsWithWhatItWasOpenedBy(t *testing.T) {
	for _, c := range []struct {
		story string
		open  func(w *world) asking
		end   func(w *world, opened asking)
	}{
		{"a token that is revoked", byToken, func(w *world, _ asking) { w.must(access.WriteTokens(w.dir, nil)) }},
		{"a token that expires", byToken, func(w *world, _ asking) { w.clock.advance(25 * time.Hour) }},
		{"a session that is signed out", func(w *world) asking { return w.signIn(w.operator) }, func(w *world, opened asking) {
			w.ask(http.MethodDelete, "/api/session", "", opened).is(http.StatusNoContent)
		}},
	} {
		t.Run(c.story, func(t *testing.T) {
			w := newWorld(t, func(c *httpapi.Config) { c.RequireToken = true })
			url, _ := w.serve()
			opened := c.open(w)
			frames := w.stream(t.Context(), url+"/api/events/stream", opened)
			w.configure("before")
			want(t, "event", next(t, frames).id, itoa(w.head()))
			c.end(w, opened)
			w.configure("after")
			deadline := time.After(patience)
			for {
				select {
				case f, open := <-frames:
					if !open {
						return
					}
					if f.id != "" {
						t.Fatalf("event %s was still told", f.id)
					}
				case <-deadline:
					t.Fatal("the stream is still open")
				}
			}
		})
	}
}

// byToken asks with a token that may read.
func byToken(w *world) asking { return bearer(w.token("reader", access.Read)) }

// A handler that streams has no other way to learn that a token is void.
func TestAMountedHandlerLearnsThatItsCallerMayNoMore(t *testing.T) {
	w := newWorld(t)
	var before, after bool
	w.api.Mount("/mcp", access.Call, nil, func(_ http.ResponseWriter, r *http.Request) error {
		before = httpapi.StillAllowed(r)
		w.must(access.WriteTokens(w.dir, nil))
		after = httpapi.StillAllowed(r)
		return nil
	})
	r := httptest.NewRequest(http.MethodGet, "/mcp", nil)
	r.Host = "localhost"
	bearer(w.token("agent", access.Call))(r)
	w.api.ServeHTTP(httptest.NewRecorder(), r)
	want(t, "before", before, true)
	want(t, "after", after, false)
}
