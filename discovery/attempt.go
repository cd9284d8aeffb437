package discovery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// maxInstructionsBytes bounds what is kept of a server's instructions.
const maxInstructionsBytes = 8 << 10

// attempt makes one attempt: its start is on disk before anything is spawned or
// dialled, its outcome as soon as there is one. The evidence is that of a failure.
func (s *Service) attempt(ctx context.Context, r *run, srv *config.Server, n int) (projections.Outcome, events.Evidence) {
	target := s.target(srv)
	a := about{server: srv.Name, key: srv.Key, runID: r.id, attemptID: newID(), actor: r.request.actor}
	trigger := r.request.trigger
	start := s.event(a, events.DiscoveryStarted{
		Attempt: n, Trigger: trigger, LimitMS: target.Budget.Total.Milliseconds(), Facts: localFacts(srv),
	})
	if err := s.store(start); err != nil {
		s.logger.WarnContext(ctx, "attempt not made, its start cannot be recorded", slog.String("server", string(srv.Name)), slog.Any("err", err))
		if errors.Is(err, context.DeadlineExceeded) {
			// It may have been stored after all, and then needs an end.
			s.settle(srv.Name, start, s.event(a, events.DiscoveryCancelled{Reason: "the log could not be written in time"}))
		}
		return projections.OutcomeCancelled, events.Evidence{}
	}
	began := s.now()
	outcome, data, evidence := s.ask(ctx, srv, target, trigger, began)
	batch := make([]events.Event, len(data))
	for i, d := range data {
		batch[i] = s.event(a, d)
	}
	s.settle(srv.Name, batch...)
	return outcome, evidence
}

// ask lists the tools of a server over a session of its own, or over the open one
// when that server said there that its tools changed.
func (s *Service) ask(ctx context.Context, srv *config.Server, target upstream.Target, trigger events.Trigger, began time.Time) (projections.Outcome, []events.Data, events.Evidence) {
	session, release, err := s.sessionFor(ctx, srv, target, trigger)
	if err != nil {
		return s.failed(ctx, err, began)
	}
	catalogue, err := session.ListTools(ctx)
	info := session.Info()
	release()
	if err != nil {
		return s.failed(ctx, err, began)
	}
	if catalogue, err = masked(srv, catalogue); err != nil {
		return s.failed(ctx, err, began)
	}
	_, stderr, junk := session.Stderr()
	succeeded := events.DiscoverySucceeded{
		ProtocolVersion: info.ProtocolVersion, ServerInfo: maskedInfo(srv, info.Server), Capabilities: srv.Redactor.JSON(info.Capabilities),
		Instructions: srv.Redactor.Text(info.Instructions, maxInstructionsBytes), CatalogueHash: catalogue.Hash, ToolCount: catalogue.Len(),
		Stderr: stderr, StdoutJunk: junk, ElapsedMS: s.now().Sub(began).Milliseconds(),
	}
	data := []events.Data{succeeded}
	if change, changed := s.catalogueChange(ctx, srv, catalogue); changed {
		data = append(data, change)
	}
	return projections.OutcomeSucceeded, data, events.Evidence{}
}

// masked returns the catalogue fit for the log: a server may repeat a secret in a
// description.
func masked(srv *config.Server, c upstream.Catalogue) (upstream.Catalogue, error) {
	tools := srv.Redactor.JSON(c.Tools)
	if bytes.Equal(tools, c.Tools) {
		return c, nil
	}
	return upstream.ParseCatalogue(tools)
}

// sessionFor returns the session an attempt uses, and how to be done with it: one of
// its own is closed, the one of the calls is not.
func (s *Service) sessionFor(ctx context.Context, srv *config.Server, target upstream.Target, trigger events.Trigger) (session *upstream.Session, release func(), err error) {
	if trigger == events.TriggerRefresh {
		if live, release := s.sessions.open(srv.Key); live != nil {
			return live.Session, release, nil
		}
	}
	if session, err = upstream.Open(ctx, target); err != nil {
		return nil, nil, err
	}
	s.noteAnswered(srv.Key)
	return session, func() { s.closeSession(session) }, nil
}

// maxInfoBytes bounds each text of what a server says of itself.
const maxInfoBytes = 256

func maskedInfo(srv *config.Server, i events.ServerInfo) events.ServerInfo {
	return events.ServerInfo{
		Name:    srv.Redactor.Text(i.Name, maxInfoBytes),
		Version: srv.Redactor.Text(i.Version, maxInfoBytes),
		Title:   srv.Redactor.Text(i.Title, maxInfoBytes),
	}
}

// failed tells an attempt that we ended from one that failed by itself.
func (s *Service) failed(ctx context.Context, err error, began time.Time) (projections.Outcome, []events.Data, events.Evidence) {
	if ctx.Err() != nil {
		return projections.OutcomeCancelled, []events.Data{events.DiscoveryCancelled{
			Reason: context.Cause(ctx).Error(), ElapsedMS: s.now().Sub(began).Milliseconds(),
		}}, events.Evidence{}
	}
	var failure *upstream.Failure
	evidence := events.Evidence{Error: err.Error()}
	if errors.As(err, &failure) {
		evidence = failure.Evidence
	}
	if evidence.ElapsedMS == 0 {
		evidence.ElapsedMS = s.now().Sub(began).Milliseconds()
	}
	return projections.OutcomeFailed, []events.Data{events.DiscoveryFailed{Evidence: evidence}}, evidence
}

// settle records what came of an attempt or a call. While the log cannot be written it
// tries again, every recordAgain, until the service ends, and says so once; what is not
// recorded then is found abandoned at the next start.
func (s *Service) settle(server events.ServerName, batch ...events.Event) {
	for tries := 1; ; tries++ {
		err := s.store(batch...)
		attrs := []slog.Attr{slog.String("server", string(server)), slog.Any("err", err)}
		switch {
		case err == nil:
			return
		case isFinal(err):
			s.logger.LogAttrs(s.ctx, slog.LevelError, "outcome not recorded", attrs...)
			return
		case tries == 1:
			s.logger.LogAttrs(s.ctx, slog.LevelWarn, "outcome not recorded yet", attrs...)
		}
		if s.pause(s.ctx, recordAgain) != nil {
			return
		}
	}
}

// isFinal reports whether storing the same events again cannot succeed.
func isFinal(err error) bool {
	return errors.Is(err, events.ErrInvalid) || errors.Is(err, events.ErrConflict) || errors.Is(err, events.ErrClosed)
}
