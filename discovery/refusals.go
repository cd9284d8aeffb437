package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// onUseInterval is how often calls may make a skipped server be attempted.
const onUseInterval = time.Minute

// refusal returns why a call is not sent, nil if it is. A call that names a tool of a
// skipped server makes one attempt first, once a minute at most; one whose server has
// no outcome yet waits for it.
func (s *Service) refusal(ctx context.Context, srv *config.Server, v projections.Server, c Call) *CallFailure {
	switch v.State {
	case projections.StateDiscovering:
		s.awaitFlight(ctx, srv.Name)
	case projections.StateSkipped:
		if v.Skip.Reason == projections.SkipPinned || v.Skip.Reason == projections.SkipAuth || !s.probeOnUse(ctx, srv) {
			return refusalOf(v, c)
		}
	case projections.StateDisabled, projections.StateBlocked, projections.StateFailed,
		projections.StateUnreachable, projections.StateReady:
		return refusalOf(v, c)
	}
	if _, now, err := s.serverView(srv.Name); err == nil {
		v = now
	}
	return refusalOf(v, c)
}

// refusalOf says why the state of a server forbids a call.
func refusalOf(v projections.Server, c Call) *CallFailure {
	f := CallFailure{Detail: v.Reason}
	for _, clearing := range v.Clearings() {
		f.ClearsOn = append(f.ClearsOn, clearing.What)
	}
	switch v.State {
	case projections.StateDisabled:
		f.Code = CodeDisabled
	case projections.StateBlocked:
		f.Code = CodeBlocked
		if v.Gate != nil {
			f.Code, f.Since = string(v.Gate.Kind), v.Gate.Since
		} else {
			f.Code = CodeMissingCredential
		}
		if f.Code == string(projections.CredentialsMissing) {
			f.Code = CodeMissingCredential
		}
	case projections.StateSkipped:
		f.Code, f.Since = CodeSkipped, v.Skip.Since
	case projections.StateDiscovering:
		f.Code = CodeDiscovering
	case projections.StateFailed, projections.StateUnreachable, projections.StateReady:
		if v.Entry.Problem != nil {
			f.Code = CodeBlocked
			break
		}
		if v.Catalogue == nil || v.Catalogue.Has(c.Tool) {
			return nil
		}
		f.Code, f.Detail = CodeToolNotFound, fmt.Sprintf("%s offers no tool %q", v.Name, c.Tool)
		f.ClearsOn = nil
	}
	if v.Cause != nil {
		f.Class = v.Cause.Class
	}
	return &f
}

// braked returns the refusal of a call that kept failing in the same way, nil if
// there is none.
func (s *Service) braked(c Call) *CallFailure {
	var b projections.Braked
	var held bool
	now := s.now()
	hash := s.argumentsHash(c.Arguments)
	if err := s.engine.View(func(st *projections.State) { b, held = st.Braked(c.Server, c.Caller, c.Tool, hash, now) }); err != nil || !held {
		return nil
	}
	return &CallFailure{
		Class: rules.ClassToolError, Code: CodeBraked, Since: b.Since, RetryAfter: b.Until.Sub(now),
		ClearsOn: []string{projections.ClearsOnExpiry},
		Detail:   fmt.Sprintf("the same call failed %d times in a row, the last time with: %s", b.Failures, b.Text),
	}
}

func notConnected(err error) *CallFailure {
	f := &CallFailure{Code: CodeNotConnected, Detail: err.Error()}
	var failed *notConnectedError
	if errors.As(err, &failed) {
		f.Evidence, f.RetryAfter = failed.failure.Evidence, failed.retryAfter
	}
	return f
}

func busy(srv *config.Server, err error) *CallFailure {
	if !errors.Is(err, errBusy) {
		return &CallFailure{Code: CodeCancelled, Detail: "cancelled while waiting for a free place"}
	}
	return &CallFailure{
		Code: CodeBusy, Detail: fmt.Sprintf("%s has as many calls under way as it may have", srv.Name), RetryAfter: time.Second,
	}
}

// refuse records a call that is not sent.
func (s *Service) refuse(ctx context.Context, srv *config.Server, c Call, began time.Time, f *CallFailure) (CallOutcome, error) {
	a := about{server: srv.Name, key: srv.Key, callID: newID(), actor: c.Caller}
	refused := events.ToolCallRefused{
		Tool: c.Tool, Reason: f.Code, Detail: srv.Redactor.Text(f.Detail, events.MaxErrorBytes), Caller: c.Caller,
		Since: f.Since, ClearsOn: f.ClearsOn,
	}
	if f.Evidence.Phase != "" {
		refused.Evidence = &f.Evidence
	}
	id, err := s.append(ctx, a, refused)
	if err != nil {
		return CallOutcome{}, err
	}
	return CallOutcome{
		CallID: a.callID, EventID: id, Outcome: projections.OutcomeRefused, Duration: s.now().Sub(began), Failure: f,
	}, nil
}

// refreshInterval is how often at most a server's tools are listed anew because it
// says that they changed.
const refreshInterval = 30 * time.Second

// toolsChanged lists a server's tools anew. A session calls it from a goroutine of
// its own, never twice at a time, and notices that come meanwhile become one more
// call; so a burst makes one run at the start and one at the end.
func (s *Service) toolsChanged(name events.ServerName) {
	if _, err := s.begin(s.ctx, request{trigger: events.TriggerRefresh, servers: []events.ServerName{name}}); err != nil {
		s.logger.WarnContext(s.ctx, "tools not listed anew", "server", string(name), "err", err)
	}
	s.awaitFlight(s.ctx, name)
	_ = pause(s.ctx, refreshInterval) // ends early when the service stops
}

// probeOnUse makes one attempt on a skipped server for a call, and reports whether
// it was made.
func (s *Service) probeOnUse(ctx context.Context, srv *config.Server) bool {
	s.mu.Lock()
	now := s.now()
	allowed := now.Sub(s.probed[srv.Name]) >= onUseInterval
	if allowed {
		s.probed[srv.Name] = now
	}
	s.mu.Unlock()
	if !allowed {
		return false
	}
	if _, err := s.begin(ctx, request{trigger: events.TriggerOnUse, servers: []events.ServerName{srv.Name}}); err != nil {
		return false
	}
	s.awaitFlight(ctx, srv.Name)
	return true
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
