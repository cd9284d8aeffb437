package gateway

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpledger/events"
	"mcpledger/projections"
)

// view is what one address offers, with the library's server for it.
type view struct {
	place
	gateway *Gateway

	protocol *server.MCPServer
	http     *server.StreamableHTTPServer

	open atomic.Int64 // requests and streams under way

	mu       sync.Mutex
	streams  map[*listening]bool
	listed   map[string]bool   // callers without a session that have had their first list
	told     [sha256.Size]byte // what the list of tools held when clients were told last
	read     *standing         // what it was made of when a client read it last
	strayed  bool              // a client has read another one than told since
	toldAt   time.Time
	toldList int64 // lists.version
}

// instructions are what clients may show a model about an address of several servers.
const instructions = "These are the tools of several MCP servers behind one address; a tool's name begins with its server's. " +
	"A server that is missing is listed by ledger__list_servers, and ledger__why tells what is wrong with it and what would bring it back."

// heartbeat is how often a session's stream is written to, so that proxies do not
// close it for silence, and the end of a client that said nothing is noticed.
const heartbeat = 30 * time.Second

// newView makes the view of a place.
func newView(g *Gateway, at place) *view {
	v := &view{place: at, gateway: g, listed: map[string]bool{}, streams: map[*listening]bool{}}
	v.protocol = server.NewMCPServer("mcpledger", g.version,
		server.WithToolCapabilities(true), server.WithResourceCapabilities(false, true),
		server.WithPromptCapabilities(true), server.WithCompletions(), server.WithLogging(),
	)
	v.http = server.NewStreamableHTTPServer(v.protocol,
		server.WithSessionIdManager(&sessionIDs{view: v}),
		// The guard before us checks hosts and origins.
		server.WithDisableLocalhostProtection(true),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)), // what matters of it is seen elsewhere
	)
	v.told, v.toldList = v.content(), g.lists.version()
	return v
}

// enterView returns the view of a place for a request, making it if there is none, and what
// ends the request. Views in use are as many as there are sessions and requests, at most.
func (g *Gateway) enterView(at place) (v *view, leave func()) {
	key := at.key()
	g.mu.Lock()
	defer g.mu.Unlock()
	if v = g.views[key]; v == nil {
		v = g.addView(key, at)
	}
	v.open.Add(1)
	return v, func() { v.open.Add(-1) }
}

// addView makes the view of a place; g.mu is held.
func (g *Gateway) addView(key string, at place) *view {
	if len(g.views) >= maxIdleViews {
		used := g.clients.views()
		maps.DeleteFunc(g.views, func(_ string, v *view) bool { return v.open.Load() == 0 && !used[v] })
	}
	v := newView(g, at)
	g.views[key] = v
	return v
}

// openViews returns the views there are.
func (g *Gateway) openViews() []*view {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*view, 0, len(g.views))
	for _, v := range g.views {
		all = append(all, v)
	}
	return all
}

// servers returns the servers of the view, sorted by name.
func (v *view) servers(s *standing) []projections.Server {
	if len(v.only) == 0 {
		return s.servers
	}
	var servers []projections.Server
	for _, name := range v.only {
		if one, configured := s.server(name); configured {
			servers = append(servers, one)
		}
	}
	return servers
}

// resolve returns where a tool's or prompt's name leads. named has those that cannot
// be split.
func (v *view) resolve(name string, named map[string]route) (route, bool) {
	if v.single {
		return route{v.only[0], name}, true
	}
	to, found := named[name]
	if !found {
		to.server, to.name, found = v.gateway.namer.Split(name)
	}
	return to, found && v.includes(to.server)
}

// name returns the name that a server's tool or prompt has in the view.
func (v *view) name(server events.ServerName, own string) string {
	if v.single {
		return own
	}
	return v.gateway.namer.Name(server, own)
}

// maxListed bounds how many callers without a session are remembered; after that all
// are new again.
const maxListed = 1024

// firstList reports whether this is the first list of a caller without a session.
func (v *view) firstList(caller string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	first := !v.listed[caller]
	if len(v.listed) >= maxListed {
		clear(v.listed)
	}
	v.listed[caller] = true
	return first
}

// content identifies what the view's list of tools holds now.
func (v *view) content() (sum [sha256.Size]byte) {
	standing, err := v.gateway.fleet.now()
	if err != nil {
		return sum
	}
	return v.contentOf(standing)
}

// noteRead notes that a client reads the list of tools made of s. If that is none that
// clients were told of, they are told, although it may be the former list again by then.
func (v *view) noteRead(s *standing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s == v.read {
		return
	}
	v.read = s
	if !v.strayed && v.contentOf(s) != v.told {
		v.strayed = true
		v.gateway.fleet.wake()
	}
}

// contentOf identifies what the view's list of tools holds as servers stand in s.
func (v *view) contentOf(s *standing) [sha256.Size]byte {
	digest := sha256.New()
	for _, one := range v.servers(s) {
		if one.Offered() && one.Catalogue != nil {
			digest.Write([]byte(contentKey(one)))
		}
	}
	return [sha256.Size]byte(digest.Sum(nil))
}

// announce tells the view's clients which of their lists changed since they were
// told last, unless that was a moment ago; then it returns when to look again.
func (v *view) announce(now time.Time) (again time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if next := v.toldAt.Add(v.gateway.interval); now.Before(next) {
		return next // a server that cries all the time is not worth a look each time
	}
	content, lists := v.content(), v.gateway.lists.version()
	if content == v.told && !v.strayed && lists == v.toldList {
		return time.Time{}
	}
	v.toldAt = now
	if content != v.told || v.strayed {
		v.told, v.strayed = content, false
		v.tellAll(mcp.MethodNotificationToolsListChanged)
	}
	if lists != v.toldList {
		v.toldList = lists
		v.tellAll(mcp.MethodNotificationResourcesListChanged)
		v.tellAll(mcp.MethodNotificationPromptsListChanged)
	}
	return time.Time{}
}

// tellAll tells the clients that a list changed; v.mu is held.
func (v *view) tellAll(method string) {
	for _, c := range v.gateway.clients.of(v) {
		c.outbox.tell(method, nil)
	}
	for l := range v.streams {
		l.changed(method)
	}
}

// attach has a stream hear of changed lists, until detach.
func (v *view) attach(l *listening) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.streams[l] = true
}

func (v *view) detach(l *listening) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.streams, l)
}

// forget has the library forget a session, which ends its stream.
func (v *view) forget(session string) {
	header := http.Header{}
	header.Set(server.HeaderKeySessionID, session)
	v.http.Handle(discard{}, &server.HTTPRequest{Method: http.MethodDelete, Header: header, Context: context.Background()})
}

// discard takes the library's answer to a request of ours.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Flush()                      {}
func (discard) CanStream() bool             { return false }
