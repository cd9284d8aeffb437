package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// client is one MCP client's session, begun by initialize. Clients of 2026-07-28
// have none.
type client struct {
	id   string
	view *view
	life context.Context // ends with the session
	end  context.CancelFunc
	// updates is who subscribes to resources in the session.
	updates *subscriber
	// outbox is read by the session's streams. What there is to hear while none is open
	// waits for the next.
	outbox   outbox
	underway underway // its requests

	mu      sync.Mutex
	known   bool   // the handshake is done, and what follows is set
	caller  string // who opened it; nobody else may use it
	name    string // of the client's program
	version string // of the protocol
	level   string // least level of log messages; empty: none were asked for
	listed  bool   // it has had its first list
	used    time.Time
	busy    int // requests and streams under way
}

// introduce notes whose session it is; from then on it may be used.
func (c *client) introduce(caller, name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.caller, c.name, c.version = true, caller, name, version
}

// update notes an update of a resource that is, or is part of, a whole.
func (c *client) update(params map[string]json.RawMessage, whole string) {
	c.outbox.note(
		notice{key: string(params["uri"]), message: notification(mcp.MethodNotificationResourceUpdated, encoded(params))},
		notice{key: string(quoted(whole)), message: notification(mcp.MethodNotificationResourceUpdated, encoded(map[string]string{"uri": whole}))},
	)
}

// errCancelled is the cause of a call that its client cancelled. Whoever looks for a
// cancellation in a cause finds one.
var errCancelled = fmt.Errorf("by the client: %w", context.Canceled)

// logLevel returns the least level of log messages that the client asked for.
func (c *client) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// protocolVersion returns the version of the protocol that the session speaks.
func (c *client) protocolVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// setLogLevel sets it.
func (c *client) setLogLevel(level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
}

// firstList reports whether this is the client's first list.
func (c *client) firstList() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.listed
	c.listed = true
	return first
}

// clients are the sessions of all views.
type clients struct {
	idle time.Duration
	most int // sessions
	now  func() time.Time

	mu   sync.Mutex
	byID map[string]*client
}

func newClients(idle time.Duration, now func() time.Time) *clients {
	return &clients{idle: idle, most: maxClients, now: now, byID: map[string]*client{}}
}

// errNoSession reports a session id that is not, or no longer, in use.
var errNoSession = errors.New("no such session")

// add begins a session.
func (s *clients) add(v *view) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &client{id: rand.Text(), view: v, used: s.now()}
	c.life, c.end = context.WithCancel(context.Background())
	c.updates = &subscriber{tell: c.update}
	c.outbox.numbered = true
	s.byID[c.id] = c
	return c
}

// find returns the view's session of that id.
func (s *clients) find(id string, v *view) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil || c.view != v {
		return nil, errNoSession
	}
	return c, nil
}

// enter returns the session of that id for a request of its caller, and what ends
// the request.
func (s *clients) enter(id string, v *view, caller string) (c *client, leave func(), err error) {
	if c, err = s.find(id, v); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || c.caller != caller {
		return nil, nil, errNoSession
	}
	c.busy++
	c.used = s.now()
	return c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
		c.used = s.now()
	}, nil
}

// remove ends a session's place here; false if it had none.
func (s *clients) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.byID[id]
	delete(s.byID, id)
	return found
}

// all returns the sessions there are.
func (s *clients) all() []*client {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*client, 0, len(s.byID))
	for _, c := range s.byID {
		all = append(all, c)
	}
	return all
}

// expired returns the sessions that lay idle for too long.
func (s *clients) expired() []*client {
	now := s.now()
	return slices.DeleteFunc(s.all(), func(c *client) bool {
		since, idle := c.idleSince()
		return !idle || now.Sub(since) < s.idle
	})
}

// oldest returns the session that lay idle longest, if there are as many sessions as
// there may be. It is nil where there is room, and not ok where all are in use.
func (s *clients) oldest() (oldest *client, ok bool) {
	all := s.all()
	if len(all) < s.most {
		return nil, true
	}
	var longest time.Time
	for _, c := range all {
		if since, idle := c.idleSince(); idle && (oldest == nil || since.Before(longest)) {
			oldest, longest = c, since
		}
	}
	return oldest, oldest != nil
}

// idleSince returns since when a session has no request or stream under way; not idle if
// it has one.
func (c *client) idleSince() (since time.Time, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.busy == 0
}

// of returns the sessions of a view.
func (s *clients) of(v *view) []*client {
	return slices.DeleteFunc(s.all(), func(c *client) bool { return c.view != v })
}

// views returns the views that have a session.
func (s *clients) views() map[*view]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[*view]bool{}
	for _, c := range s.byID {
		used[c.view] = true
	}
	return used
}

// sessionIDs gives the library the sessions of one view.
type sessionIDs struct{ view *view }

// Generate begins a session and returns its id.
func (s *sessionIDs) Generate() string { return s.view.gateway.clients.add(s.view).id }

// Validate returns an error for an id that is not in use.
func (s *sessionIDs) Validate(id string) (terminated bool, err error) {
	_, err = s.view.gateway.clients.find(id, s.view)
	return false, err
}

// Terminate is called when a session ends, which drop has seen to.
func (s *sessionIDs) Terminate(string) (notAllowed bool, err error) { return false, nil }
