package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// Question asks a server for something other than a tool call: its resources,
// prompts or completions.
type Question struct {
	Server events.ServerName
	// Method is such as "resources/read". "resources/subscribe" means the same to servers
	// of every revision, and "resources/unsubscribe" asks nobody if no session is open.
	Method string
	Params json.RawMessage // an object; nil: none
	Client string          // as in Call
	// Timeout is how long to wait for a session, if none is open, and after that for the
	// answer; 0 means 60 s.
	Timeout time.Duration
}

// Answer is what became of a Question: a result, or the failure.
type Answer struct {
	Result  json.RawMessage // as the server sent it
	RPC     *upstream.RPCError
	Failure *CallFailure
}

// Ask sends a question over the session that calls use, opening one if there is
// none, or says why it did not. Unlike calls, questions are not recorded, and none
// gates a connection or has a skipped server attempted.
//
// The error is ErrUnknownServer, ErrStopping, or that of folds which have not caught
// up. Whatever else went wrong is in the answer.
func (s *Service) Ask(ctx context.Context, q Question) (Answer, error) {
	if !s.beginWork() {
		return Answer{}, ErrStopping
	}
	defer s.work.Done()
	ctx, stop := s.whileRunning(ctx)
	defer stop()
	srv, view, err := s.serverView(q.Server)
	if err != nil {
		return Answer{}, err
	}
	if refused := unasked(view, s.now()); refused != nil {
		return Answer{Failure: refused}, nil
	}
	l, err := s.lineFor(srv, q)
	switch {
	case err != nil:
		return Answer{Failure: s.notConnected(err)}, nil
	case l == nil:
		return Answer{Result: json.RawMessage(`{}`)}, nil
	}
	leave, _, err := l.pool.enter(ctx)
	switch {
	case errors.Is(err, errGone):
		return Answer{Failure: s.notConnected(err)}, nil
	case err != nil:
		return Answer{Failure: busy(srv, err)}, nil
	}
	defer leave()
	result, err := ask(ctx, l, q)
	if err != nil {
		failure := asFailure(err)
		return Answer{RPC: failure.RPC, Failure: s.describeFailure(err, failure.Evidence)}, nil
	}
	return Answer{Result: result}, nil
}

// methodUnsubscribe ends a subscription.
const methodUnsubscribe = "resources/unsubscribe"

// lineFor returns the line that a question goes over. A subscription ends with its
// session, so none is opened to end one: where none is open the line is nil. The error
// is errGone or a *notConnectedError.
func (s *Service) lineFor(srv *config.Server, q Question) (*line, error) {
	if q.Method == methodUnsubscribe {
		return s.sessions.openLine(srv, q.Client), nil
	}
	l, err := s.sessions.line(srv, q.Client)
	if err != nil { // the entry changed a moment ago
		return nil, err
	}
	return l, l.ready()
}

// ask sends the question on the line's session, which it discards if it finds it
// broken.
func ask(ctx context.Context, l *line, q Question) (result json.RawMessage, err error) {
	limit := cmp.Or(q.Timeout, callSilence)
	err = l.over(ctx, nil, limit, func(live *liveSession) error {
		ctx, cancel := l.service.within(ctx, limit, context.DeadlineExceeded)
		defer cancel()
		result, err = live.Ask(ctx, q.Method, q.Params)
		return err
	})
	return result, err
}

// unasked says why a server is not asked anything, nil if it may be.
func unasked(v projections.Server, now time.Time) *CallFailure {
	switch v.State {
	case projections.StateDisabled, projections.StateBlocked, projections.StateSkipped, projections.StateDiscovering:
		return refusalOf(v, Call{Server: v.Name}, now)
	case projections.StateFailed, projections.StateUnreachable, projections.StateReady:
	}
	return nil
}

// OnNotice has fn called for notices of servers that are passed on (see
// upstream.Notice). client is that of a session which serves one client alone, else
// empty. fn must not block. It is set before Run.
func (s *Service) OnNotice(fn func(server events.ServerName, client string, n upstream.Notice)) {
	s.notice = fn
}

// noticed hands on what the server of a session said.
func (s *Service) noticed(server events.ServerName, client string) func(upstream.Notice) {
	if s.notice == nil {
		return nil
	}
	return func(n upstream.Notice) { s.notice(server, client, n) }
}

// Forget ends the sessions that served one client alone; it has gone.
func (s *Service) Forget(client string) {
	if client != "" {
		s.sessions.forget(client)
	}
}
