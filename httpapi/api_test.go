package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mcpledger/discovery"
	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
)

func TestTooManyWaitsAtOnceAreRefusedAndOthersAreNot(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	ctx, giveUp := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	refused := make(chan string, 200)
	for range 200 {
		waiting.Go(func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/servers/weather/discover?wait=true", nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+w.operator)
			rec := httptest.NewRecorder()
			w.api.ServeHTTP(rec, r)
			if strings.Contains(rec.Body.String(), `"code":"busy"`) {
				refused <- rec.Body.String()
			}
		})
	}
	for range 200 - 128 {
		<-refused
	}
	w.get("/api/tools").is(http.StatusOK)
	giveUp()
	waiting.Wait()
	want(t, "refused beyond the bound", len(refused), 0)
}

func TestTheConnectionIsFreeAfterTheHeaderOfAStream(t *testing.T) {
	w := newWorld(t)
	url, _ := w.serve()
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	one := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer one.CloseIdleConnections()
	for _, ask := range []struct{ method, path string }{
		{http.MethodHead, "/api/events/stream"},
		{http.MethodGet, "/healthz"},
	} {
		r, err := http.NewRequestWithContext(ctx, ask.method, url+ask.path, nil)
		w.must(err)
		resp, err := one.Do(r)
		w.must(err)
		_, err = io.Copy(io.Discard, resp.Body)
		w.must(errors.Join(err, resp.Body.Close()))
		want(t, ask.method+" "+ask.path, resp.StatusCode, http.StatusOK)
	}
}

func TestAnotherHandlerStandsBehindTheSameDoor(t *testing.T) {
	w := newWorld(t)
	w.api.Mount("/mcp", access.Call, func(rw http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodDelete {
			return fmt.Errorf("%q: %w", "nobody", discovery.ErrUnknownServer)
		}
		_, err := rw.Write([]byte(httpapi.CallerName(r)))
		return err
	})
	send := func(method string, how ...asking) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/mcp", nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		for _, h := range how {
			h(r)
		}
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		return rec
	}
	ask := func(how ...asking) *httptest.ResponseRecorder { return send(http.MethodPost, how...) }
	want(t, "from here", ask().Body.String(), "local")
	want(t, "with a token", ask(bearer(w.token("agent", access.Call)), from(elsewhere)).Body.String(), "agent")
	want(t, "from elsewhere", ask(from(elsewhere)).Code, http.StatusUnauthorized)
	want(t, "with the wrong role", ask(bearer(w.token("reader", access.Read))).Code, http.StatusForbidden)
	want(t, "by another name", ask(calling("evil.example")).Code, http.StatusForbidden)
	refused := send(http.MethodDelete)
	want(t, "what it refuses", refused.Code, http.StatusNotFound)
	want(t, "and how", refused.Header().Get("Content-Type"), "application/problem+json")
	if body := refused.Body.String(); !strings.Contains(body, `"code":"server_not_found"`) || !strings.Contains(body, "no such server") {
		t.Errorf("why: %s", body)
	}
}
