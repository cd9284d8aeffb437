package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// errGone reports an endpoint that does not know our session, or answers no more.
var errGone = errors.New("the service is gone")

// post sends one message to an endpoint and writes what is answered. An error means
// that there is no answer; sent, that the endpoint may have taken the message.
func (l *relay) post(ctx context.Context, at link, req *request) (sent bool, err error) {
	res, err := l.do(ctx, at, req)
	if err != nil {
		var dial *net.OpError
		return !(errors.As(err, &dial) && dial.Op == "dial"), err
	}
	defer res.Body.Close()
	refusal := refusalIn(res)
	switch {
	case refusal != nil && refusal.Code == codeSessionNotFound && at.session != "":
		return false, errGone
	case refusal != nil:
		l.refuse(req, refusal.Error())
	case isEvents(res):
		return true, l.events(res.Body, req)
	case isJSON(res):
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return true, err
		}
		if req.Method == methodInitialize && res.StatusCode == http.StatusOK {
			l.begun(res, body)
		}
		l.write(oneLine(body))
	case res.StatusCode >= http.StatusBadRequest:
		said, _ := io.ReadAll(io.LimitReader(res.Body, 512))
		l.refuse(req, fmt.Sprintf("the service answered %s: %s", res.Status, bytes.TrimSpace(said)))
	}
	return true, nil
}

// do sends one message.
func (l *relay) do(ctx context.Context, at link, req *request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.endpoint.URL, bytes.NewReader(req.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	at.sign(r)
	if mcp.IsModernProtocol(req.meta.Version) {
		r.Header.Del(server.HeaderKeySessionID)
		r.Header.Set(mcp.HeaderProtocolVersion, req.meta.Version)
		for name, value := range mcp.StandardHeaders(req.meta.Version, mcp.MCPMethod(req.Method), req.Params) {
			r.Header.Set(name, value)
		}
	}
	return l.http.Do(r)
}

// sign adds what tells the endpoint who we are.
func (at link) sign(r *http.Request) {
	if at.endpoint.Token != "" {
		r.Header.Set("Authorization", "Bearer "+at.endpoint.Token)
	}
	if at.session != "" {
		r.Header.Set(server.HeaderKeySessionID, at.session)
	}
	if at.version != "" {
		r.Header.Set(mcp.HeaderProtocolVersion, at.version)
	}
}

// begun notes the session that an answer to initialize began.
func (l *relay) begun(res *http.Response, body []byte) {
	var reply struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	// An answer without a version is the client's to refuse.
	_ = json.Unmarshal(body, &reply)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.version = res.Header.Get(server.HeaderKeySessionID), reply.Result.Version
}

// reopen finds the endpoint that takes the place of the one of that generation, and
// begins the client's session there anew.
func (l *relay) reopen(ctx context.Context, generation int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.generation != generation:
		return nil // another request has done it
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	within, cancel := context.WithTimeout(ctx, reopenBudget)
	defer cancel()
	for {
		endpoint, err := l.Open(within)
		if err != nil {
			return err
		}
		session, err := l.greet(within, endpoint)
		if err == nil {
			l.endpoint, l.session = endpoint, session
			l.generation++
			if session != "" {
				go l.restore(l.life, link{l.endpoint, l.generation, l.session, l.version}, slices.Collect(maps.Values(l.standing)))
			}
			return nil
		}
		if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.lasts() {
			return refusal
		}
		l.Logger.WarnContext(ctx, "service does not answer", slog.Any("err", err))
		if !pause(within, reopenPause) {
			return fmt.Errorf("reach the service: %w", err)
		}
	}
}

// greet repeats the client's handshake at an endpoint and returns the session; l.mu
// is held. Before the client has sent its own there is nothing to repeat.
func (l *relay) greet(ctx context.Context, endpoint Endpoint) (session string, err error) {
	if l.hello == nil || l.version == "" {
		return "", nil
	}
	at := link{endpoint: endpoint}
	hello, err := parseRequest(l.hello)
	if err != nil {
		return "", err
	}
	if at.session, err = l.greeting(ctx, at, hello); err != nil {
		return "", err
	}
	at.version = l.version
	_, err = l.greeting(ctx, at, &request{body: notification(string(mcp.MethodNotificationInitialized), nil)})
	return at.session, err
}

// restore asks at a new session for what the one before stood for. What is refused now
// was granted to the client before, and it is not told: the service that refuses says
// why to whoever asks it.
func (l *relay) restore(ctx context.Context, at link, standing []*request) {
	for _, req := range standing {
		if _, err := l.greeting(ctx, at, req); err != nil {
			l.Logger.DebugContext(ctx, "session not restored", slog.Any("err", err))
			return
		}
	}
}

// greeting sends one message of the handshake and returns the session it is of.
func (l *relay) greeting(ctx context.Context, at link, req *request) (session string, err error) {
	res, err := l.do(ctx, at, req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if refusal := refusalIn(res); refusal != nil {
		return "", refusal
	}
	if res.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("handshake: %s", res.Status)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.Header.Get(server.HeaderKeySessionID), err
}

// background reopens without anybody waiting for it.
func (l *relay) background(generation int) {
	go func() { _ = l.reopen(l.life, generation) }()
}

// write writes one message to the client. A client that reads no more is noticed at
// its end of stdin.
func (l *relay) write(message ...[]byte) {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, _ = l.out.Write(append(bytes.Join(message, nil), '\n'))
}

// end stops what is under way, and returns when no endpoint is opened any more.
func (l *relay) end(stop context.CancelFunc) link {
	stop()
	return l.link() // whoever opens one holds l.mu
}

// finish waits a little for what is under way, stops it, and ends the session.
func (l *relay) finish(ctx context.Context, stop context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.asking.Wait()
	}()
	timer := time.NewTimer(finishTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	at := l.end(stop)
	if at.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, at.endpoint.URL, nil)
	if err != nil {
		return
	}
	at.sign(r)
	if res, err := l.http.Do(r); err == nil {
		res.Body.Close()
	}
}

func isJSON(r *http.Response) bool   { return mediaType(r) == "application/json" }
func isEvents(r *http.Response) bool { return mediaType(r) == "text/event-stream" }

func mediaType(r *http.Response) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}
