package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

// press is a server by another library that tells of updates of its resources.
type press struct {
	*testing.T
	stateless bool // as servers of 2026-07-28 are

	mu     sync.Mutex
	deaf   bool // forgets its session whenever it is asked for updates
	server *mcp.Server
	front  http.Handler
	heard  []string // what it was asked about subscriptions
}

// newPress returns a press and where it is reached.
func newPress(t *testing.T, stateless bool) (*press, string) {
	p := &press{T: t, stateless: stateless}
	p.restart()
	backend := httptest.NewServer(p)
	t.Cleanup(func() {
		backend.CloseClientConnections()
		backend.Close()
	})
	return p, backend.URL
}

// restart begins anew, without the sessions there were.
func (p *press) restart() {
	s := mcp.NewServer(&mcp.Implementation{Name: "press", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			p.note("subscribe " + r.Params.URI)
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			p.note("unsubscribe " + r.Params.URI)
			return nil
		},
	})
	for _, uri := range []string{"file:///a", "file:///b"} {
		s.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	}
	addTool(s, "nothing")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server, p.heard = s, nil
	p.front = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: p.stateless})
}

func addTool(s *mcp.Server, name string) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
}

// replaceTool changes the tools, and tells of it.
func (p *press) replaceTool(old, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server.RemoveTools(old)
	addTool(p.server, name)
}

func (p *press) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	front, deaf := p.front, p.deaf
	p.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if deaf && strings.Contains(string(body), "resources/subscribe") {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	front.ServeHTTP(w, r)
}

// deafen makes it forget its session, now and whenever it is asked for updates.
func (p *press) deafen() {
	p.restart()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = true
}

func (p *press) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, what)
}

// asked returns what it was asked about subscriptions, sorted.
func (p *press) asked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(p.heard)), ", ")
}

func (p *press) update(uri string) {
	p.Helper()
	p.mu.Lock()
	s := p.server
	p.mu.Unlock()
	if err := s.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		p.Error(err)
	}
}

// reader connects a client that is told of updates.
func (w *world) reader(e era, path string) (*mcp.ClientSession, chan string) {
	told := make(chan string, 1000)
	return w.connect(e, path, func(o *mcp.ClientOptions) {
		o.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI }
	}), told
}

// until does something again and again until the client is told, and returns what.
func until(t *testing.T, told chan string, do func()) string {
	t.Helper()
	var uri string
	eventually(t, "the client is told", func() bool {
		do()
		select {
		case uri = <-told:
			return true
		case <-time.NewTimer(100 * time.Millisecond).C:
			return false
		}
	})
	return uri
}

func subscribe(t *testing.T, s *mcp.ClientSession, uri string) {
	t.Helper()
	if err := s.Subscribe(context.Background(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatalf("subscribe to %s: %v", uri, err)
	}
}

func TestUpdatesReachWhoSubscribed(t *testing.T) {
	for kind, stateless := range map[string]bool{"a server of 2025-11-25": false, "a server of 2026-07-28": true} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			p, url := newPress(t, stateless)
			w.remote("press", url)
			if stateless {
				w.entries["press"]["mcpledger"] = map[string]any{"era": "modern"}
			}
			w.start()
			w.await("press", projections.StateReady)
			inBothEras(t, w, func(t *testing.T, e era) {
				reader, told := w.reader(e, "")
				_, others := w.reader(e, "")
				alone, toldAlone := w.reader(e, "/press")
				subscribe(t, reader, "mcpledger://press/file:///a")
				subscribe(t, alone, "file:///a")
				if got := until(t, told, func() { p.update("file:///a") }); got != "mcpledger://press/file:///a" {
					t.Errorf("told of %s", got)
				}
				if got := until(t, toldAlone, func() { p.update("file:///a") }); got != "file:///a" {
					t.Errorf("at the server's own address told of %s", got)
				}
				if err := reader.Unsubscribe(context.Background(), &mcp.UnsubscribeParams{URI: "mcpledger://press/file:///a"}); err != nil {
					t.Error(err)
				}
				subscribe(t, reader, "file:///b") // the server's own address
				eventually(t, "only the other's updates are told", func() bool {
					for len(told) > 0 {
						<-told
					}
					p.update("file:///a")
					p.update("file:///b")
					return <-told == "file:///b"
				})
				if n := len(others); n > 0 {
					t.Errorf("a client that did not subscribe was told %d times", n)
				}
			})
		})
	}
}

func TestAServerIsAskedOnceWhileAnybodyListens(t *testing.T) {
	w := newWorld(t)
	p, url := newPress(t, false)
	w.remote("press", url)
	w.start()
	w.await("press", projections.StateReady)
	var readers []*mcp.ClientSession
	for _, e := range []era{legacy, modern, legacy} {
		reader, _ := w.reader(e, "")
		subscribe(t, reader, "mcpledger://press/file:///a")
		readers = append(readers, reader)
	}
	w.gateway.Sweep()
	if got := p.asked(); got != "subscribe file:///a" {
		t.Errorf("with three readers the server was asked: %s", got)
	}
	for i, reader := range readers {
		if i == len(readers)-1 && strings.Contains(p.asked(), "unsubscribe") {
			t.Error("the server was told to stop while somebody listens")
		}
		w.must(reader.Close())
	}
	eventually(t, "the server is told to stop", func() bool { return p.asked() == "subscribe file:///a, unsubscribe file:///a" })
}

func TestASubscriptionOutlivesTheServersSession(t *testing.T) {
	w := newWorld(t)
	p, url := newPress(t, false)
	w.remote("press", url)
	w.start()
	w.await("press", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		reader, told := w.reader(e, "")
		subscribe(t, reader, "mcpledger://press/file:///a")
		until(t, told, func() { p.update("file:///a") })
		p.restart()
		// Somebody's call finds that the session is gone.
		if _, err := reader.CallTool(context.Background(), &mcp.CallToolParams{Name: "press__nothing", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		for len(told) > 0 {
			<-told
		}
		until(t, told, func() { p.update("file:///a") })
		w.must(reader.Close())
	})
}

// Every session of such a server ends as soon as it is asked what somebody subscribed to
// before.
func TestAServerThatEndsItsSessionWhenAskedIsLeftAloneForAWhile(t *testing.T) {
	w := newWorld(t)
	began := time.Now()
	w.options.Now = func() time.Time { return began } // the while does not end
	p, url := newPress(t, false)
	w.remote("press", url)
	w.program("steady", mcptest.Fake{})
	w.start()
	w.await("press", projections.StateReady)
	w.await("steady", projections.StateReady)
	reader, told := w.reader(legacy, "")
	subscribe(t, reader, "mcpledger://press/file:///a")
	until(t, told, func() { p.update("file:///a") })
	p.deafen()
	if _, err := reader.CallTool(context.Background(), &mcp.CallToolParams{Name: "press__nothing", Arguments: map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	w.awaitEvents("press", events.TypeSessionDiscarded, 2)
	for range 200 { // beside which a storm would open sessions by the dozen
		if _, err := reader.CallTool(context.Background(), &mcp.CallToolParams{Name: "steady__echo", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.recorded("press", events.TypeSessionOpened)); n > 5 {
		t.Errorf("%d sessions were opened", n)
	}
}

func TestUpdatesAreAnnouncedWhereAServerTellsOfThem(t *testing.T) {
	w := newWorld(t)
	_, url := newPress(t, false)
	w.remote("press", url)
	w.remote("plain", (&script{tools: `[]`, capabilities: `{"tools":{},"resources":{}}`}).serve(t))
	w.start()
	w.await("press", projections.StateReady)
	w.await("plain", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		for path, want := range map[string]bool{"": true, "?servers=plain": false, "/press": true, "/plain": false} {
			capabilities := w.connect(e, path).InitializeResult().Capabilities
			if capabilities.Resources == nil || capabilities.Resources.Subscribe != want || !capabilities.Resources.ListChanged {
				t.Errorf("%q announces %+v, want subscribe %v", path, capabilities.Resources, want)
			}
		}
	})
	c := w.raw("/plain")
	if _, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`); !strings.Contains(string(body), "-32601") {
		t.Errorf("a server that tells of none: %s", body)
	}
	if _, _, body := w.raw("").send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///nowhere"}}`); !strings.Contains(string(body), "no server here has") {
		t.Errorf("an address that leads nowhere: %s", body)
	}
}

func TestAnUpdateOfAPartIsOneOfTheWhole(t *testing.T) {
	for _, c := range []struct {
		subscribed, updated string
		want                bool
	}{
		{"file:///a", "file:///a", true},
		{"file:///a", "file:///a/b", true},
		{"file:///a", "file:///a#b", true},
		{"file:///", "file:///a", true},
		{"file:///a", "file:///ab", false},
		{"file:///a/b", "file:///a", false},
	} {
		if got := gateway.Covers(c.subscribed, c.updated); got != c.want {
			t.Errorf("subscribed to %s, updated %s: told %v, want %v", c.subscribed, c.updated, got, c.want)
		}
	}
}

// Each is looked up, and where it has no server's name in it all servers are asked.
func TestAStreamAsksForAThousandResourcesAtMost(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(0, 0))
	uris := []string{`"mcpledger://elsewhere/file:///"`}
	for i := range 1200 {
		uris = append(uris, fmt.Sprintf(`"mcpledger://gossip/file:///%d"`, i))
	}
	stream := bufio.NewReader(w.listen("?servers=gossip", `{"resourceSubscriptions":[`+strings.Join(uris, ",")+`]}`))
	said := hears(t, stream, "acknowledged")[0]
	if n := strings.Count(said, "file:///"); n != 999 || !strings.Contains(said, `file:///998"`) || strings.Contains(said, `file:///999"`) {
		t.Errorf("%d of the first thousand are granted, want all that the address has, and no more", n)
	}
}
