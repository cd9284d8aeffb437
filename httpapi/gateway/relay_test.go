package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

// overStdio connects a client through a Relay to the endpoint that current names.
func overStdio(t *testing.T, e era, current *atomic.Pointer[world], path string, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	fromClient, toRelay := io.Pipe()
	fromRelay, toClient := io.Pipe()
	over := make(chan error, 1)
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open: func(context.Context) (gateway.Endpoint, error) {
			return gateway.Endpoint{URL: current.Load().url + path}, nil
		},
	}
	go func() {
		over <- relay.Run(context.Background(), fromClient, toClient)
		_ = toClient.Close()
	}()
	options := &mcp.ClientOptions{}
	for _, c := range change {
		c(options)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, options)
	s, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: fromRelay, Writer: toRelay}, &mcp.ClientSessionOptions{ProtocolVersion: string(e)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = toRelay.Close()
		_ = s.Close()
		if err := <-over; err != nil {
			t.Errorf("relay: %v", err)
		}
	})
	return s
}

func TestAClientOnStdioHasItAll(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	var current atomic.Pointer[world]
	current.Store(w)
	inBothEras(t, w, func(t *testing.T, e era) {
		heard := make(chan *mcp.ProgressNotificationParams, 8)
		changed := make(chan struct{}, 16)
		s := overStdio(t, e, &current, "", func(o *mcp.ClientOptions) {
			o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params }
			o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
		})
		if names := strings.Join(toolNames(t, s), " "); !strings.Contains(names, "one__echo") {
			t.Errorf("tools %s", names)
		}
		p := &mcp.CallToolParams{Name: "one__steps"}
		p.SetProgressToken(7)
		if r, err := s.CallTool(context.Background(), p); err != nil || textOf(r) != "done" {
			t.Fatalf("%v %+v", err, r)
		}
		if got := <-heard; got.Progress != 1 {
			t.Errorf("progress %+v", got)
		}

		failed := len(w.recorded("one", events.TypeToolCallFailed))
		started := len(w.recorded("one", events.TypeToolCallStarted))
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = s.CallTool(ctx, &mcp.CallToolParams{Name: "one__wait"})
		}()
		w.awaitEvents("one", events.TypeToolCallStarted, started+1)
		cancel()
		<-over
		w.awaitEvents("one", events.TypeToolCallFailed, failed+1)

		w.program("more-"+string(e), mcptest.Fake{})
		w.reload()
		<-changed
	})
}

func TestASubscriptionOverStdioOutlivesTheService(t *testing.T) {
	for _, e := range eras {
		t.Run(string(e), func(t *testing.T) {
			p, url := newPress(t, false)
			first, second := newWorld(t), newWorld(t)
			for _, w := range []*world{first, second} {
				w.remote("press", url)
				w.start().await("press", projections.StateReady)
			}
			var current atomic.Pointer[world]
			current.Store(first)
			told := make(chan string, 1000)
			s := overStdio(t, e, &current, "", func(o *mcp.ClientOptions) {
				o.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI }
			})
			subscribe(t, s, "mcpledger://press/file:///a")
			until(t, told, func() { p.update("file:///a") })
			current.Store(second)
			first.stop()
			for len(told) > 0 {
				<-told
			}
			until(t, told, func() { p.update("file:///a") })
		})
	}
}

func TestAClientOnStdioOutlivesTheService(t *testing.T) {
	first, second := newWorld(t), newWorld(t)
	first.program("one", mcptest.Fake{})
	second.program("two", mcptest.Fake{})
	first.start().await("one", projections.StateReady)
	second.start().await("two", projections.StateReady)
	var current atomic.Pointer[world]
	current.Store(first)
	changed := make(chan struct{}, 16)
	s := overStdio(t, legacy, &current, "", func(o *mcp.ClientOptions) {
		o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
	})
	toolNames(t, s)
	interrupted := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__wait"})
		interrupted <- err
	}()
	first.awaitEvents("one", events.TypeToolCallStarted, 1)
	current.Store(second)
	first.stop()
	if err := <-interrupted; err == nil {
		t.Log("the interrupted call was answered") // by a service that had the time
	}
	<-changed
	if names := strings.Join(toolNames(t, s), " "); !strings.Contains(names, "two__echo") {
		t.Errorf("the tools of the second service: %s", names)
	}
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "two__echo", Arguments: map[string]any{}})
	if err != nil || r.IsError {
		t.Errorf("a call at the second service: %v %+v", err, r)
	}
	if n := len(second.recorded("one", events.TypeToolCallStarted)); n != 0 {
		t.Error("the interrupted call was sent again")
	}
}
