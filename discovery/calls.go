package discovery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// ErrOutcomeUnrecorded reports a call that was sent and whose outcome could not be
// written down. It is closed as abandoned once the log writes again.
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
	// Timeout is how long the call may go without an answer or progress; 0 means the
	// entry's, else 60 s.
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
	Dispatched      bool
	Result          json.RawMessage // as the server sent it
	RPC             *upstream.RPCError
	Failure         *CallFailure
}

// CallFailure says why a call gave no usable result.
type CallFailure struct {
	Class      rules.Class
	Code       string // one of the Code words
	Evidence   events.Evidence
	Detail     string // one sentence
	Since      time.Time
	ClearsOn   []string
	RetryAfter time.Duration
}

// The codes of a CallFailure.
const (
	CodeToolError         = "tool_error"
	CodeNetworkError      = "network_error"
	CodeToolTimeout       = "tool_timeout"
	CodeRemoteStatus      = "remote_status"
	CodeRedirected        = "redirected"
	CodeRemoteMCPError    = "remote_mcp_error"
	CodeMalformed         = "malformed_response"
	CodeTooLarge          = "response_too_large"
	CodeSessionExpired    = "session_expired"
	CodeAuthRequired      = "auth_required"
	CodeInsufficientScope = "insufficient_scope"
	CodeMissingCredential = "missing_credentials"
	CodeProcessExited     = "process_exited"
	CodeCancelled         = "cancelled"
	CodeBlocked           = "blocked"
	CodeSkipped           = "skipped"
	CodeBraked            = "braked"
	CodeBusy              = "busy"
	CodeDisabled          = "disabled"
	CodeDiscovering       = "discovering"
	CodeNotConnected      = "not_connected"
	CodeToolNotFound      = "tool_not_found"
)

// Call calls a tool once, or says why it did not. Its start is on disk before
// anything is sent and its outcome before it returns. Nothing is ever sent twice.
//
// The error is ErrUnknownServer, events.ErrUnavailable (nothing was sent) or
// ErrOutcomeUnrecorded (it was). Whatever else went wrong is in the outcome.
func (s *Service) Call(ctx context.Context, c Call) (CallOutcome, error) {
	began := s.now()
	srv, view, err := s.serverView(c.Server)
	if err != nil {
		return CallOutcome{}, err
	}
	refusal := s.refusal(ctx, srv, view, c)
	if refusal == nil {
		refusal = s.braked(c)
	}
	if refusal != nil {
		return s.refuse(ctx, srv, c, began, refusal)
	}
	l, err := s.sessions.line(srv, c.Client)
	if err != nil {
		return CallOutcome{}, ErrStopping
	}
	if err := l.backoff(began); err != nil {
		return s.refuse(ctx, srv, c, began, notConnected(err))
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return s.refuse(ctx, srv, c, began, busy(srv, err))
	}
	defer leave()
	return s.dispatch(ctx, l, srv, c, began)
}

// dispatch records the start, opens the session if there is none, sends the call
// once, and records what came of it.
func (s *Service) dispatch(ctx context.Context, l *line, srv *config.Server, c Call, began time.Time) (CallOutcome, error) {
	a := about{server: srv.Name, key: srv.Key, callID: newID(), actor: c.Caller}
	started := events.ToolCallStarted{
		Tool: c.Tool, ArgumentsHash: s.argumentsHash(c.Arguments), ArgumentsSize: int64(len(c.Arguments)), Caller: c.Caller,
	}
	if srv.Settings.RecordCalls {
		started.Arguments = string(srv.Redactor.JSON(c.Arguments))
	}
	if _, err := s.append(ctx, a, started); err != nil {
		return CallOutcome{}, err
	}
	result, generation, err := s.send(ctx, l, srv, c)
	elapsed := s.now().Sub(began)
	out := CallOutcome{CallID: a.callID, Outcome: projections.OutcomeSucceeded, Duration: elapsed, Dispatched: true, Result: result}
	var data events.Data
	if err == nil {
		done := events.ToolCallSucceeded{
			Tool: c.Tool, ElapsedMS: elapsed.Milliseconds(), ResultSize: int64(len(result)), Generation: generation,
		}
		if srv.Settings.RecordCalls {
			done.Result = string(srv.Redactor.JSON(result))
		}
		data = done
	} else {
		failure := asFailure(err)
		ev := failure.Evidence
		if ev.ElapsedMS == 0 {
			ev.ElapsedMS = elapsed.Milliseconds()
		}
		out.Outcome, out.Dispatched, out.RPC = projections.OutcomeFailed, ev.Dispatched, failure.RPC
		out.Failure = s.describeFailure(err, ev)
		data = events.ToolCallFailed{
			Tool: c.Tool, ElapsedMS: elapsed.Milliseconds(), Dispatched: ev.Dispatched, ResultSize: int64(len(result)),
			IsError: ev.ErrorKind == events.KindToolError, Generation: generation, Evidence: ev,
		}
	}
	id, err := s.recordOutcome(ctx, a, data)
	if err != nil {
		go s.abandon(a, c.Tool)
		return CallOutcome{CallID: a.callID}, err
	}
	out.EventID = id
	if out.Failure != nil {
		s.announce(ctx, srv.Name)
	}
	return out, nil
}

// send opens a session if there is none and calls the tool on it. A session that a
// call found broken is discarded, unless a newer one took its place.
func (s *Service) send(ctx context.Context, l *line, srv *config.Server, c Call) (result json.RawMessage, generation int64, err error) {
	live, err := l.session(ctx)
	if err != nil {
		return nil, 0, undispatched(err)
	}
	silence := cmp.Or(c.Timeout, srv.Timeouts.Call, callSilence)
	result, err = live.CallTool(ctx, c.Tool, c.Arguments, upstream.CallOptions{
		Meta: c.Meta, Progress: c.Progress, Silence: silence,
		Total: max(cmp.Or(srv.Timeouts.CallTotal, callTotal), silence),
	})
	var failure *upstream.Failure
	if errors.As(err, &failure) && breaksSession(failure.Evidence) {
		l.discard(live, string(failure.Evidence.ErrorKind), &failure.Evidence)
	}
	return result, live.generation, err
}

// undispatched marks a failure to open a session as one before the call was sent.
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

// breaksSession reports whether a call's failure leaves its session unfit for the
// next call: whatever came or did not come on the wire, but not an answer, be it a
// refusal.
func breaksSession(ev events.Evidence) bool {
	switch ev.ErrorKind {
	case events.KindJSONRPC, events.KindToolError, events.KindCancelled, events.KindRedirect:
		return false
	case events.KindHTTPStatus:
		return ev.HTTPStatus == 404 && ev.SessionSent
	case events.KindExecNotFound, events.KindPermission, events.KindExit, events.KindSignal, events.KindDNS,
		events.KindRefused, events.KindReset, events.KindUnreachable, events.KindTLS, events.KindTimeoutConnect,
		events.KindTimeoutHeaders, events.KindTimeoutBody, events.KindTimeoutStart, events.KindEOF,
		events.KindMalformed, events.KindOversized:
	}
	return true
}

// recordOutcome appends a call's outcome, even when its caller has gone.
func (s *Service) recordOutcome(ctx context.Context, a about, d events.Data) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	id, err := s.append(ctx, a, d)
	if err != nil {
		return "", errors.Join(ErrOutcomeUnrecorded, err)
	}
	return id, nil
}

// abandon closes a call whose outcome could not be recorded, once the log writes
// again. What is not closed when the service ends is closed at its next start.
func (s *Service) abandon(a about, tool string) {
	for pause(s.ctx, time.Second) == nil {
		ctx, cancel := context.WithTimeout(s.ctx, recordTimeout)
		_, err := s.append(ctx, a, events.ToolCallAbandoned{Tool: tool})
		cancel()
		if err == nil {
			return
		}
	}
}

// argumentsHash is equal for equal arguments and tells nothing else of them.
func (s *Service) argumentsHash(arguments json.RawMessage) string {
	mac := hmac.New(sha256.New, s.callKey)
	mac.Write(canonicalArguments(arguments))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// canonicalArguments returns the arguments without white space, keys sorted.
func canonicalArguments(arguments json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return arguments
	}
	b, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return b
}

func asFailure(err error) *upstream.Failure {
	var failure *upstream.Failure
	if errors.As(err, &failure) {
		return failure
	}
	ev := events.Evidence{Phase: events.PhaseConnect, Error: err.Error()}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		ev.ErrorKind = events.KindCancelled
	}
	return &upstream.Failure{Evidence: ev}
}

// describeFailure says in the API's words what a call's failure is.
func (s *Service) describeFailure(err error, ev events.Evidence) *CallFailure {
	verdict := s.engine.Rules().Classify(ev)
	f := &CallFailure{
		Class: verdict.Class, Evidence: ev, Detail: cmp.Or(ev.Error, verdict.Text),
		Code: codeOf(ev, verdict), RetryAfter: time.Duration(ev.RetryAfterMS) * time.Millisecond,
	}
	var failed *notConnectedError
	if errors.As(err, &failed) {
		f.Code, f.RetryAfter = CodeNotConnected, failed.retryAfter
	}
	return f
}

// codeOf names a failure; a gate's status comes before everything else.
func codeOf(ev events.Evidence, v rules.Verdict) string {
	switch v.Gate {
	case rules.GateAuthRequired:
		return CodeAuthRequired
	case rules.GateInsufficientScope:
		return CodeInsufficientScope
	case rules.GateCredentialsMissing:
		return CodeMissingCredential
	case rules.GateNone:
	}
	switch ev.ErrorKind {
	case events.KindToolError:
		return CodeToolError
	case events.KindJSONRPC:
		return CodeRemoteMCPError
	case events.KindHTTPStatus:
		if ev.HTTPStatus == 404 && ev.SessionSent {
			return CodeSessionExpired
		}
		return CodeRemoteStatus
	case events.KindRedirect:
		return CodeRedirected
	case events.KindMalformed:
		return CodeMalformed
	case events.KindOversized:
		return CodeTooLarge
	case events.KindTimeoutConnect, events.KindTimeoutHeaders, events.KindTimeoutBody, events.KindTimeoutStart:
		return CodeToolTimeout
	case events.KindExit, events.KindSignal, events.KindExecNotFound, events.KindPermission:
		return CodeProcessExited
	case events.KindCancelled:
		return CodeCancelled
	case events.KindEOF:
		if ev.Transport == events.TransportStdio {
			return CodeProcessExited
		}
	case events.KindDNS, events.KindRefused, events.KindReset, events.KindUnreachable, events.KindTLS:
	}
	return CodeNetworkError
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
