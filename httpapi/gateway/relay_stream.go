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
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

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
