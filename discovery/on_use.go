package discovery

import (
	"context"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
)

// onUseInterval is how often calls may make a skipped server be attempted.
const onUseInterval = time.Minute

// probed reports whether a call may have a server attempted in spite of its skip.
func probed(skip *projections.Skip) bool {
	return skip.Reason != projections.SkipPinned && skip.Reason != projections.SkipAuth
}

// probeOnUse makes one attempt on a skipped server for a call, or joins the one under
// way. Where there may be none yet, wait is how long until there may be. An attempt that
// could not be begun is the error, and does not keep the next one off.
func (s *Service) probeOnUse(ctx context.Context, srv *config.Server) (wait time.Duration, err error) {
	s.mu.Lock()
	now, last := s.now(), s.probed[srv.Name]
	under := s.flights[srv.Name] != nil
	if !under {
		if wait = min(onUseInterval-now.Sub(last), onUseInterval); wait <= 0 {
			s.probed[srv.Name] = now
		}
	}
	s.mu.Unlock()
	if wait > 0 {
		return wait, nil
	}
	if !under {
		if _, err := s.begin(ctx, request{trigger: events.TriggerOnUse, servers: []events.ServerName{srv.Name}}); err != nil {
			s.mu.Lock()
			s.probed[srv.Name] = last
			s.mu.Unlock()
			return 0, err
		}
	}
	s.awaitFlight(ctx, srv.Name)
	return 0, nil
}

// awaitOutcome waits until something is known of a server, be its attempt under way or
// still to come.
func (s *Service) awaitOutcome(ctx context.Context, name events.ServerName) {
	var seen events.Sequence
	discovering := func() bool {
		var v projections.Server
		var known bool
		now := s.now()
		err := s.engine.View(func(st *projections.State) {
			seen = st.Sequence()
			v, known = st.Server(name, now)
		})
		return err == nil && known && v.State == projections.StateDiscovering
	}
	if !discovering() {
		return
	}
	for _, err := range s.log.Follow(ctx, seen) {
		if err != nil || !discovering() {
			return
		}
	}
}

// awaitFlight waits for the run under way for a server, if there is one.
func (s *Service) awaitFlight(ctx context.Context, name events.ServerName) {
	for _, f := range s.flightsOf([]events.ServerName{name}) {
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
}

// Retry makes one attempt on a server at an agent's wish, within the limits of an
// attempt on use: once a minute for each server, and never past an auth skip, a gate
// or a pin. It returns when the attempt has ended, or the refusal. The error is
// ErrUnknownServer, ErrStopping, events.ErrUnavailable, or that of folds which have not
// caught up.
func (s *Service) Retry(ctx context.Context, server events.ServerName) (*CallFailure, error) {
	if !s.beginWork() {
		return nil, ErrStopping
	}
	defer s.work.Done()
	srv, view, err := s.serverView(server)
	if err != nil {
		return nil, err
	}
	if refused := unretried(srv, view, s.now()); refused != nil {
		return refused, nil
	}
	s.awaitFlight(ctx, srv.Name) // what is under way is not the attempt that is wished for
	wait, err := s.probeOnUse(ctx, srv)
	if err != nil || wait == 0 {
		return nil, err
	}
	return &CallFailure{Code: CodeBusy, Detail: "an attempt was made less than a minute ago", RetryAfter: wait}, nil
}

// unretried says why an agent may not have a server attempted, nil if it may.
func unretried(srv *config.Server, v projections.Server, now time.Time) *CallFailure {
	switch {
	case srv.Disabled, srv.Problem != nil, v.Gate != nil, v.State == projections.StateBlocked:
	case v.Skip != nil && !probed(v.Skip):
	default:
		return nil
	}
	return refusalOf(v, Call{Server: v.Name}, now)
}
