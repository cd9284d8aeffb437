package discovery

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"mcpledger/events"
)

// Begun is a discovery that is under way.
type Begun struct {
	// RunID is the run that was begun; where others attempt all of the servers already
	// it is that of the first, and where none was named there is none.
	RunID string
	// Joined are the runs of others that attempt a server already, and whose outcome is
	// waited for, by server.
	Joined map[events.ServerName]string
	Done   <-chan struct{} // closed when every outcome is recorded
}

// Discover attempts the servers named, whatever their skips and gates say, and
// joins runs that are under way for them. The run is recorded when it returns. It
// returns ErrUnknownServer, ErrDisabled, ErrBlocked or ErrStopping, and then nothing
// was begun.
func (s *Service) Discover(ctx context.Context, servers []events.ServerName, reason, actor string) (Begun, error) {
	var r *run
	var flights map[events.ServerName]*flight
	for len(servers) > 0 && r == nil && len(flights) == 0 { // a run that was joined may have ended meanwhile
		if err := s.attemptable(servers); err != nil {
			return Begun{}, err
		}
		var err error
		r, err = s.begin(ctx, request{trigger: events.TriggerManual, servers: servers, reason: s.words(reason), actor: actor})
		if err != nil {
			return Begun{}, err
		}
		flights = s.flightsOf(servers)
	}
	begun := Begun{Joined: map[events.ServerName]string{}}
	if r != nil {
		begun.RunID = r.id
	}
	for _, name := range servers {
		if f := flights[name]; f != nil {
			begun.RunID = cmp.Or(begun.RunID, f.runID)
			if r == nil || f.runID != r.id {
				begun.Joined[name] = f.runID
			}
		}
	}
	over := make(chan struct{})
	begun.Done = over
	go func() {
		defer close(over)
		for _, f := range flights {
			<-f.done
		}
		if r != nil {
			<-r.done
		}
	}()
	return begun, nil
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

func (s *Service) flightsOf(servers []events.ServerName) map[events.ServerName]*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	flights := map[events.ServerName]*flight{}
	for _, name := range servers {
		if f := s.flights[name]; f != nil {
			flights[name] = f
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

// RecordActivation records that a rule set is in force from here on; it is what
// projections.Engine.Activate wants. Actor is empty where nobody asked for it.
func (s *Service) RecordActivation(ctx context.Context, d events.RulesActivated, actor string) error {
	return s.append(ctx, about{actor: actor}, d)
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
