package discovery

import (
	"cmp"
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
)

// line is the way to one server: at most one session that new calls are sent on, and
// at most one opening in flight, which all callers share.
type line struct {
	service *Service
	pool    *pool
	client  string // whose line it is; empty for the shared one

	mu       sync.Mutex
	server   *config.Server // the entry as last used
	current  *liveSession
	opening  *opening
	failures int // openings in a row
	failed   *upstream.Failure
	failedAt time.Time
	retryAt  time.Time
	lastUsed time.Time
	closed   bool
}

// liveSession is a session with its place in the connection's history. A session that
// is no longer its line's lives on until the last call on it has ended: a call that
// found it broken says nothing of the others.
type liveSession struct {
	*upstream.Session
	generation int64
	openedAt   time.Time

	users    int  // calls on it; guarded by line.mu
	detached bool // no longer the line's; guarded by line.mu
}

// opening is one attempt to open a session. err is set before done is closed.
type opening struct {
	done chan struct{}
	err  error
}

// notConnectedError reports that an opening failed a moment ago, and that the next
// may be tried after a wait.
type notConnectedError struct {
	failure    *upstream.Failure
	since      time.Time
	retryAfter time.Duration
}

func (e *notConnectedError) Error() string {
	return fmt.Sprintf("not connected, next opening in %s: %s", e.retryAfter.Round(time.Millisecond), e.failure)
}

func (e *notConnectedError) Unwrap() error { return e.failure }

// use notes the entry that openings follow from now on.
func (l *line) use(srv *config.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server, l.lastUsed = srv, l.service.now()
}

// ready returns a *notConnectedError while no opening may be tried, and nil when a
// call may go on.
func (l *line) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil || l.opening != nil {
		return nil
	}
	return l.waiting()
}

// waiting returns the *notConnectedError that callers get while the line backs off,
// nil when an opening may be tried. l.mu is held.
func (l *line) waiting() error {
	if wait := l.retryAt.Sub(l.service.now()); wait > 0 {
		return &notConnectedError{failure: l.failed, since: l.failedAt, retryAfter: wait}
	}
	return nil
}

// retryNow ends a wait after a failed opening.
func (l *line) retryNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retryAt = time.Time{}
}

// acquire returns the open session, opening one if there is none, and counts the
// caller among its users until release. The opening goes on when ctx ends. The error
// is a *upstream.Failure of the opening it waited for, a *notConnectedError, errGone,
// or the cause of ctx's end.
func (l *line) acquire(ctx context.Context) (*liveSession, error) {
	for {
		live, under, err := l.next()
		if err != nil || live != nil {
			return live, err
		}
		select {
		case <-under.done:
			if under.err != nil {
				return nil, under.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// over runs fn on the line's session and returns its error. The session is the one
// held, if that is there and lasts; else one is acquired, for which limit bounds the
// wait. Either is released. A session that fn found broken is discarded, unless a newer
// one took its place.
func (l *line) over(ctx context.Context, held *liveSession, limit time.Duration, fn func(*liveSession) error) error {
	live := held
	if held != nil && held.Err() != nil {
		l.release(held)
		live = nil
	}
	if live == nil {
		var err error
		if live, err = l.acquireWithin(ctx, limit); err != nil {
			return undispatched(err)
		}
	}
	defer l.release(live)
	err := fn(live)
	var failure *upstream.Failure
	if errors.As(err, &failure) && breaksSession(failure.Evidence) {
		l.discard(live, &failure.Evidence)
	}
	return err
}

// undispatched marks a failure to open a session as one before anything was sent.
func undispatched(err error) error {
	var failure *upstream.Failure
	var waiting *notConnectedError
	if errors.As(err, &waiting) || !errors.As(err, &failure) {
		return err
	}
	before := *failure
	before.Evidence.Dispatched = false
	return &before
}

// openingTimeout reports a call that waited in vain for a session.
type openingTimeout struct {
	transport events.Transport
	limit     time.Duration
}

func (e *openingTimeout) Error() string {
	return fmt.Sprintf("not connected within %s, the connection is still being opened", e.limit)
}

func (l *line) acquireWithin(ctx context.Context, limit time.Duration) (*liveSession, error) {
	l.mu.Lock()
	transport := l.server.Transport
	l.mu.Unlock()
	ctx, cancel := l.service.within(ctx, limit, &openingTimeout{transport: transport, limit: limit})
	defer cancel()
	return l.acquire(ctx)
}

// next returns the open session or the opening under way, which it begins if need be.
func (l *line) next() (*liveSession, *opening, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.Err() != nil {
		l.drop(l.current) // its end was not noticed yet
	}
	switch {
	case l.closed:
		return nil, nil, errGone
	case l.current != nil:
		l.current.users++
		return l.current, nil, nil
	case l.opening != nil:
		return nil, l.opening, nil
	}
	if err := l.waiting(); err != nil {
		return nil, nil, err
	}
	l.opening = &opening{done: make(chan struct{})}
	under, srv := l.opening, l.server
	l.service.work.Go(func() { l.open(under, srv) })
	return nil, under, nil
}

// hold is acquire without opening: it returns nil if no session is open.
func (l *line) hold() *liveSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasSession() {
		return nil
	}
	l.current.users++
	return l.current
}

// isOpen reports whether there is a session on the line.
func (l *line) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasSession()
}

// hasSession is isOpen while l.mu is held.
func (l *line) hasSession() bool { return l.current != nil && l.current.Err() == nil }

// release ends the use of a session. The last user of one that is no longer the
// line's closes it.
func (l *line) release(live *liveSession) {
	l.mu.Lock()
	live.users--
	l.lastUsed = l.service.now()
	unused := live.users == 0 && live.detached
	l.mu.Unlock()
	if unused {
		l.service.work.Go(func() { l.service.closeSession(live.Session) })
	}
}

// open opens the line's session and records it before a call is sent on it.
func (l *line) open(under *opening, srv *config.Server) {
	s := l.service
	began := s.now()
	target := s.target(srv)
	target.OnToolsChanged = func() { s.toolsChanged(srv.Name) }
	target.OnNotice = s.noticed(srv.Name, l.client)
	session, err := upstream.Open(l.pool.ctx, target)
	if err != nil {
		l.opened(under, nil, err)
		return
	}
	s.noteAnswered(l.pool.key)
	live := &liveSession{Session: session, generation: l.pool.generation.Add(1), openedAt: s.now()}
	info := session.Info()
	s.recordSession(srv, l.pool.key, events.SessionOpened{
		Generation: live.generation, ProtocolVersion: info.ProtocolVersion, ProcessGroup: info.ProcessGroup,
		Client: l.client, ElapsedMS: live.openedAt.Sub(began).Milliseconds(),
	})
	if !l.opened(under, live, nil) {
		s.closeSession(session)
		s.recordSession(srv, l.pool.key, events.SessionDiscarded{Generation: live.generation, Reason: errConfigChanged.Error()})
		return
	}
	l.watch(live)
}

// opened settles an opening. It reports whether the session is the line's now: one
// that belongs to an entry no longer in force is not.
func (l *line) opened(under *opening, live *liveSession, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(under.done)
	l.opening = nil
	switch {
	case l.closed:
		under.err = errGone
	case err != nil:
		failure := asFailure(err)
		under.err = failure
		l.wait(failure.Evidence, l.failures)
		l.failures++
	default:
		l.current, l.lastUsed = live, live.openedAt
	}
	return l.current == live && live != nil
}

// wait keeps the next opening off, for longer the more doublings. l.mu is held.
func (l *line) wait(ev events.Evidence, doublings int) {
	ev.Dispatched = false // of the calls that are told of it
	ev.Phase = cmp.Or(ev.Phase, events.PhaseConnect)
	l.failed, l.failedAt = &upstream.Failure{Evidence: ev}, l.service.now()
	l.retryAt = l.failedAt.Add(min(openBackoffFirst<<min(doublings, 6), openBackoffMost))
}
