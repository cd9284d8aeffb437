package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// serve puts the world on a port of this machine until the test ends.
func (w *world) serve() (url string, server *http.Server) {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	server = w.api.Server()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(listener)
	}()
	w.Cleanup(func() {
		_ = server.Close()
		<-over
	})
	return "http://" + listener.Addr().String(), server
}

// frame is one server-sent event, or a comment.
type frame struct{ id, data, comment string }

// stream opens an event stream and returns its frames; the channel is closed when
// the stream ends.
func (w *world) stream(ctx context.Context, url string, how ...asking) <-chan frame {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	w.must(err)
	for _, h := range how {
		h(r)
	}
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("%s: %d %s", url, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	frames := make(chan frame)
	go func() {
		defer close(frames)
		defer func() { _ = resp.Body.Close() }()
		in := bufio.NewReader(resp.Body)
		var f frame
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "\n":
				select {
				case frames <- f:
				case <-ctx.Done():
					return
				}
				f = frame{}
			case name == "":
				f.comment = line
			case name == "id":
				f.id = value
			case name == "data":
				f.data = value
			}
		}
	}()
	return frames
}

// next returns the next frame with an event.
func next(t *testing.T, frames <-chan frame) frame {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case f, open := <-frames:
			if !open {
				t.Fatal("the stream ended")
			}
			if f.id != "" {
				return f
			}
		case <-deadline:
			t.Fatal("no event came")
		}
	}
}

func TestAStreamGoesOnWhereItWasLeft(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	url, _ := w.serve()
	url += "/api/events/stream"
	for _, how := range []struct {
		query string
		asking
		first events.Sequence
	}{
		{"?after=0", func(*http.Request) {}, 1},
		{"?after=2", func(*http.Request) {}, 3},
		{"", header("Last-Event-ID", "1"), 2},
		{"?after=0", header("Last-Event-ID", "2"), 3},
	} {
		ctx, done := context.WithCancel(t.Context())
		frames := w.stream(ctx, url+how.query, how.asking)
		f := next(t, frames)
		want(t, "first event", f.id, itoa(how.first))
		if !strings.Contains(f.data, fmt.Sprintf(`"sequence":%s`, f.id)) {
			t.Errorf("event %s has other data: %s", f.id, f.data)
		}
		done()
	}
	frames := w.stream(t.Context(), url)
	w.configure("later")
	want(t, "first event after the head", next(t, frames).id, itoa(w.head()))
}

func TestAStreamHasNoGapAndNoRepeatWhileOthersAppend(t *testing.T) {
	w := newWorld(t)
	url, _ := w.serve()
	frames := w.stream(t.Context(), url+"/api/events/stream?after=0")
	const writers, each = 4, 25
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range each {
				_, err := w.log.Append(context.Background(), []events.Event{{
					ID: fmt.Sprintf("w%d-%d", i, j), Source: instance, Type: events.TypeSkipCleared, Subject: "weather",
					ConfigKey: keyOf("weather"), Time: noon, DataVersion: 1, Data: events.SkipCleared{},
				}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range events.Sequence(2 + writers*each) {
		if f := next(t, frames); f.id != itoa(n+1) {
			t.Fatalf("got event %s, want %d", f.id, n+1)
		}
	}
	writing.Wait()
}

func TestAnIdleStreamSendsComments(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Heartbeat = 5 * time.Millisecond })
	url, _ := w.serve()
	frames := w.stream(t.Context(), url+"/api/events/stream")
	for range 3 {
		select {
		case f := <-frames:
			if f.comment == "" {
				t.Errorf("got %+v, want a comment", f)
			}
		case <-time.After(patience):
			t.Fatal("no comment came")
		}
	}
}

// What bounds the time of other requests would also end a stream's.
func TestAStreamOutlivesTheTimesOfOtherRequests(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Heartbeat = 10 * time.Millisecond })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	server := w.api.Server()
	server.ReadTimeout, server.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	frames := w.stream(t.Context(), "http://"+listener.Addr().String()+"/api/events/stream")
	for range 15 {
		if _, open := <-frames; !open {
			t.Fatal("the stream ended")
		}
	}
	w.configure("weather")
	want(t, "event", next(t, frames).id, itoa(w.head()))
}

func TestStoppingEndsOpenStreamsAtOnce(t *testing.T) {
	w := newWorld(t)
	url, server := w.serve()
	frames := w.stream(t.Context(), url+"/api/events/stream?after=0")
	next(t, frames)
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	w.must(server.Shutdown(ctx))
	for open := true; open; {
		select {
		case _, open = <-frames:
		case <-ctx.Done():
			t.Fatal("the stream is still open")
		}
	}
	want(t, "ready", w.get("/readyz").is(http.StatusServiceUnavailable).at("ready"), false)
}

func TestAHeadRequestGetsTheHeadersAlone(t *testing.T) {
	w := newWorld(t)
	url, _ := w.serve()
	for _, path := range []string{"/healthz", "/api/tools", "/", "/api/events/stream"} {
		resp, err := http.Head(url + path)
		w.must(err)
		body, err := io.ReadAll(resp.Body)
		w.must(err)
		w.must(resp.Body.Close())
		want(t, path+" status", resp.StatusCode, http.StatusOK)
		want(t, path+" body", len(body), 0)
	}
}

func TestLinesThatBreakOffAreSeenToBreakOff(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Log = tornLog{c.Log} })
	w.configure("weather")
	url, _ := w.serve()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/events", nil)
	w.must(err)
	r.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		t.Error("the answer looks whole though the log could not be read to its end")
	}
	w.get("/api/events").refused(http.StatusInternalServerError, "log_corrupt")
}

// tornLog is a log that cannot be read past its first event.
type tornLog struct{ events.Log }

func (l tornLog) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for e, err := range l.Log.Read(ctx, q) {
			if e.Sequence > 1 {
				yield(events.Event{}, events.ErrCorrupt)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
