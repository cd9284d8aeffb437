package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/httpapi/gateway"
)

// Whoever opens endpoints may be gone once the relay has ended.
func TestAClientThatEndsIsNotKeptByAServiceThatIsGone(t *testing.T) {
	gone := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer gone.Close()
	reopening := make(chan struct{})
	var opened, opening atomic.Int64
	var left atomic.Bool
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open: func(ctx context.Context) (gateway.Endpoint, error) {
			opening.Add(1)
			defer opening.Add(-1)
			if opened.Add(1) == 1 {
				return gateway.Endpoint{URL: gone.URL}, nil
			}
			close(reopening)
			<-ctx.Done()
			if !left.Load() {
				t.Error("while the client is there nobody opens the next endpoint")
			}
			<-time.After(10 * time.Millisecond) // it may take a moment
			return gateway.Endpoint{}, context.Cause(ctx)
		},
	}
	in, client := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- relay.Run(context.Background(), in, io.Discard) }()
	if _, err := io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reopening:
	case <-time.After(patience):
		t.Fatal("nobody opens the next endpoint")
	}
	left.Store(true)
	_ = client.Close()
	select {
	case err := <-over:
		if n := opening.Load(); err != nil || n != 0 {
			t.Errorf("ended with %v while %d endpoints are opened", err, n)
		}
	case <-time.After(patience):
		t.Error("it goes on without its client")
	}
}

func TestAClientThatEndsIsNotKeptByAServiceThatDoesNotAnswer(t *testing.T) {
	mute, cancelled := make(chan struct{}, 1), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		mute <- struct{}{}
		<-r.Context().Done()
		close(cancelled)
	}))
	defer silent.Close()
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open:   func(context.Context) (gateway.Endpoint, error) { return gateway.Endpoint{URL: silent.URL}, nil },
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in, client := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- relay.Run(ctx, in, io.Discard) }()
	<-mute
	_ = client.Close()
	select {
	case err := <-over:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("it goes on without its client")
		cancel()
	}
	<-cancelled
}

// stand is an endpoint by hand; it answers a request with the result that is given for its
// method, in a session, and breaks off where none is.
func stand(t *testing.T, results map[string]func(*http.Request) string) string {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		answer := results[req.Method]
		switch {
		case req.ID == nil: // a notification, or the stream of the session, which is not wanted here
			w.WriteHeader(http.StatusAccepted)
			return
		case answer == nil:
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Mcp-Session-Id", "one")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(req.ID)+`,"result":`+answer(r)+`}`)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func TestSubscriptionsAreTakenUpHoweverSoonTheNextRequestIsAnswered(t *testing.T) {
	says := func(result string) func(*http.Request) string {
		return func(*http.Request) string { return result }
	}
	answered, kept := make(chan struct{}), make(chan bool, 1)
	urls := []string{
		stand(t, map[string]func(*http.Request) string{"initialize": says(`{"protocolVersion":"2025-06-18"}`), "resources/subscribe": says(`{}`)}),
		stand(t, map[string]func(*http.Request) string{
			"initialize": says(`{"protocolVersion":"2025-06-18"}`), "tools/list": says(`{"tools":[]}`),
			"resources/subscribe": func(r *http.Request) string {
				<-answered
				select {
				case <-r.Context().Done():
					kept <- false
				case <-time.After(100 * time.Millisecond):
					kept <- true
				}
				return `{}`
			},
		}),
	}
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open: func(context.Context) (gateway.Endpoint, error) {
			url := urls[0]
			urls = urls[1:]
			return gateway.Endpoint{URL: url}, nil
		},
	}
	in, client := io.Pipe()
	replies, out := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- relay.Run(context.Background(), in, out) }()
	lines := bufio.NewScanner(replies)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}`,
	} {
		if _, err := io.WriteString(client, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), `"result"`) {
			t.Fatalf("%s: answered %s", message, lines.Text())
		}
	}
	close(answered)
	if !<-kept {
		t.Error("the subscription was cut with the request that found the next service")
	}
	_ = client.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// The relay of a client whose requests end with their exchange must know which is meant.
func TestARelayKeepsRequestsOfOneIDApart(t *testing.T) {
	asked, answer := make(chan struct{}, 2), make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "tools/call") {
			asked <- struct{}{}
			<-answer
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	}))
	defer endpoint.Close()
	in, client := io.Pipe()
	fromRelay, out := io.Pipe()
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open:   func(context.Context) (gateway.Endpoint, error) { return gateway.Endpoint{URL: endpoint.URL}, nil },
	}
	over := make(chan error, 1)
	go func() { over <- relay.Run(context.Background(), in, out) }()
	lines := bufio.NewScanner(fromRelay)
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",` + modernMeta + `}}` + "\n"
	if _, err := io.WriteString(client, call); err != nil {
		t.Fatal(err)
	}
	<-asked
	go func() { _, _ = io.WriteString(client, call) }()
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":5,"error":{"code":-32600`) {
		t.Errorf("the same id again: %s", lines.Text())
	}
	close(answer)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"result"`) {
		t.Errorf("the first: %s", lines.Text())
	}
	_ = client.Close()
	if err := <-over; err != nil || len(asked) != 0 {
		t.Errorf("ended with %v, %d more were asked", err, len(asked))
	}
}
