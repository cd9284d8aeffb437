package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"mcpledger/httpapi/api"
)

const streamPath = "/api/events/stream"

// happening is the stream of events from a moment on.
type happening struct {
	after  api.Sequence     // the head at that moment
	events <-chan api.Event // closed when the stream ended
	stop   func()
}

// happening begins a stream of what happens from now on. The caller stops it.
func (c *client) happening(ctx context.Context) (*happening, error) {
	ctx, cancel := context.WithCancel(ctx)
	res, err := c.openReady(ctx, http.MethodGet, streamPath, nil, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	lines := bufio.NewReader(res.Body)
	h := &happening{stop: cancel}
	first, err := lines.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(first, ": after %d", &h.after)
	}
	if err != nil {
		cancel()
		res.Body.Close()
		return nil, unreadable(streamPath, err)
	}
	events := make(chan api.Event)
	h.events = events
	go func() {
		defer close(events)
		defer res.Body.Close()
		for line := range wholeLines(lines) {
			data, ok := strings.CutPrefix(line, "data: ")
			var e api.Event
			if !ok || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return h, nil
}

// wholeLines yields the lines of r without their ends. What is left of a line that was
// cut is not among them.
func wholeLines(r io.Reader) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if err != nil || !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}
