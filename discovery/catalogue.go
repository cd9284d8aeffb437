package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// refreshInterval is how often at most a server's tools are listed anew because it
// says that they changed.
const refreshInterval = 30 * time.Second

// toolsChanged lists a server's tools anew. A session calls it from a goroutine of
// its own, never twice at a time, and notices that come meanwhile become one more
// call; so a burst makes one run at the start and one at the end.
func (s *Service) toolsChanged(name events.ServerName) {
	s.awaitFlight(s.ctx, name) // what is under way may have looked before the change
	if _, err := s.begin(s.ctx, request{trigger: events.TriggerRefresh, servers: []events.ServerName{name}}); err != nil {
		s.logger.WarnContext(s.ctx, "tools not listed anew", slog.String("server", string(name)), slog.Any("err", err))
	}
	s.awaitFlight(s.ctx, name)
	_ = s.pause(s.ctx, refreshInterval) // ends early when the service stops
}

// catalogueChange compares a list of tools with the one known for the entry. An
// empty list after a full one is believed the second time. A known list that the log has
// no more is recorded anew, even if it is the same, for it can be offered to nobody.
func (s *Service) catalogueChange(ctx context.Context, srv *config.Server, now upstream.Catalogue) (events.CatalogueChanged, bool) {
	var known *projections.Catalogue
	var emptySeen bool
	if err := s.engine.View(func(st *projections.State) { known, emptySeen = st.Catalogue(srv.Name) }); err != nil {
		return events.CatalogueChanged{}, false
	}
	var old upstream.Catalogue
	if known != nil {
		if now.Len() == 0 && len(known.Names) > 0 && !emptySeen {
			return events.CatalogueChanged{}, false
		}
		server := slog.String("server", string(srv.Name))
		body, err := s.log.Content(ctx, known.Content)
		switch lost := errors.Is(err, events.ErrNotFound); {
		case err != nil && !lost: // it may be read the next time
			s.logger.ErrorContext(ctx, "known catalogue cannot be read", server, slog.Any("err", err))
			return events.CatalogueChanged{}, false
		case known.Hash == now.Hash && !lost:
			return events.CatalogueChanged{}, false
		case known.Hash == now.Hash:
			old = now
		case lost:
			old = namesAlone(known.Names)
		default:
			if old, err = upstream.ParseCatalogue(body); err != nil {
				old = namesAlone(known.Names)
			}
		}
		if err != nil {
			s.logger.WarnContext(ctx, "known catalogue is lost, the present one takes its place", server, slog.Any("err", err))
		}
	}
	diff := now.Diff(old)
	return events.CatalogueChanged{
		Hash: now.Hash, Added: diff.Added, Removed: diff.Removed, Changed: diff.Changed, Tools: now.Tools,
	}, true
}

// namesAlone stands for a catalogue of which only the names are known: every tool that
// stays counts as changed.
func namesAlone(names []string) upstream.Catalogue {
	tools := make([]map[string]string, len(names))
	for i, name := range names {
		tools[i] = map[string]string{"name": name}
	}
	body, err := json.Marshal(tools)
	if err != nil {
		return upstream.Catalogue{}
	}
	c, _ := upstream.ParseCatalogue(body) // names that a catalogue had
	return c
}
