package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

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
	f := &CallFailure{
		Code: CodeNotConnected, Detail: p.view.Reason, ClearsOn: clearsOn(p.view), RetryAfter: untilNext(p.view, s.now()),
	}
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
