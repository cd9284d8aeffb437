package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpledger/httpapi/api"
)

// The waits before a follower looks for the service again: the first, doubled up to
// the most.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 5 * time.Second
)

// follower prints events as they come, each once, whatever ends the stream: a
// connection that drops, a service that is killed and started again. Where no service
// holds the data folder any more, it goes on with the log itself.
type follower struct {
	p     *program
	only  func(api.Event) bool // the events that are printed
	after string               // the sequence it has come to; empty: the head, wherever that is
	away  bool                 // the stream ended and no other has begun
}

// run follows until ctx ends. It returns an error when no stream can be begun at all,
// or when one is refused for what was asked.
func (f *follower) run(ctx context.Context) error {
	for wait := reconnectFirst; ; wait = min(2*wait, reconnectMost) {
		begun, err := f.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case begun && err == nil:
			f.tell("the stream of events ended after #%s, looking for the service", f.after)
			f.away, wait = true, reconnectFirst
		case isCatchingUp(err):
		case begun, !f.away, isLasting(err):
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// isLasting reports whether asking again is answered alike.
func isLasting(err error) bool {
	if refused, ok := errors.AsType[*problem](err); ok {
		return refused.Code != "" && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests
	}
	_, usage := errors.AsType[*exitError](err)
	return usage || errors.Is(err, fs.ErrNotExist)
}

// tell says something about the stream beside its events.
func (f *follower) tell(format string, args ...any) {
	fmt.Fprintf(f.p.stderr, "mcpledger: %s\n", fmt.Sprintf(format, args...))
}

// stream prints the events of one stream until it ends, and reports whether it began.
// That one was cut is no error; it is gone on with like one that was closed.
func (f *follower) stream(ctx context.Context) (begun bool, err error) {
	c, err := f.p.openClient(ctx)
	if err != nil {
		return false, err
	}
	err = closing(c, func(c *client) error {
		query := url.Values{}
		set(query, "after", f.after)
		res, err := c.open(ctx, http.MethodGet, streamPath, query, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		begun = true
		if f.away && c.running {
			f.tell("following again after #%s", f.after)
		} else if f.away {
			f.tell("no service runs, following the log itself after #%s", f.after)
		}
		f.away = false
		for line := range wholeLines(res.Body) {
			if err := f.take(line); err != nil {
				return err
			}
		}
		return nil
	})
	return begun, err
}

// take prints what a line of the stream brings.
func (f *follower) take(line string) error {
	if place, ok := strings.CutPrefix(line, ": after "); ok {
		f.after = place
		return nil
	}
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok {
		return nil
	}
	var e api.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return unreadable(streamPath, err)
	}
	f.after = fmt.Sprint(e.Sequence)
	switch {
	case !f.only(e):
	case f.p.json:
		fmt.Fprintln(f.p.stdout, data)
	default:
		cells := eventCells(e)
		for i := range cells {
			cells[i] = oneLine(cells[i])
		}
		fmt.Fprintln(f.p.stdout, strings.TrimRight(strings.Join(cells, "  "), " "))
	}
	return nil
}
