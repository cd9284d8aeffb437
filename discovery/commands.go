package discovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpledger/events"
)

// Discover attempts the servers named, whatever their skips and gates say, and
// joins runs that are under way for them. The run is recorded when it returns; done
// is closed when every outcome is. Where all are under way the run is that of the first,
// and where none is named there is none. It returns ErrUnknownServer, ErrDisabled,
// ErrBlocked or ErrStopping, and then nothing was begun.
func (s *Service) Discover(ctx context.Context, servers []events.ServerName, reason, actor string) (runID string, done <-chan struct{}, err error) {
	var r *run
	var flights []*flight
	for len(servers) > 0 && r == nil && len(flights) == 0 { // a run that was joined may have ended meanwhile
		if err := s.attemptable(servers); err != nil {
			return "", nil, err
		}
		r, err = s.begin(ctx, request{trigger: events.TriggerManual, servers: servers, reason: s.words(reason), actor: actor})
		if err != nil {
			return "", nil, err
		}
		flights = s.flightsOf(servers)
	}
	switch {
	case r != nil:
		runID = r.id
	case len(flights) > 0:
		runID = flights[0].runID
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, f := range flights {
			<-f.done
		}
		if r != nil {
			<-r.done
		}
	}()
	return runID, over, nil
}

func (s *Service) attemptable(servers []events.ServerName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrStopping
	}
	for _, name := range servers {
		srv, known := s.servers[name]
		switch {
		case !known:
			return fmt.Errorf("discover %q: %w", name, ErrUnknownServer)
		case srv.Disabled:
			return fmt.Errorf("discover %q: %w", name, ErrDisabled)
		case srv.Problem != nil:
			return fmt.Errorf("discover %q: %w: %s", name, ErrBlocked, srv.Problem.Detail)
		}
	}
	return nil
}

func (s *Service) flightsOf(servers []events.ServerName) []*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var flights []*flight
	for _, name := range servers {
		if f := s.flights[name]; f != nil {
			flights = append(flights, f)
		}
	}
	return flights
}

// maxReasonBytes bounds the reason a person gives.
const maxReasonBytes = 500

// words makes a person's words fit to record: one line, no server's secret in it.
func (s *Service) words(reason string) string {
	return s.Redactor().Text(strings.Join(strings.Fields(reason), " "), maxReasonBytes)
}

// Pin sets a configured server aside until a time, zero for until cleared.
func (s *Service) Pin(ctx context.Context, server events.ServerName, until time.Time, reason, actor string) error {
	return s.decide(ctx, []events.ServerName{server}, actor, events.SkipPinned{Reason: s.words(reason), Until: until})
}

// Clear ends the pins and skips of configured servers, all or none.
func (s *Service) Clear(ctx context.Context, servers []events.ServerName, reason, actor string) error {
	return s.decide(ctx, servers, actor, events.SkipCleared{Reason: s.words(reason)})
}

// decide records a person's decision about servers in one batch.
func (s *Service) decide(ctx context.Context, servers []events.ServerName, actor string, d events.Data) error {
	s.mu.Lock()
	batch := make([]events.Event, 0, len(servers))
	for _, name := range servers {
		srv, known := s.servers[name]
		if !known {
			s.mu.Unlock()
			return fmt.Errorf("%s %q: %w", d.EventType(), name, ErrUnknownServer)
		}
		batch = append(batch, s.event(about{server: name, key: srv.Key, actor: actor}, d))
	}
	s.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	if _, err := s.log.Append(ctx, batch); err != nil {
		return err
	}
	for _, name := range servers {
		s.announce(ctx, name)
	}
	s.wake()
	return nil
}
