package discovery

import (
	"context"
	"encoding/json"
	"sync"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// definitions remembers the tools of the catalogue last looked at.
type definitions struct {
	mu        sync.Mutex // held while it is read: calls of one pool are to one server
	content   string     // under which the log keeps them
	catalogue upstream.Catalogue
}

// definition returns the tool's definition where the server may ask in it for
// parameters to be repeated in HTTP headers, as those of 2026-07-28 may; else nil,
// also when it is not known.
func (s *Service) definition(ctx context.Context, l *line, live *liveSession, p *pendingCall) json.RawMessage {
	if p.server.Transport != events.TransportHTTP || live.Info().Era != upstream.EraModern || p.view.Catalogue == nil {
		return nil
	}
	d := &l.pool.tools
	d.mu.Lock()
	defer d.mu.Unlock()
	if content := p.view.Catalogue.Content; d.content != content {
		body, err := s.log.Content(ctx, content)
		if err != nil {
			return nil
		}
		known, err := upstream.ParseCatalogue(body)
		if err != nil {
			return nil
		}
		d.content, d.catalogue = content, known
	}
	definition, _ := d.catalogue.Tool(p.Tool)
	return definition
}
