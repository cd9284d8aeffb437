package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// onUseInterval is how often calls may make a skipped server be attempted.
const onUseInterval = time.Minute

// refusal returns why a call is not sent, nil if it is. A call that names a tool of a
// skipped server has it attempted first, once a minute at most; one whose server has
// no outcome yet waits for it, and makes no attempt of its own on one that failed
// meanwhile. Neither waits longer than the call may.
func (s *Service) refusal(ctx context.Context, p *pendingCall) *CallFailure {
	v := p.view
	discovering := v.State == projections.StateDiscovering
	if !discovering && (v.State != projections.StateSkipped || !probed(v.Skip)) {
		return s.refusalNow(p)
	}
	ctx, cancel := s.within(ctx, p.silence, context.DeadlineExceeded)
	defer cancel()
	if discovering {
		s.awaitOutcome(ctx, p.Server)
		s.awaitFlight(ctx, p.Server) // the run may try again
	} else if wait, err := s.probeOnUse(ctx, p.server); err != nil || wait > 0 {
		// Where no attempt can be recorded, the refusal cannot be either, and says so.
		return s.refusalNow(p)
	}
	if err := s.resolve(p); err != nil {
		return &CallFailure{Code: CodeNotConnected, Detail: err.Error()} // it was removed meanwhile
	}
	if f := s.refusalNow(p); f != nil || p.view.State != projections.StateFailed {
		return f
	}
	f := &CallFailure{Code: CodeNotConnected, Detail: p.view.Reason, ClearsOn: clearsOn(p.view)}
	if p.view.Cause != nil {
		f.Class = p.view.Cause.Class
	}
	return f
}

// refusalNow returns why a call is not sent as its server stands.
func (s *Service) refusalNow(p *pendingCall) *CallFailure {
	if f := refusalOf(p.view, p.Call, s.now()); f != nil {
		return f
	}
	return s.braked(p)
}

// probed reports whether a call may have a server attempted in spite of its skip.
func probed(skip *projections.Skip) bool {
	return skip.Reason != projections.SkipPinned && skip.Reason != projections.SkipAuth
}

// refusalOf says why the state of a server forbids a call, nil if it does not.
func refusalOf(v projections.Server, c Call, now time.Time) *CallFailure {
	f := CallFailure{Detail: v.Reason, ClearsOn: clearsOn(v), RetryAfter: untilNext(v, now)}
	switch v.State {
	case projections.StateDisabled:
		f.Code = CodeDisabled
	case projections.StateBlocked:
		f.Code = CodeMissingCredential
		if v.Gate != nil {
			f.Code, f.Since = codeOfGate(v.Gate.Kind), v.Gate.Since
		}
	case projections.StateSkipped:
		f.Code, f.Since = CodeSkipped, v.Skip.Since
	case projections.StateDiscovering:
		f.Code = CodeDiscovering
	case projections.StateFailed, projections.StateUnreachable, projections.StateReady:
		switch {
		case v.Entry.Problem != nil:
			f.Code = CodeBlocked
		case v.Catalogue == nil || v.Offers(c.Tool):
			return nil
		default:
			return &CallFailure{
				Code: CodeToolNotFound, Detail: fmt.Sprintf("%s offers no tool %q", v.Name, config.Cut(c.Tool, maxToolBytes)),
			}
		}
	}
	if v.Cause != nil {
		f.Class = v.Cause.Class
	}
	return &f
}

// clearsOn returns what would bring a server back, in projections' words, each once.
func clearsOn(v projections.Server) []string {
	var on []string
	for _, clearing := range v.Clearings() {
		if !slices.Contains(on, clearing.What) {
			on = append(on, clearing.What)
		}
	}
	return on
}

// untilNext returns how long it is until a server is attempted again by itself; 0 if that
// is now, or nothing but a change or a person brings it about.
func untilNext(v projections.Server, now time.Time) time.Duration {
	if v.NextAttempt.IsZero() {
		return 0
	}
	return max(0, v.NextAttempt.Sub(now))
}

// tellGate adds to the failure of a call at which a gate closed the connection what the
// refusals say from then on: since when, what opens it, and when that is looked at.
func (s *Service) tellGate(server events.ServerName, f *CallFailure) {
	_, v, err := s.serverView(server)
	if err == nil && v.Gate != nil && f.Code == codeOfGate(v.Gate.Kind) {
		f.Since, f.ClearsOn, f.RetryAfter = v.Gate.Since, clearsOn(v), max(f.RetryAfter, untilNext(v, s.now()))
	}
}

// braked returns the refusal of a call that kept failing in the same way, nil if
// there is none.
func (s *Service) braked(p *pendingCall) *CallFailure {
	var b projections.Braked
	var held bool
	now := s.now()
	err := s.engine.View(func(st *projections.State) {
		b, held = st.Braked(p.Server, p.Caller, p.toolName(), p.argumentsHash, now)
	})
	if err != nil || !held {
		return nil
	}
	return &CallFailure{
		Class: rules.ClassToolError, Code: CodeBraked, Since: b.Since, RetryAfter: b.Until.Sub(now),
		ClearsOn: []string{projections.ClearsOnExpiry},
		Detail:   fmt.Sprintf("the same call failed %d times in a row, the last time with: %s", b.Failures, b.Text),
	}
}

// notConnected is the refusal of a call while no session may be opened.
func (s *Service) notConnected(err error) *CallFailure {
	var waiting *notConnectedError
	if errors.As(err, &waiting) {
		return s.describeFailure(err, waiting.failure.Evidence)
	}
	return &CallFailure{Code: CodeNotConnected, Detail: err.Error()}
}

// busy is the refusal of a call that got no place.
func busy(srv *config.Server, err error) *CallFailure {
	if !errors.Is(err, errBusy) {
		return &CallFailure{Code: CodeCancelled, Detail: "cancelled while waiting for a free place"}
	}
	return &CallFailure{
		Code: CodeBusy, Detail: fmt.Sprintf("%s has as many calls under way as it may have", srv.Name), RetryAfter: time.Second,
	}
}

// refuse records a call that is not sent.
func (s *Service) refuse(p *pendingCall, f *CallFailure) (CallOutcome, error) {
	refused := events.ToolCallRefused{
		Tool: p.toolName(), Reason: f.Code, Detail: p.server.Redactor.Text(f.Detail, events.MaxErrorBytes), Caller: p.Caller,
		Since: f.Since, ClearsOn: f.ClearsOn,
	}
	if f.Evidence.Phase != "" {
		refused.Evidence = &f.Evidence
	}
	e := s.event(p.about, refused)
	if err := s.store(e); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("refusal of call %s: %w", p.about.callID, events.ErrUnavailable)
		}
		return CallOutcome{}, err
	}
	return CallOutcome{
		CallID: p.about.callID, EventID: e.ID, Outcome: projections.OutcomeRefused,
		Duration: s.now().Sub(p.began), Failure: f,
	}, nil
}

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
