package discovery

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// watch waits for the end of a session and discards it if nobody did before.
func (l *line) watch(live *liveSession) {
	<-live.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(live)
}

// drop discards a session that has ended. l.mu is held.
func (l *line) drop(live *liveSession) {
	var failure *upstream.Failure
	if errors.As(live.Err(), &failure) {
		l.detach(live, discardReason(failure.Evidence), &failure.Evidence, false)
	}
}

// discard ends the use of a session that a call found broken; the calls on it go on.
func (l *line) discard(live *liveSession, evidence *events.Evidence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detach(live, discardReason(*evidence), evidence, false)
}

func discardReason(ev events.Evidence) string {
	if sessionLost(ev) {
		return CodeSessionExpired
	}
	return string(ev.ErrorKind)
}

// detach takes a session off the line if it is still the line's, so that a late
// result of an old generation changes nothing, and records that. It is closed by its
// last user, or now. A process that ended soon after its start counts as a failed
// opening; the first of them in a row is started anew at once. l.mu is held.
func (l *line) detach(live *liveSession, reason string, evidence *events.Evidence, now bool) {
	if live == nil || l.current != live {
		return
	}
	s, srv := l.service, l.server
	l.current, live.detached = nil, true
	crashed := srv.Transport == events.TransportStdio && evidence != nil && evidence.EndedBy == events.EndedByServer
	switch {
	case !crashed || s.now().Sub(live.openedAt) >= shortLife:
		l.failures = 0
	case l.failures == 0:
		l.failures++
	default:
		l.wait(*evidence, l.failures-1)
		l.failures++
	}
	unused := now || live.users == 0
	s.work.Go(func() {
		s.recordSession(srv, l.pool.key, events.SessionDiscarded{Generation: live.generation, Reason: reason, Evidence: evidence})
		if unused {
			s.closeSession(live.Session)
		}
	})
}

// close ends the line for good, with the calls on it.
func (l *line) close(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.detach(l.current, reason, nil, true)
}

// closeIdle closes the session of a line that was not used for a while. It reports
// whether nothing is left of the line.
func (l *line) closeIdle(now time.Time) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.lastUsed) < idleLimit || l.opening != nil || l.current != nil && l.current.users > 0 {
		return false
	}
	l.detach(l.current, "idle", nil, true)
	return true
}

// shutdownBudget is how long the end of a session may take. All end at the same time at
// a stop.
const shutdownBudget = 8 * time.Second

// closeSession ends a session within the budget of a shutdown.
func (s *Service) closeSession(session *upstream.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), shutdownBudget)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		s.logger.DebugContext(ctx, "session ended badly", slog.Any("err", err))
	}
}

// recordSession appends an event of a session's life. What it tells is worth less
// than the calls, so that a log that cannot be written holds none of them up for long.
func (s *Service) recordSession(srv *config.Server, key events.ConfigKey, d events.Data) {
	if err := s.store(s.event(about{server: srv.Name, key: key}, d)); err != nil {
		s.logger.WarnContext(s.ctx, "session not recorded", slog.String("server", string(srv.Name)), slog.Any("err", err))
	}
}
