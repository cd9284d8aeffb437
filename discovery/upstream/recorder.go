package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"
)

// What is read of a body that is not the reply itself, and for how long.
const (
	errorBodyBytes = 64 << 10
	errorBodyTime  = 2 * time.Second
)

// The waits before a stream for notices that the server ended is opened again, doubling
// from the first to the longest.
const (
	firstListenWait   = 2 * time.Second
	longestListenWait = 5 * time.Minute
	listenDoublings   = 8 // after which the wait is the longest
)

// keptBodyBytes is what is kept of the beginning of a reply.
const keptBodyBytes = 8 << 10

// sessionHeader is where streamable HTTP carries the session's id.
const sessionHeader = "Mcp-Session-Id"

// errForeign refuses a request for another place than the target's URL.
var errForeign = errors.New("request for another scheme or host than the configured one")

// recorder is the http.RoundTripper under the client library. It sends the target's
// headers, to the target's scheme, host and port alone, writes down what happened in
// the request's exchange, bounds what comes back, and keeps the library from what it
// does badly: following a stream for ever, or reading an error without end.
type recorder struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	limit   int64 // of one message
	// onEvent sees the events of the SSE transport; an error ends the stream. Nil over
	// streamable HTTP, where a stream of events answers one request.
	onEvent func(name, data string) error
	asked   places // of the server's own requests

	mu      sync.Mutex
	closing context.Context // bounds the request that ends a session
	listens int             // of streams the library opened by itself
}

// statusKey is the context key of the function that is told a response's status.
type statusKey struct{}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != r.origin.Scheme || req.URL.Host != r.origin.Host {
		return nil, errForeign
	}
	x, own := exchangeOf(req)
	ctx, cancel := context.WithCancel(req.Context())
	if req.Method == http.MethodDelete {
		defer context.AfterFunc(r.closeContext(), cancel)()
	}
	if req.Method == http.MethodGet && !own {
		if err := r.pauseListening(ctx); err != nil {
			cancel()
			return nil, err
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// A POST asks for a second connection only when nothing of it was written to the
		// first, which the server had closed meanwhile.
		GetConn: func(string) { x.update(func() { x.connected = false }) },
		GotConn: func(httptrace.GotConnInfo) { x.update(func() { x.connected = true }) },
	})
	req = req.Clone(ctx)
	r.addHeaders(req)
	x.update(func() {
		// A stream that is resumed takes more than one request; the last one counts.
		x.status, x.header, x.body, x.bodyBytes, x.bodyErr = 0, nil, nil, 0, nil
		x.sessionSent = req.Header.Get(sessionHeader) != ""
	})
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	x.update(func() { x.status, x.header = resp.StatusCode, resp.Header.Clone() })
	if told, ok := ctx.Value(statusKey{}).(func(int)); ok && own {
		told(resp.StatusCode)
	}
	switch {
	case req.Method == http.MethodGet && !own && resp.StatusCode != http.StatusOK:
		// The library would ask again every second, or take the session for lost; a
		// session that is lost shows in the next call. This status it takes for good.
		resp.StatusCode = http.StatusMethodNotAllowed
		keepStart(resp, x, cancel)
	case resp.StatusCode != http.StatusOK, !isReply(resp.Header):
		keepStart(resp, x, cancel)
	case isEventStream(resp.Header):
		resp.Body = newEventBody(resp.Body, x, cancel, r.limit, own && r.onEvent == nil, r.onEvent, &r.asked)
	default:
		resp.Body = &replyBody{body: resp.Body, x: x, cancel: cancel, left: r.limit}
	}
	return resp, nil
}

func (r *recorder) addHeaders(req *http.Request) {
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = r.headers[name]
			continue
		}
		req.Header.Set(name, r.headers[name])
	}
}

// closeWithin bounds the request by which the library ends a session.
func (r *recorder) closeWithin(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = ctx
}

func (r *recorder) closeContext() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing == nil {
		return context.Background()
	}
	return r.closing
}

// pauseListening spaces out the streams for notices that a server keeps ending: the
// first is opened at once.
func (r *recorder) pauseListening(ctx context.Context) error {
	r.mu.Lock()
	n := r.listens
	r.listens++
	r.mu.Unlock()
	if n == 0 {
		return nil
	}
	timer := time.NewTimer(min(firstListenWait<<min(n-1, listenDoublings), longestListenWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keepStart reads the beginning of a body that is no reply, and puts it in place of
// the body.
func keepStart(resp *http.Response, x *exchange, cancel context.CancelFunc) {
	timer := time.AfterFunc(errorBodyTime, cancel)
	start, err := io.ReadAll(io.LimitReader(resp.Body, errorBodyBytes))
	timer.Stop()
	cancel()
	_ = resp.Body.Close()
	x.update(func() {
		x.body, x.bodyBytes, x.bodyErr = start, int64(len(start)), err
		if len(start) == errorBodyBytes {
			x.bodyBytes++ // at least
		}
		if err == nil {
			x.bodyErr = io.EOF
		}
	})
	resp.Body = io.NopCloser(bytes.NewReader(start))
	resp.ContentLength = int64(len(start))
}

// newHTTPClient returns the client for a target and the recorder in it. Redirects
// are not followed.
func newHTTPClient(t Target) (*http.Client, *recorder, error) {
	origin, err := url.Parse(t.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	if origin.Scheme != "http" && origin.Scheme != "https" || origin.Host == "" {
		return nil, nil, errors.New("url: not an http or https address")
	}
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
	rec := &recorder{base: base, origin: origin, headers: t.Headers, limit: t.maxMessage()}
	client := &http.Client{
		Transport:     rec,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, rec, nil
}

// CloseIdleConnections lets http.Client close what is idle underneath.
func (r *recorder) CloseIdleConnections() {
	if base, ok := r.base.(*http.Transport); ok {
		base.CloseIdleConnections()
	}
}
