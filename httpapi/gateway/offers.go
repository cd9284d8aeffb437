package gateway

import (
	"context"
	"encoding/json"
	"time"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// offer is what a server said that it offers, as of one discovery.
type offer struct {
	at           time.Time
	capabilities json.RawMessage
}

// offered reports whether a server said at its last discovery that it offers c.
func (l *lists) offered(ctx context.Context, v projections.Server, c upstream.Capability) bool {
	return upstream.Offers(l.capabilities(ctx, v), c)
}

// capabilities returns what a server said at its last discovery that it can do, nil if
// that cannot be read. It reads the log, once for each discovery.
func (l *lists) capabilities(ctx context.Context, v projections.Server) json.RawMessage {
	l.mu.Lock()
	known, found := l.offers[v.ConfigKey]
	l.mu.Unlock()
	if !found || !known.at.Equal(v.VerifiedAt) {
		known = offer{at: v.VerifiedAt}
		q := events.Query{Subject: v.Name, ConfigKey: v.ConfigKey, Types: []events.Type{events.TypeDiscoverySucceeded}, Desc: true, Limit: 1}
		for e, err := range l.gateway.log.Read(ctx, q) {
			if err != nil {
				return nil
			}
			if d, ok := e.Data.(events.DiscoverySucceeded); ok {
				known.capabilities = d.Capabilities
			}
		}
		l.mu.Lock()
		l.offers[v.ConfigKey] = known
		l.mu.Unlock()
	}
	return known.capabilities
}
