package gateway

import (
	"bufio"
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
	case refusal != nil:
		l.refuse(req, refusal.Error())
	case res.StatusCode == http.StatusNotFound && at.session != "" && !isJSON(res):
		return false, errGone
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

// listen keeps the stream of the session's notifications open, at whichever endpoint
// there is. After a change of endpoint the client's lists may be out of date.
func (l *relay) listen(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listening {
		return
	}
	l.listening = true
	go func() {
		for {
			at := l.link()
			opened, err := l.stream(ctx, at)
			if err != nil && ctx.Err() == nil {
				l.Logger.DebugContext(ctx, "stream ended", slog.Any("err", err))
			}
			if !pause(ctx, reopenPause) {
				return
			}
			if opened {
				continue // the session may go on
			}
			if err := l.reopen(ctx, at.generation); err != nil {
				refusal, ok := errors.AsType[*Refusal](err)
				if !ok || !pause(ctx, refusedPause) {
					return
				}
				l.Logger.DebugContext(ctx, "stream refused", slog.Any("err", refusal))
				continue
			}
			for _, method := range listChanges {
				l.write(notification(method, nil))
			}
		}
	}()
}

// refusedPause is the wait before a stream is asked for again that was refused: what is
// missing from the config may come back.
const refusedPause = 5 * time.Second

// listChanges are the notifications that a list has changed.
var listChanges = []string{mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationResourcesListChanged, mcp.MethodNotificationPromptsListChanged}

// stream passes on what the endpoint says unasked, until it ends. It says whether the
// endpoint opened it.
func (l *relay) stream(ctx context.Context, at link) (opened bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.endpoint.URL, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "text/event-stream")
	at.sign(r)
	res, err := l.http.Do(r)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if !isEvents(res) {
		return false, fmt.Errorf("%w: %s", errGone, res.Status)
	}
	return true, l.events(res.Body, &request{})
}

// events writes the data of each event. A stream that answers a request is good for
// nothing without the answer. That a subscription is over is not told, unless it was to
// nothing: a service which stops ends it, and the next one takes it up.
func (l *relay) events(body io.Reader, req *request) error {
	reader := bufio.NewReader(body)
	answered, subscribed := req.ID == nil, false
	for {
		line, err := reader.ReadBytes('\n')
		data, found := bytes.CutPrefix(line, []byte("data:"))
		// An event may have no data, and only tell its id.
		if data = bytes.TrimSpace(data); found && err == nil && len(data) > 0 {
			answer := answers(data, req.ID)
			if answer && subscribed {
				return errGone
			}
			subscribed = subscribed || subscribes(data)
			l.write(data)
			answered = answered || answer
		}
		switch {
		case errors.Is(err, io.EOF) && answered:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

// answers reports whether a message answers the request of that id.
func answers(data []byte, id json.RawMessage) bool {
	m := member(data, "id")
	return m != nil && member(data, "method") == nil && bytes.Equal(m, id)
}

// subscribes reports whether a message acknowledges a subscription to anything.
func subscribes(data []byte) bool {
	if !bytes.Contains(data, []byte(mcp.MethodNotificationSubscriptionsAcknowledged)) {
		return false
	}
	granted, err := fieldsOf(member(member(data, "params"), "notifications"))
	return err == nil && len(granted) > 0
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
	ctx, cancel := context.WithTimeout(ctx, time.Second)
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
