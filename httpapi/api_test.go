package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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

// Many clients send a whole body before they look at the answer. A connection that is
// reset meanwhile tells them nothing.
func TestARefusalReachesAClientThatSendsAllFirst(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	url, _ := w.serve()
	const size = 24 << 20 // more than the buffers of a connection hold
	for _, c := range []struct {
		name, method, path, media, token string
		status                           int
	}{
		{"a body that is too large", http.MethodPost, callPath, "application/json", w.operator, http.StatusRequestEntityTooLarge},
		{"a set that is too large", http.MethodPut, "/api/rules", "application/yaml", w.operator, http.StatusRequestEntityTooLarge},
		{"a stranger", http.MethodPost, "/api/events", "application/json", "", http.StatusUnauthorized},
		{"another media type", http.MethodPost, "/api/classify", "text/plain", w.operator, http.StatusUnsupportedMediaType},
		{"no such path", http.MethodPost, "/api/nothing", "application/json", w.operator, http.StatusNotFound},
	} {
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n",
			c.method, c.path, c.media, c.token, size)
		status, err := sendAll(url, head+strings.Repeat(" ", size))
		if err != nil || status != c.status {
			t.Errorf("%s: %d, want %d: %v", c.name, status, c.status, err)
		}
	}
}

// sendAll sends a request to the end, and only then reads the answer.
func sendAll(url, request string) (status int, err error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func TestAnotherHandlerStandsBehindTheSameDoor(t *testing.T) {
	w := newWorld(t)
	w.api.Mount("/mcp", access.Call, []string{"servers"}, func(rw http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodDelete {
			return fmt.Errorf("%q: %w", "nobody", discovery.ErrUnknownServer)
		}
		_, err := rw.Write([]byte(httpapi.CallerName(r)))
		return err
	})
	path := "/mcp"
	send := func(method string, how ...asking) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
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
	for query, code := range map[string]string{
		"?servers=a,b": "", "?server=a": "unknown_parameter", "?servers=": "invalid_parameter", "?servers=a&servers=b": "invalid_parameter",
	} {
		path = "/mcp" + query
		if got := ask(); (got.Code == http.StatusOK) != (code == "") || !strings.Contains(got.Body.String(), code) {
			t.Errorf("%s: %d %s, want %q", path, got.Code, got.Body, code)
		}
	}
}
