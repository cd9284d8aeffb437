package gateway

import "mcpledger/events"

// For the tests of what every answer rests on.
var (
	Splice = splice
	Member = member
	Covers = covers
)

// Sweep ends what lies idle, without waiting for the time to look.
func (g *Gateway) Sweep() { g.sweep() }

// Clients returns how many sessions there are.
func (g *Gateway) Clients() int { return len(g.clients.all()) }

// UnderWay returns how many requests and streams are.
func (g *Gateway) UnderWay() (requests, streams int) { return len(g.requests), len(g.streams) }

// Take bounds the sessions there may be.
func (g *Gateway) Take(sessions int) { g.clients.most = sessions }

// Subscribed returns how many servers have a resource that somebody subscribed to.
func (g *Gateway) Subscribed() int {
	g.subscriptions.mu.Lock()
	defer g.subscriptions.mu.Unlock()
	return len(g.subscriptions.topics)
}

// Missed has a session's stream tell of everything.
func (g *Gateway) Missed(session string) {
	for _, c := range g.clients.all() {
		if c.id == session {
			g.missed(c)
		}
	}
}

// Views returns how many views are kept.
func (g *Gateway) Views() int { return len(g.openViews()) }

// KeepLevels bounds the callers whose levels of log messages are kept.
func (g *Gateway) KeepLevels(callers int) { g.levels.most = callers }

// Levels returns how many callers' levels are kept of a server.
func (g *Gateway) Levels(server events.ServerName) int {
	g.levels.mu.Lock()
	defer g.levels.mu.Unlock()
	return len(g.levels.asked[server])
}
