package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// ErrOutcomeUnrecorded reports a call that was sent and whose outcome could not be
// written down. It is closed as abandoned once the log writes again, unless the outcome
// turns out to be there: a log that is slow may have stored it. The error does not
// match events.ErrUnavailable, which says that nothing was sent.
var ErrOutcomeUnrecorded = errors.New("the call was sent, its outcome could not be recorded")

const (
	callSilence = time.Minute      // without an answer or progress
	callTotal   = 15 * time.Minute // in all
)

// Call asks for one tools/call.
type Call struct {
	Server    events.ServerName
	Tool      string
	Arguments json.RawMessage // a JSON object; nil: none
	Meta      json.RawMessage // the request's _meta; nil: none
	// Timeout is how long the call may wait for a session, and after that go without an
	// answer or progress; 0 means the entry's, else 60 s.
	Timeout time.Duration
	// Caller is who asks, for the record; Client names the MCP client, for entries that
	// give each client a session of its own.
	Caller, Client string
	Progress       func(upstream.Progress)
}

// CallOutcome is what became of a Call. Exactly one of Result and Failure is set,
// but for a result with isError, which comes with both.
type CallOutcome struct {
	CallID, EventID string
	Outcome         projections.Outcome // succeeded, failed, or OutcomeRefused
	Duration        time.Duration
	Dispatched      bool            // it may have reached the server
	Result          json.RawMessage // as the server sent it
	RPC             *upstream.RPCError
	Failure         *CallFailure
}

// Call calls a tool once, or says why it did not. Its start is on disk before
// anything is sent and its outcome before it returns, also when ctx ends meanwhile,
// which cancels the call at the server. Nothing is ever sent twice.
//
// The error is ErrUnknownServer, ErrStopping, events.ErrUnavailable (nothing was
// sent) or ErrOutcomeUnrecorded (it was; the outcome has its id alone). Whatever else
// went wrong is in the outcome.
func (s *Service) Call(ctx context.Context, c Call) (CallOutcome, error) {
	if !s.beginWork() {
		return CallOutcome{}, ErrStopping
	}
	defer s.work.Done()
	ctx, cancel := s.whileRunning(ctx)
	defer cancel()

	p := &pendingCall{Call: c, began: s.now(), argumentsHash: s.argumentsHash(c.Arguments)}
	for range 3 {
		if err := s.resolve(p); err != nil {
			return CallOutcome{}, err
		}
		if refusal := s.refusal(ctx, p); refusal != nil {
			return s.refuse(p, refusal)
		}
		out, err := s.send(ctx, p)
		switch {
		case !errors.Is(err, errGone):
			return out, err
		case s.ctx.Err() != nil:
			return CallOutcome{}, ErrStopping
		}
		// The entry was edited before anything was recorded: the new one decides.
	}
	return s.refuse(p, s.notConnected(errGone))
}

// pendingCall is a Call on its way, with what it is called under.
type pendingCall struct {
	Call
	began         time.Time
	argumentsHash string
	server        *config.Server
	view          projections.Server // how the server stood when last looked at
	silence       time.Duration
	about         about
}

// resolve finds the entry in force and how its server stands.
func (s *Service) resolve(p *pendingCall) error {
	srv, view, err := s.serverView(p.Server)
	if err != nil {
		return err
	}
	p.server, p.view = srv, view
	p.silence = cmp.Or(p.Timeout, srv.Timeouts.Call, callSilence)
	p.about = about{server: srv.Name, key: srv.Key, callID: newID(), actor: p.Caller}
	return nil
}

// beginWork counts a piece of work for a stop to wait for, unless the service stops.
func (s *Service) beginWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.work.Add(1)
	return true
}

// whileRunning returns ctx, ended with the service.
func (s *Service) whileRunning(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// send takes a place on the connection and dispatches the call there. It returns
// errGone if the entry is not in force any more; nothing is recorded then.
func (s *Service) send(ctx context.Context, p *pendingCall) (CallOutcome, error) {
	l, err := s.sessions.line(p.server, p.Client)
	if err != nil {
		return CallOutcome{}, err
	}
	if err := l.ready(); err != nil {
		return s.refuse(p, s.notConnected(err))
	}
	leave, waited, err := l.pool.enter(ctx)
	switch {
	case errors.Is(err, errGone):
		return CallOutcome{}, err
	case err != nil:
		return s.refuse(p, busy(p.server, err))
	}
	defer leave()
	if l.pool.hold.wait(ctx) || waited {
		if err := s.resolve(p); err != nil {
			return CallOutcome{}, err
		}
		if p.server.Key != l.pool.key {
			return CallOutcome{}, errGone // the entry changed meanwhile: another connection
		}
		if refusal := s.refusalNow(p); refusal != nil {
			return s.refuse(p, refusal)
		}
	}
	return s.dispatch(ctx, l, p)
}

// dispatch records the start, opens the session if there is none, sends the call
// once, and records what came of it.
func (s *Service) dispatch(ctx context.Context, l *line, p *pendingCall) (CallOutcome, error) {
	held := l.hold()
	start := s.event(p.about, p.started(held))
	if err := s.store(start); err != nil {
		if held != nil {
			l.release(held)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			// It may have been stored after all, and then needs an end.
			s.work.Go(func() { s.settle(p.Server, start, s.abandonment(p)) })
			err = fmt.Errorf("start of call %s: %w", p.about.callID, events.ErrUnavailable)
		}
		return CallOutcome{}, err
	}
	onStatus, recorded := l.pool.hold.watch()
	defer recorded()
	result, generation, err := s.callTool(ctx, l, held, p, onStatus)
	out, data := s.outcome(p, result, generation, err)
	end := s.event(p.about, data)
	if err := s.store(end); err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			end = s.abandonment(p)
		} // else it may have been stored after all, and there is one outcome
		s.work.Go(func() { s.settle(p.Server, end) })
		if !out.Dispatched {
			return CallOutcome{}, fmt.Errorf("outcome of call %s: %w", p.about.callID, events.ErrUnavailable)
		}
		return CallOutcome{CallID: p.about.callID, Dispatched: true},
			fmt.Errorf("call %s: %w: %s", p.about.callID, ErrOutcomeUnrecorded, err.Error())
	}
	out.EventID = end.ID
	if out.Failure != nil {
		s.announce(ctx, p.server.Name)
		s.tellGate(p.server.Name, out.Failure)
	}
	return out, nil
}

// started is the start of a call as it is recorded; the session is nil while it is to
// be opened yet.
func (p *pendingCall) started(live *liveSession) events.ToolCallStarted {
	d := events.ToolCallStarted{
		Tool: p.toolName(), ArgumentsHash: p.argumentsHash, ArgumentsSize: int64(len(p.Arguments)), Caller: p.Caller,
	}
	if live != nil {
		d.Generation = live.generation
	}
	if p.server.Settings.RecordCalls {
		d.Arguments = string(p.server.Redactor.JSON(p.Arguments))
	}
	return d
}

// toolName is the tool's name as it is recorded and repeated: it is the caller's word.
func (p *pendingCall) toolName() string { return p.server.Redactor.Text(p.Tool, maxToolBytes) }

// maxToolBytes bounds the name of a tool where it is not sent but shown.
const maxToolBytes = 128

// callTool calls the tool on the line's session.
func (s *Service) callTool(ctx context.Context, l *line, held *liveSession, p *pendingCall, onStatus func(int)) (result json.RawMessage, generation int64, err error) {
	err = l.over(ctx, held, p.silence, func(live *liveSession) error {
		generation = live.generation
		result, err = live.CallTool(ctx, p.Tool, p.Arguments, upstream.CallOptions{
			Meta: p.Meta, Progress: p.Progress, Silence: p.silence,
			Total: cmp.Or(p.server.Timeouts.CallTotal, max(callTotal, p.silence)),
			Tool:  s.definition(ctx, l, live, p), OnStatus: onStatus,
		})
		return err
	})
	return result, generation, err
}

// outcome says what became of a dispatched call, for its caller and for the log.
func (s *Service) outcome(p *pendingCall, result json.RawMessage, generation int64, err error) (CallOutcome, events.Data) {
	elapsed := s.now().Sub(p.began)
	out := CallOutcome{
		CallID: p.about.callID, Outcome: projections.OutcomeSucceeded, Duration: elapsed, Dispatched: true, Result: result,
	}
	if err == nil {
		d := events.ToolCallSucceeded{
			Tool: p.toolName(), ElapsedMS: elapsed.Milliseconds(), ResultSize: int64(len(result)), Generation: generation,
		}
		if p.server.Settings.RecordCalls {
			d.Result = string(p.server.Redactor.JSON(result))
		}
		return out, d
	}
	failure := asFailure(err)
	ev := failure.Evidence
	ev.ElapsedMS = elapsed.Milliseconds()
	out.Outcome, out.Dispatched, out.RPC = projections.OutcomeFailed, ev.Dispatched, failure.RPC
	out.Failure = s.describeFailure(err, ev)
	return out, events.ToolCallFailed{
		Tool: p.toolName(), ElapsedMS: ev.ElapsedMS, Dispatched: ev.Dispatched, ResultSize: int64(len(result)),
		IsError: ev.ErrorKind == events.KindToolError, Generation: generation, Evidence: ev,
	}
}

// abandonment is the end of a call whose outcome could not be recorded.
func (s *Service) abandonment(p *pendingCall) events.Event {
	return s.event(p.about, events.ToolCallAbandoned{Tool: p.toolName()})
}

// serverView returns a server's entry and how it stands.
func (s *Service) serverView(name events.ServerName) (*config.Server, projections.Server, error) {
	s.mu.Lock()
	srv, known := s.servers[name]
	s.mu.Unlock()
	if !known {
		return nil, projections.Server{}, ErrUnknownServer
	}
	var v projections.Server
	now := s.now()
	if err := s.engine.View(func(st *projections.State) { v, known = st.Server(name, now) }); err != nil {
		return nil, projections.Server{}, err
	}
	if !known {
		return nil, projections.Server{}, ErrUnknownServer
	}
	return srv, v, nil
}
