package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// subscriptions are the resources whose updates clients want to hear of. Clients share
// a server's session, so a server is asked once for each resource, while anybody wants
// to hear of it, and asked again on every new session; an update goes to those alone who
// subscribed. They are safe for concurrent use.
type subscriptions struct {
	gateway *Gateway

	mu     sync.Mutex
	topics map[events.ServerName]map[topicKey]*topic
	// renewals are of the servers that have topics.
	renewals map[events.ServerName]*renewal
}

// topicKey names a resource of a server, at one client's own session if it has one.
type topicKey struct {
	server events.ServerName
	client string // empty for the session that clients share
	uri    string // the server's own
}

// topic is a resource that somebody subscribed to.
type topic struct {
	// turn is held while the server is asked, so that the last word it hears is the
	// last one that was meant.
	turn chan struct{}
	told bool // the server tells of updates, as far as we know; guarded by turn

	subscribers map[*subscriber]address // guarded by subscriptions.mu
}

// address says in which form a subscriber knows the addresses of a server's resources:
// with the server's name before them, or as the server has them.
type address struct{ prefixed bool }

func (a address) of(server events.ServerName, own string) string {
	if a.prefixed {
		return addressOf(server, own)
	}
	return own
}

// subscriber is who hears of updates: a session, or a stream of 2026-07-28.
type subscriber struct {
	// tell sends a notification of an update: its parameters, and the address that was
	// subscribed to. It does not block.
	tell func(params map[string]json.RawMessage, whole string)

	topics map[topicKey]bool // guarded by subscriptions.mu
	over   bool              // it hears no more; likewise
}

// Bounds on subscriptions.
const (
	maxSubscriptions = 1000    // of one subscriber
	maxAddress       = 8 << 10 // bytes of what is subscribed to
	subscribeTimeout = 15 * time.Second
)

func newSubscriptions(g *Gateway) *subscriptions {
	return &subscriptions{gateway: g, topics: map[events.ServerName]map[topicKey]*topic{}, renewals: map[events.ServerName]*renewal{}}
}

// add subscribes to a resource. Whoever it was for is none of its subscribers if the
// server was not asked, or refused.
func (s *subscriptions) add(ctx context.Context, key topicKey, who *subscriber, as address) (discovery.Answer, error) {
	if len(key.uri) > maxAddress {
		return discovery.Answer{RPC: addressTooLong}, nil
	}
	t := s.join(key, who, as)
	if t == nil {
		return discovery.Answer{RPC: tooManySubscriptions}, nil
	}
	said, err := s.ask(ctx, key, t)
	if err != nil || said.Failure != nil {
		s.remove(key, who)
	}
	return said, err
}

// addressTooLong refuses what is longer than anybody's addresses are.
var addressTooLong = &upstream.RPCError{
	Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("an address to subscribe to has %d bytes at most", maxAddress),
}

// tooManySubscriptions refuses what is more than a subscriber may have.
var tooManySubscriptions = &upstream.RPCError{
	Code: mcp.INVALID_REQUEST, Message: fmt.Sprintf("a client may subscribe to %d resources", maxSubscriptions),
}

// join adds a subscriber to a topic; nil if it has as many as it may have, or hears no
// more.
func (s *subscriptions) join(key topicKey, who *subscriber, as address) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who.over || !who.topics[key] && len(who.topics) >= maxSubscriptions {
		return nil
	}
	if s.topics[key.server] == nil {
		s.topics[key.server], s.renewals[key.server] = map[topicKey]*topic{}, &renewal{}
	}
	t := s.topics[key.server][key]
	if t == nil {
		t = &topic{turn: make(chan struct{}, 1), subscribers: map[*subscriber]address{}}
		s.topics[key.server][key] = t
	}
	if who.topics == nil {
		who.topics = map[topicKey]bool{}
	}
	t.subscribers[who], who.topics[key] = as, true
	return t
}

// ask has a server tell of a topic's updates. A session that does so already is not
// asked again.
func (s *subscriptions) ask(ctx context.Context, key topicKey, t *topic) (discovery.Answer, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return discovery.Answer{}, context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	said, err := s.gateway.discovery.Ask(ctx, key.question(methodSubscribe))
	t.told = err == nil && said.Failure == nil
	return said, err
}

func (k topicKey) question(method string) discovery.Question {
	return discovery.Question{
		Server: k.server, Method: method, Params: encoded(map[string]string{"uri": k.uri}), Client: k.client, Timeout: subscribeTimeout,
	}
}

// remove ends one subscription. The server hears of it when it was the last.
func (s *subscriptions) remove(key topicKey, who *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[key.server][key]
	if t == nil || !who.topics[key] {
		return
	}
	delete(t.subscribers, who)
	delete(who.topics, key)
	if len(t.subscribers) == 0 {
		go s.leave(key, t)
	}
}

// end ends all that a subscriber has, for good.
func (s *subscriptions) end(who *subscriber) {
	s.mu.Lock()
	who.over = true
	keys := make([]topicKey, 0, len(who.topics))
	for key := range who.topics {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	for _, key := range keys {
		s.remove(key, who)
	}
}

// leave tells a server that nobody wants to hear of a topic any more, unless somebody
// does again.
func (s *subscriptions) leave(key topicKey, t *topic) {
	ctx, cancel := context.WithTimeout(s.gateway.life, subscribeTimeout)
	defer cancel()
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-t.turn }()
	if s.wanted(t) {
		return
	}
	if t.told {
		// Where there is no session, there is nothing to end, and none is opened.
		_, _ = s.gateway.discovery.Ask(ctx, key.question(methodUnsubscribe))
		t.told = false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(t.subscribers) > 0 || s.topics[key.server][key] != t {
		return
	}
	delete(s.topics[key.server], key)
	if len(s.topics[key.server]) == 0 {
		delete(s.topics, key.server)
		delete(s.renewals, key.server)
	}
}

// wanted reports whether a topic has subscribers.
func (s *subscriptions) wanted(t *topic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(t.subscribers) > 0
}

// updated tells the subscribers of an update. client is that of the session which the
// server said it on, if that serves one alone. It does not block.
func (s *subscriptions) updated(server events.ServerName, client string, raw json.RawMessage) {
	params := map[string]json.RawMessage{}
	var uri string
	if json.Unmarshal(raw, &params) != nil || json.Unmarshal(params["uri"], &uri) != nil {
		return
	}
	delete(params, "_meta") // which stream of the server's it came on is not for clients
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, t := range s.topics[server] {
		if key.client != client || !covers(key.uri, uri) {
			continue
		}
		for who, as := range t.subscribers {
			told := maps.Clone(params)
			told["uri"] = quoted(as.of(server, uri))
			who.tell(told, as.of(server, key.uri))
		}
	}
}

// remind tells a subscriber of an update of all that it subscribed to: it may have missed
// one.
func (s *subscriptions) remind(who *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range who.topics {
		whole := s.topics[key.server][key].subscribers[who].of(key.server, key.uri)
		who.tell(map[string]json.RawMessage{"uri": quoted(whole)}, whole)
	}
}

// covers reports whether a subscription to one resource is also one to another: the
// same, or a part of it.
func covers(subscribed, updated string) bool {
	rest, found := strings.CutPrefix(updated, subscribed)
	return found && (rest == "" || strings.HasSuffix(subscribed, "/") || strings.ContainsAny(rest[:1], "/?#"))
}

// subscribe answers resources/subscribe of a client with a session. Those of
// 2026-07-28 have subscriptions/listen instead.
func (g *Gateway) subscribe(ctx context.Context, x *exchange) answer {
	to, found := g.locate(ctx, x, x.request.params.URI)
	if !found {
		return noResource(x.request.params.URI)
	}
	said, err := g.subscriptions.add(ctx, g.topicOf(to, x.client), x.session.updates, x.view.addressed(x.request.params.URI))
	return x.asked(to.server, said, err)
}

// unsubscribe answers resources/unsubscribe.
func (g *Gateway) unsubscribe(ctx context.Context, x *exchange) answer {
	to, found := g.locate(ctx, x, x.request.params.URI)
	if !found {
		return noResource(x.request.params.URI)
	}
	g.subscriptions.remove(g.topicOf(to, x.client), x.session.updates)
	return resultOf([]byte("{}"))
}

// topicOf returns the topic that a client means by a resource.
func (g *Gateway) topicOf(to route, client string) topicKey {
	key := topicKey{server: to.server, uri: to.name}
	if standing, err := g.fleet.now(); err == nil {
		if one, found := standing.server(to.server); found {
			key.client = sessionOf(one, client)
		}
	}
	return key
}

// addressed returns the form of an address that a client named.
func (v *view) addressed(uri string) address {
	_, _, prefixed := parseAddress(uri)
	return address{prefixed: prefixed && !v.single}
}
