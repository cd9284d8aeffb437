package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// Bounds on a list of resources or prompts, and on asking for one.
const (
	maxListPages = 64
	maxListBytes = 8 << 20 // of one server
	listTimeout  = 15 * time.Second
	listsAtOnce  = 8
	// listFresh is how long a list is good for. A server that says that it changed is
	// asked anew at once.
	listFresh = 5 * time.Minute
	// refusedFresh is how long a server that gave none is left alone.
	refusedFresh = 30 * time.Second
)

// kind is one of the lists that servers have besides their tools.
type kind struct {
	method     string // that lists it
	member     string // of the result, which holds the array
	capability upstream.Capability
}

var kinds = map[string]kind{
	methodResources: {methodResources, "resources", upstream.CapabilityResources},
	methodTemplates: {methodTemplates, "resourceTemplates", upstream.CapabilityResources},
	methodPrompts:   {methodPrompts, "prompts", upstream.CapabilityPrompts},
}

// lists holds what servers last listed besides their tools, since clients ask for it
// whenever they start, and asking a server may mean starting it.
type lists struct {
	gateway *Gateway
	changes atomic.Int64

	mu    sync.Mutex
	known map[listKey]*list
	// offers are the capabilities of servers, by connection.
	offers map[events.ConfigKey]offer

	refusals complaints // of servers that offer a list and give none
}

// sessionOf returns the client whose session with a server is that client's own, empty
// where clients share one.
func sessionOf(v projections.Server, client string) string {
	if v.Entry.Settings.Session != events.SessionPerClient {
		return ""
	}
	return client
}

// listKey names what a connection lists by one method.
type listKey struct {
	connection events.ConfigKey
	method     string
	client     string // on whose session; empty where clients share one, or for whichever
}

// list is what one server listed, or would not.
type list struct {
	server events.ServerName
	key    listKey
	until  time.Time
	items  []json.RawMessage
	done   chan struct{} // closed when it is there
}

func newLists(g *Gateway) *lists {
	return &lists{gateway: g, known: map[listKey]*list{}, offers: map[events.ConfigKey]offer{}}
}

// version counts the times that a server said one of these lists had changed.
func (l *lists) version() int64 { return l.changes.Load() }

// forget drops a server's lists: it says that they changed.
func (l *lists) forget(server events.ServerName) {
	l.changes.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, known := range l.known {
		if known.server == server {
			delete(l.known, key)
		}
	}
}

// sweep drops what is no longer good, so that connections and clients which are gone
// leave nothing.
func (l *lists) sweep() {
	now := l.gateway.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, known := range l.known {
		if isClosed(known.done) && now.After(known.until) {
			delete(l.known, key)
		}
	}
	standing, err := l.gateway.fleet.now()
	if err != nil {
		return
	}
	inForce := map[events.ConfigKey]bool{}
	for _, one := range standing.servers {
		inForce[one.ConfigKey] = true
	}
	maps.DeleteFunc(l.offers, func(key events.ConfigKey, _ offer) bool { return !inForce[key] })
	l.refusals.retain(inForce)
	l.gateway.oddItems.retain(inForce)
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// of returns what a server lists, empty if it offers nothing of the kind or does not
// answer: one server's trouble is not another's.
func (l *lists) of(ctx context.Context, v projections.Server, k kind, client string) []json.RawMessage {
	if !v.Offered() || !l.offered(ctx, v, k.capability) {
		return nil
	}
	key := listKey{v.ConfigKey, k.method, sessionOf(v, client)}
	l.mu.Lock()
	known := l.known[key]
	if known == nil || isClosed(known.done) && l.gateway.now().After(known.until) {
		known = &list{server: v.Name, key: key, done: make(chan struct{})}
		l.known[key] = known
		// The answer is for all who wait, so it does not end with the first of them.
		go l.fill(context.WithoutCancel(ctx), known, k)
	}
	l.mu.Unlock()
	select {
	case <-known.done:
		return known.items
	case <-ctx.Done():
		return nil
	}
}

// fill asks a server for its list.
func (l *lists) fill(ctx context.Context, into *list, k kind) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	defer close(into.done)
	items, err := l.pages(ctx, into.server, k, into.key.client)
	good, wrong := listFresh, []string(nil)
	if err != nil {
		good, wrong = refusedFresh, []string{err.Error()}
	}
	for _, one := range l.refusals.news(listKey{connection: into.key.connection, method: k.method}, wrong) {
		l.gateway.logger.WarnContext(ctx, "list not offered", slog.String("server", string(into.server)),
			slog.String("method", k.method), slog.String("err", one))
	}
	into.items, into.until = items, l.gateway.now().Add(good)
}

// pages returns the elements of all pages of a list, each as sent.
func (l *lists) pages(ctx context.Context, server events.ServerName, k kind, client string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	var params json.RawMessage
	size, seen := 0, map[string]bool{}
	for range maxListPages {
		answer, err := l.gateway.discovery.Ask(ctx, discovery.Question{
			Server: server, Method: k.method, Params: params, Client: client, Timeout: listTimeout,
		})
		switch {
		case err != nil:
			return nil, err
		case answer.RPC != nil:
			return nil, fmt.Errorf("answered with the JSON-RPC error %d", answer.RPC.Code)
		case answer.Failure != nil:
			return nil, errors.New(answer.Failure.Code)
		}
		if size += len(answer.Result); size > maxListBytes {
			return nil, fmt.Errorf("the list is larger than %d bytes", maxListBytes)
		}
		var page []json.RawMessage
		if err := json.Unmarshal(member(answer.Result, k.member), &page); err != nil {
			return nil, errors.New("the answer holds no list")
		}
		items = append(items, page...)
		var cursor string
		_ = json.Unmarshal(member(answer.Result, "nextCursor"), &cursor)
		if cursor == "" {
			return items, nil
		}
		if seen[cursor] {
			return nil, errors.New("the list repeats a cursor")
		}
		seen[cursor] = true
		params = encoded(map[string]string{"cursor": cursor})
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxListPages)
}

// all returns what each of the servers lists. They are asked at the same time, a few at
// once.
func (l *lists) all(ctx context.Context, servers []projections.Server, k kind, client string) [][]json.RawMessage {
	lists := make([][]json.RawMessage, len(servers))
	places := make(chan struct{}, listsAtOnce)
	var asking sync.WaitGroup
	for i, one := range servers {
		asking.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			lists[i] = l.of(ctx, one, k, client)
		})
	}
	asking.Wait()
	return lists
}
