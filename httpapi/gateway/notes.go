package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// levelNames are the levels of log messages, the least first.
var levelNames = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns a level's place among them, -1 for none of them.
func severity(level string) int { return slices.Index(levelNames, level) }

// note is a log message of a server.
type note struct {
	level   string
	message []byte
}

// logMessage is what is read of a server's log message.
func logMessage(params json.RawMessage) note {
	var said struct {
		Level string `json:"level"`
	}
	// A message without a level is of the lowest.
	_ = json.Unmarshal(params, &said)
	return note{level: said.Level, message: notification(methodLog, params)}
}

// calls are the calls under way, by server, whose clients hear what the server logs
// meanwhile. Nobody else does: what a server says during one client's call may be
// about that call.
type calls struct {
	mu       sync.Mutex
	underway map[events.ServerName]map[*listener]bool
}

// listener passes what a server logs on to one call's client.
type listener struct {
	client string
	least  int
	notes  chan note
}

// maxNotes is how many log messages may wait for a client; more are dropped.
const maxNotes = 64

// listen passes a server's log messages to out until done is called.
func (c *calls) listen(server events.ServerName, client string, out *reply) (done func()) {
	if !out.events || severity(out.level) < 0 {
		return func() {}
	}
	l := &listener{client: client, least: severity(out.level), notes: make(chan note, maxNotes)}
	c.mu.Lock()
	if c.underway == nil {
		c.underway = map[events.ServerName]map[*listener]bool{}
	}
	if c.underway[server] == nil {
		c.underway[server] = map[*listener]bool{}
	}
	c.underway[server][l] = true
	c.mu.Unlock()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for n := range l.notes {
			out.notify(n.message)
		}
	}()
	return func() {
		c.mu.Lock()
		delete(c.underway[server], l)
		if len(c.underway[server]) == 0 {
			delete(c.underway, server)
		}
		close(l.notes)
		c.mu.Unlock()
		<-passed
	}
}

// tell hands a log message to the calls under way on a server; to those of one
// client if the server's session is that client's own. It does not block.
func (c *calls) tell(server events.ServerName, client string, n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.underway[server] {
		if client != "" && l.client != client || severity(n.level) < l.least {
			continue
		}
		select {
		case l.notes <- n:
		default:
		}
	}
}

// levels remembers which level of log messages servers were asked for, by the client whose
// session it was, empty for the one that clients share. Of such a session the least that
// any of them wants is what is asked for; each hears only what it asked for itself.
type levels struct {
	most int // clients that are remembered of a server; after that all are asked for anew

	mu    sync.Mutex
	asked map[events.ServerName]map[string]int
}

// setLevelTimeout is how long a server may take over its level before a call goes on
// without.
const setLevelTimeout = 5 * time.Second

// forget notes that a client's session with a server is a new one, which was asked for
// nothing.
func (l *levels) forget(server events.ServerName, client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asked[server], client)
}

// leave forgets a client that has gone.
func (l *levels) leave(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, byClient := range l.asked {
		delete(byClient, client)
	}
}

// lower notes a level that a server is asked for on a session; false if it was asked for
// as much before.
func (l *levels) lower(server events.ServerName, client string, level int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, asked := l.asked[server][client]
	switch {
	case asked && before <= level:
		return false
	case !asked && len(l.asked[server]) >= l.most:
		clear(l.asked[server]) // callers without a session do not say that they go
	}
	if l.asked == nil {
		l.asked = map[events.ServerName]map[string]int{}
	}
	if l.asked[server] == nil {
		l.asked[server] = map[string]int{}
	}
	l.asked[server][client] = level
	return true
}

// wantLogs has a server log what a call's client asked for, where the server keeps a
// level for its session: those of 2026-07-28 are told in each request.
func (g *Gateway) wantLogs(ctx context.Context, v projections.Server, x *exchange) {
	level := severity(x.out.level)
	if level < 0 || !v.Offered() || mcp.IsModernProtocol(v.ProtocolVersion) || !g.lists.offered(ctx, v, upstream.CapabilityLogging) {
		return
	}
	client := sessionOf(v, x.client)
	if !g.levels.lower(v.Name, client, level) {
		return
	}
	// A server that will not is one that logs what it likes.
	_, _ = g.discovery.Ask(ctx, discovery.Question{
		Server: v.Name, Method: methodSetLevel, Params: encoded(map[string]string{"level": x.out.level}),
		Client: x.client, Timeout: setLevelTimeout,
	})
	g.levels.lower(v.Name, client, level) // again, for a session that the question itself opened
}
