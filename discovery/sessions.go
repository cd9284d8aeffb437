package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

const (
	openBackoffFirst = time.Second // after a failed opening, doubling
	openBackoffMost  = time.Minute
	shortLife        = 10 * time.Second // a process that ends sooner counts as a failed opening
	idleLimit        = 30 * time.Minute
	queueLimit       = 5 * time.Second // how long a call waits for a free place
	callsPerHTTP     = 16
	callsPerStdio    = 8
)

// notConnectedError reports that an opening failed a moment ago, and that the next
// may be tried after a wait.
type notConnectedError struct {
	failure    *upstream.Failure
	retryAfter time.Duration
}

func (e *notConnectedError) Error() string {
	return fmt.Sprintf("not connected, next opening in %s: %s", e.retryAfter.Round(time.Millisecond), e.failure)
}

func (e *notConnectedError) Unwrap() error { return e.failure }

// errBusy reports that a server has as many calls as it may have at the same time.
var errBusy = errors.New("too many calls at the same time")

// errGone reports that the connection was closed: its entry changed, or the service
// stops.
var errGone = errors.New("connection closed")

// sessionKey names a connection, or one client's own where its entry asks for that.
type sessionKey struct {
	key    events.ConfigKey
	client string
}

// sessions holds the open sessions that calls are sent on.
type sessions struct {
	service *Service
	mu      sync.Mutex
	lines   map[sessionKey]*line
	closed  bool
}

// line is the way to one server: at most one open session, one opening in flight
// that all callers share, and the places for calls.
type line struct {
	service *Service
	server  *config.Server
	id      sessionKey
	places  chan struct{}

	mu         sync.Mutex
	current    *liveSession
	opening    chan struct{} // closed when the opening in flight ends; nil without one
	generation int64
	failures   int // openings in a row
	last       *upstream.Failure
	retryAt    time.Time
	lastUsed   time.Time
	closed     bool
}

// liveSession is a session with its place in the line's history.
type liveSession struct {
	*upstream.Session
	generation int64
	openedAt   time.Time
}

func newSessions(s *Service) *sessions {
	return &sessions{service: s, lines: map[sessionKey]*line{}}
}

// line returns the line for a server, and for one client where the entry asks for
// sessions of their own.
func (p *sessions) line(srv *config.Server, client string) (*line, error) {
	id := sessionKey{key: srv.Key}
	if srv.Settings.Session == "per_client" {
		id.client = client
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errGone
	}
	l := p.lines[id]
	if l == nil {
		places := callsPerHTTP
		if srv.Transport == events.TransportStdio {
			places = callsPerStdio
		}
		l = &line{service: p.service, server: srv, id: id, places: make(chan struct{}, places)}
		p.lines[id] = l
	}
	return l, nil
}

// open returns the shared session of a connection if one is open.
func (p *sessions) open(key events.ConfigKey) *liveSession {
	p.mu.Lock()
	l := p.lines[sessionKey{key: key}]
	p.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// keep closes the lines whose config key is not among those in force.
func (p *sessions) keep(inForce map[events.ConfigKey]bool) {
	p.closeWhere("config_changed", func(l *line) bool { return !inForce[l.id.key] })
}

// closeIdle closes the sessions that were not used for a while.
func (p *sessions) closeIdle(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		l.mu.Lock()
		idle := l.current != nil && len(l.places) == 0 && now.Sub(l.lastUsed) >= idleLimit
		live := l.current
		l.mu.Unlock()
		if idle {
			p.service.work.Go(func() { l.discard(live, "idle", nil) })
		}
	}
}

// close ends all lines, in parallel.
func (p *sessions) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.closeWhere(errShutdown.Error(), func(*line) bool { return true })
}

func (p *sessions) closeWhere(reason string, which func(*line) bool) {
	p.mu.Lock()
	var gone []*line
	for id, l := range p.lines {
		if which(l) {
			gone = append(gone, l)
			delete(p.lines, id)
		}
	}
	p.mu.Unlock()
	for _, l := range gone {
		p.service.work.Go(func() { l.close(reason) })
	}
}

// enter waits for a place for one call and returns the way out; errBusy after
// queueLimit.
func (l *line) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-l.places }
	select {
	case l.places <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(queueLimit)
	defer timer.Stop()
	select {
	case l.places <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// backoff returns the error of a call that must not open a session yet, nil if it
// may.
func (l *line) backoff(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil && l.opening == nil && now.Before(l.retryAt) {
		return &notConnectedError{failure: l.last, retryAfter: l.retryAt.Sub(now)}
	}
	return nil
}

// session returns the open session, opening one if there is none. Callers at the
// same time share one opening, which goes on when ctx ends.
func (l *line) session(ctx context.Context) (*liveSession, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, errGone
		}
		if l.current != nil {
			live := l.current
			l.lastUsed = l.service.now()
			l.mu.Unlock()
			return live, nil
		}
		if l.opening == nil {
			if failed := l.lastFailure(); failed != nil {
				l.mu.Unlock()
				return nil, failed
			}
			l.opening = make(chan struct{})
			l.service.work.Go(l.open)
		}
		opening := l.opening
		l.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		l.mu.Lock()
		live, failed := l.current, l.last
		l.mu.Unlock()
		if live == nil && failed != nil {
			return nil, failed
		}
	}
}

// lastFailure returns the failure that callers get while the line backs off, nil
// when an opening may be tried.
func (l *line) lastFailure() error {
	if now := l.service.now(); now.Before(l.retryAt) {
		return &notConnectedError{failure: l.last, retryAfter: l.retryAt.Sub(now)}
	}
	return nil
}

// open opens the line's session and records it.
func (l *line) open() {
	s := l.service
	began := s.now()
	target := s.target(l.server)
	target.OnToolsChanged = func() { s.toolsChanged(l.server.Name) }
	session, err := upstream.Open(s.ctx, target)
	now := s.now()

	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.opening)
	l.opening = nil
	var failure *upstream.Failure
	switch {
	case errors.As(err, &failure):
		l.failed(failure, now)
		return
	case err != nil:
		l.failed(&upstream.Failure{Evidence: events.Evidence{Error: err.Error()}}, now)
		return
	}
	if l.closed {
		s.work.Go(func() { s.closeSession(session) })
		return
	}
	s.noteAnswered(l.id.key)
	l.generation++
	live := &liveSession{Session: session, generation: l.generation, openedAt: now}
	l.current, l.last, l.lastUsed = live, nil, now
	info := session.Info()
	s.work.Go(func() { l.watch(live) })
	s.recordSession(l, events.SessionOpened{
		Generation: live.generation, ProtocolVersion: info.ProtocolVersion, ProcessGroup: info.ProcessGroup,
		Client: l.id.client, ElapsedMS: now.Sub(began).Milliseconds(),
	})
}

// failed notes an opening that failed; l.mu is held.
func (l *line) failed(f *upstream.Failure, now time.Time) {
	wait := openBackoffFirst << min(l.failures, 6)
	l.failures++
	l.last, l.retryAt = f, now.Add(min(wait, openBackoffMost))
}

// watch notices the end of a session that nobody ended.
func (l *line) watch(live *liveSession) {
	<-live.Done()
	if errors.Is(live.Err(), upstream.ErrClosed) {
		return
	}
	var failure *upstream.Failure
	reason := "ended"
	var evidence *events.Evidence
	if errors.As(live.Err(), &failure) {
		reason, evidence = string(failure.Evidence.ErrorKind), &failure.Evidence
	}
	l.discard(live, reason, evidence)
}

// discard ends a session if it is still the line's; a late result of an old
// generation changes nothing.
func (l *line) discard(live *liveSession, reason string, evidence *events.Evidence) {
	l.mu.Lock()
	if live == nil || l.current != live {
		l.mu.Unlock()
		return
	}
	l.current = nil
	now := l.service.now()
	if l.server.Transport == events.TransportStdio && evidence != nil && now.Sub(live.openedAt) < shortLife {
		l.failed(&upstream.Failure{Evidence: *evidence}, now)
	} else {
		l.failures = 0
	}
	l.mu.Unlock()
	l.service.closeSession(live.Session)
	l.service.recordSession(l, events.SessionDiscarded{Generation: live.generation, Reason: reason, Evidence: evidence})
}

// close ends the line for good.
func (l *line) close(reason string) {
	l.mu.Lock()
	l.closed = true
	live := l.current
	l.mu.Unlock()
	l.discard(live, reason, nil)
}

func (s *Service) closeSession(session *upstream.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.shutdown)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		s.logger.DebugContext(ctx, "session ended badly", "err", err)
	}
}

// recordSession appends an event of a session's life. Calls do not wait for it.
func (s *Service) recordSession(l *line, d events.Data) {
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), recordTimeout)
		defer cancel()
		if _, err := s.append(ctx, about{server: l.server.Name, key: l.id.key}, d); err != nil {
			s.logger.WarnContext(ctx, "session not recorded", "server", string(l.server.Name), "err", err)
		}
	})
}
