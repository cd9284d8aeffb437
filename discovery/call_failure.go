package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// CallFailure says why a call gave no usable result.
type CallFailure struct {
	Class    rules.Class     // empty where there is no cause to judge
	Code     string          // one of the Code words
	Evidence events.Evidence // zero for what was refused before anything was seen
	Detail   string          // one sentence, secrets masked
	Since    time.Time       // when what holds calls back began; zero when nothing does
	ClearsOn []string        // projections' ClearsOn words; empty when nothing holds calls back
	// RetryAfter is how long to wait before the same is worth asking again: what the server
	// said, or until it is attempted again by itself. 0 when nothing is known.
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

// describeFailure says in the API's words what a call's failure is.
func (s *Service) describeFailure(err error, ev events.Evidence) *CallFailure {
	verdict := s.engine.Rules().Classify(ev)
	f := &CallFailure{
		Class: verdict.Class, Evidence: ev, Detail: detailOf(ev, verdict),
		Code: codeOf(ev, verdict), RetryAfter: time.Duration(ev.RetryAfterMS) * time.Millisecond,
	}
	var waiting *notConnectedError
	switch {
	case errors.As(err, &waiting):
		f.Code, f.Since, f.RetryAfter = CodeNotConnected, waiting.since, waiting.retryAfter
		f.ClearsOn = []string{projections.ClearsOnExpiry}
		f.Detail = fmt.Sprintf("not connected, next opening in %s: %s", waiting.retryAfter.Round(time.Millisecond), f.Detail)
	case f.Code == CodeTooLarge && ev.Dispatched:
		f.Detail = "the call was carried out, but its result is too large: " + f.Detail
	}
	return f
}

// detailOf returns what failed in a sentence. How a process ended tells a caller
// little, so what it said last goes with it.
func detailOf(ev events.Evidence, v rules.Verdict) string {
	switch ev.ErrorKind {
	case events.KindExit, events.KindSignal, events.KindEOF, events.KindTimeoutStart:
		if v.Text != "" && ev.Error != "" && v.Text != ev.Error {
			return ev.Error + ": " + v.Text
		}
	default:
	}
	return cmp.Or(ev.Error, v.Text)
}

// codeOf names a failure; a gate's status comes before everything else.
func codeOf(ev events.Evidence, v rules.Verdict) string {
	switch {
	case v.Gate != rules.GateNone:
		return codeOfGate(v.Gate)
	case sessionLost(ev):
		return CodeSessionExpired
	}
	switch ev.ErrorKind {
	case events.KindToolError:
		return CodeToolError
	case events.KindJSONRPC:
		return CodeRemoteMCPError
	case events.KindHTTPStatus:
		return CodeRemoteStatus
	case events.KindRedirect:
		return CodeRedirected
	case events.KindMalformed:
		return CodeMalformed
	case events.KindOversized:
		return CodeTooLarge
	case events.KindTimeoutConnect, events.KindTimeoutHeaders, events.KindTimeoutBody, events.KindTimeoutStart:
		return CodeToolTimeout
	case events.KindExit, events.KindSignal:
		return CodeProcessExited
	case events.KindCancelled:
		return CodeCancelled
	case events.KindEOF:
		if ev.Transport == events.TransportStdio {
			return CodeProcessExited
		}
	case events.KindDNS, events.KindRefused, events.KindReset, events.KindUnreachable, events.KindTLS:
	case events.KindExecNotFound, events.KindPermission:
		return CodeNotConnected
	default:
		if !ev.Dispatched {
			return CodeNotConnected
		}
	}
	return CodeNetworkError
}

func codeOfGate(g rules.Gate) string {
	switch g {
	case rules.GateInsufficientScope:
		return CodeInsufficientScope
	case rules.GateCredentialsMissing:
		return CodeMissingCredential
	case rules.GateAuthRequired, rules.GateNone:
	}
	return CodeAuthRequired
}

// breaksSession reports whether a call's failure leaves its session unfit for the
// next call: whatever came or did not come on the wire, but not an answer, be it a
// refusal.
func breaksSession(ev events.Evidence) bool {
	switch ev.ErrorKind {
	case events.KindHTTPStatus, events.KindJSONRPC:
		return sessionLost(ev)
	case events.KindToolError, events.KindCancelled, events.KindRedirect:
		return false
	case events.KindExecNotFound, events.KindPermission, events.KindExit, events.KindSignal, events.KindDNS,
		events.KindRefused, events.KindReset, events.KindUnreachable, events.KindTLS, events.KindTimeoutConnect,
		events.KindTimeoutHeaders, events.KindTimeoutBody, events.KindTimeoutStart, events.KindEOF,
		events.KindMalformed, events.KindOversized:
	}
	return true
}

// lostSession is how servers say in words that they do not know a session. The
// specification asks for status 404; in use are 400, and JSON-RPC errors with 200.
var lostSession = regexp.MustCompile(`(?i)\bsession\b.{0,40}\b(?:not found|not (?:be )?(?:known|valid|initialized)|unknown|invalid|expired|terminated|closed|missing|required|does not exist|no longer)\b` +
	`|\b(?:no|unknown|invalid|expired|missing|no valid|unrecognized|unrecognised)\b.{0,10}\bsession\b`)

// sessionLost reports whether an answer says that the server does not know the session
// the request was sent on. Words alone count only in an error of the protocol itself:
// what a tool says of sessions is about its own. Being wrong costs a new session and
// nothing else, since nothing is sent again.
func sessionLost(ev events.Evidence) bool {
	if !ev.SessionSent {
		return false
	}
	switch {
	case ev.ErrorKind == events.KindHTTPStatus && ev.HTTPStatus == http.StatusNotFound:
		return true
	case ev.ErrorKind == events.KindHTTPStatus && ev.HTTPStatus == http.StatusBadRequest:
		return lostSession.MatchString(cmp.Or(ev.JSONRPCMessage, ev.BodyExcerpt))
	case ev.ErrorKind == events.KindJSONRPC && ev.JSONRPCCode != nil:
		return protocolError(*ev.JSONRPCCode) && lostSession.MatchString(ev.JSONRPCMessage)
	}
	return false
}

// protocolError reports whether a JSON-RPC code is used for errors of the session
// rather than of a tool: "invalid request", and those left to implementations.
func protocolError(code int) bool {
	return code == -32600 || code >= -32099 && code <= -32000
}

// asFailure returns the failure that an error of a call is. What is none of upstream's
// happened before anything was sent.
func asFailure(err error) *upstream.Failure {
	var failure *upstream.Failure
	if errors.As(err, &failure) {
		return failure
	}
	ev := events.Evidence{Phase: events.PhaseConnect, Error: err.Error()}
	var slow *openingTimeout
	switch {
	case errors.As(err, &slow):
		ev.ErrorKind, ev.Transport, ev.LimitMS = events.KindTimeoutConnect, slow.transport, slow.limit.Milliseconds()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errShutdown):
		ev.ErrorKind = events.KindCancelled
	}
	return &upstream.Failure{Evidence: ev}
}
