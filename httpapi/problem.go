package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

// code is the stable word of a problem. Clients act on it; the words around it may
// change.
type code string

// The codes. Once published a code keeps its meaning.
const (
	codeBadBody          code = "bad_body"
	codeUnknownParameter code = "unknown_parameter"
	codeInvalidParameter code = "invalid_parameter"
	codeInvalidLimit     code = "invalid_limit"
	codeInvalidCursor    code = "invalid_cursor"
	codeInvalidAt        code = "invalid_at"
	codeAtInFuture       code = "at_in_future"
	codeUnknownRules     code = "unknown_rules"
	codeInvalidEvent     code = "invalid_event"
	codeBadRequest       code = "bad_request"

	codeUnauthenticated  code = "unauthenticated"
	codeForbidden        code = "forbidden"
	codeHostNotAllowed   code = "host_not_allowed"
	codeOriginNotAllowed code = "origin_not_allowed"

	codeNotFound         code = "not_found"
	codeServerNotFound   code = "server_not_found"
	codeReportNotFound   code = "report_not_found"
	codeEventNotFound    code = "event_not_found"
	codeRunNotFound      code = "run_not_found"
	codeMethodNotAllowed code = "method_not_allowed"
	codeConflict         code = "id_conflict"
	codeSessionMissing   code = "session_missing"
	codeSessionNotFound  code = "session_not_found"
	codeUnknownVersion   code = "unknown_protocol_version"
	codeServerDisabled   code = "server_disabled"
	codeServerBlocked    code = "server_blocked"
	codeBodyTooLarge     code = "body_too_large"
	codeMediaType        code = "unsupported_media_type"

	codeReplayNotFound code = "replay_not_found"
	codeRulesChanged   code = "rules_changed"
	codeUnreadable     code = "rules_unreadable"
	codeInvalidRules   code = "invalid_rules"
	codeRulesNameTaken code = "rules_name_taken"
	codeBreaksLaw3     code = "breaks_law_3"
	codeTooManyReplays code = "too_many_replays"
	codeTooManyCalls   code = "too_many_calls"

	codeOutcomeUnrecorded code = "outcome_unrecorded"
	codeInternal          code = "internal"
	codeLogCorrupt        code = "log_corrupt"
	codeCatchingUp        code = "catching_up"
	codeLogUnavailable    code = "log_unavailable"
	codeBusy              code = "busy"
	codeTimeout           code = "timeout"
	codeStopping          code = "stopping"
	codeCancelled         code = "cancelled"
)

// problems is the one table of codes.
var problems = map[code]struct {
	status int
	title  string
}{
	codeBadBody:          {http.StatusBadRequest, "The body is not what this operation takes"},
	codeUnknownParameter: {http.StatusBadRequest, "Unknown query parameter"},
	codeInvalidParameter: {http.StatusBadRequest, "Invalid parameter"},
	codeInvalidLimit:     {http.StatusBadRequest, "Invalid limit"},
	codeInvalidCursor:    {http.StatusBadRequest, "Invalid cursor"},
	codeInvalidAt:        {http.StatusBadRequest, "Invalid moment"},
	codeAtInFuture:       {http.StatusBadRequest, "That moment has not come yet"},
	codeUnknownRules:     {http.StatusBadRequest, "No such rule set"},
	codeInvalidEvent:     {http.StatusBadRequest, "The report was refused"},
	codeBadRequest:       {http.StatusBadRequest, "Bad request"},

	codeUnauthenticated:  {http.StatusUnauthorized, "Credentials are needed"},
	codeForbidden:        {http.StatusForbidden, "These credentials may not do this"},
	codeHostNotAllowed:   {http.StatusForbidden, "The service does not go by this host name"},
	codeOriginNotAllowed: {http.StatusForbidden, "Pages of this origin may not ask"},

	codeNotFound:         {http.StatusNotFound, "No such path"},
	codeServerNotFound:   {http.StatusNotFound, "No such server"},
	codeReportNotFound:   {http.StatusNotFound, "No such reports"},
	codeEventNotFound:    {http.StatusNotFound, "No such event"},
	codeRunNotFound:      {http.StatusNotFound, "No such run"},
	codeMethodNotAllowed: {http.StatusMethodNotAllowed, "This path does not take this method"},
	codeConflict:         {http.StatusConflict, "An event of this id has other content"},
	codeSessionMissing:   {http.StatusBadRequest, "A session id is missing"},
	codeSessionNotFound:  {http.StatusNotFound, "No such session"},
	codeUnknownVersion:   {http.StatusBadRequest, "No such version of the protocol"},
	codeServerDisabled:   {http.StatusConflict, "The server is disabled"},
	codeServerBlocked:    {http.StatusConflict, "The server's entry cannot be attempted"},
	codeBodyTooLarge:     {http.StatusRequestEntityTooLarge, "The body is too large"},
	codeMediaType:        {http.StatusUnsupportedMediaType, "The body is of a media type that is not taken"},

	codeReplayNotFound: {http.StatusNotFound, "No such replay"},
	codeUnreadable:     {http.StatusConflict, "The log has a rule set that this version does not read"},
	codeRulesChanged:   {http.StatusPreconditionFailed, "Another rule set is in force"},
	codeInvalidRules:   {http.StatusUnprocessableEntity, "The rule set is not valid"},
	codeRulesNameTaken: {http.StatusUnprocessableEntity, "A built-in rule set has this name"},
	codeBreaksLaw3:     {http.StatusUnprocessableEntity, "The rule set gates on too much to be put in force"},
	codeTooManyReplays: {http.StatusTooManyRequests, "Too many replays wait"},
	codeTooManyCalls:   {http.StatusTooManyRequests, "Too many calls at once"},

	codeOutcomeUnrecorded: {http.StatusInternalServerError, "The call's outcome could not be recorded"},
	codeInternal:          {http.StatusInternalServerError, "Something went wrong here"},
	codeLogCorrupt:        {http.StatusInternalServerError, "The log is damaged"},
	codeCatchingUp:        {http.StatusServiceUnavailable, "Still catching up with the log"},
	codeLogUnavailable:    {http.StatusServiceUnavailable, "The log cannot be written"},
	codeBusy:              {http.StatusServiceUnavailable, "Too many requests at once"},
	codeTimeout:           {http.StatusServiceUnavailable, "It took too long"},
	codeStopping:          {http.StatusServiceUnavailable, "The service is stopping"},
	codeCancelled:         {http.StatusServiceUnavailable, "The request was given up"},
}

// problem is an error that says what to answer.
type problem struct {
	code   code
	detail string
	also   api.Problem // members besides those that every problem has
	rpc    bool        // with the members of a JSON-RPC error, too
	cause  error       // for the service's own log; nil when the caller is at fault
}

func (p *problem) Error() string { return string(p.code) + ": " + p.detail }
func (p *problem) Unwrap() error { return p.cause }

// refuse returns a problem for the caller to mend.
func refuse(c code, format string, args ...any) *problem {
	return &problem{code: c, detail: fmt.Sprintf(format, args...)}
}

// problemOf finds what to answer to an error.
func problemOf(err error) *problem {
	var p *problem
	var tooLarge *http.MaxBytesError
	var conflict *events.ConflictError
	var refusal *gateway.Refusal
	var he *echo.HTTPError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refusal):
		return refuse(code(refusal.Code), "%s", refusal.Detail)
	case errors.As(err, &tooLarge):
		return refuse(codeBodyTooLarge, "at most %d bytes are taken", tooLarge.Limit)
	case errors.Is(err, projections.ErrCatchingUp):
		return refuse(codeCatchingUp, "the log and the config are still being read; /readyz says when they have been")
	case errors.Is(err, projections.ErrInFuture):
		return refuse(codeAtInFuture, "that is beyond the head of the log")
	case errors.Is(err, projections.ErrUnreadableRules):
		return refuse(codeUnreadable, "%v; name another set with rules=", err)
	case errors.Is(err, events.ErrUnavailable):
		return &problem{code: codeLogUnavailable, detail: "the log cannot be written now; nothing was done", cause: err}
	case errors.As(err, &conflict):
		const detail = "the log has an event of the same source and id with other content"
		p := refuse(codeConflict, "nothing was written, since event %d is wrong: %s", conflict.Index, detail)
		p.also.Errors = []api.ItemProblem{{Index: new(conflict.Index), Detail: detail}}
		return p
	case errors.Is(err, events.ErrInvalid):
		return refuse(codeInvalidEvent, "%v", err)
	case errors.Is(err, events.ErrCorrupt):
		return &problem{code: codeLogCorrupt, detail: "run \"mcpledger verify\" to see where", cause: err}
	case errors.Is(err, discovery.ErrUnknownServer):
		return refuse(codeServerNotFound, "%v", err)
	case errors.Is(err, discovery.ErrDisabled):
		return refuse(codeServerDisabled, "%v", err)
	case errors.Is(err, discovery.ErrBlocked):
		return refuse(codeServerBlocked, "%v", err)
	case errors.Is(err, events.ErrClosed), errors.Is(err, discovery.ErrStopping):
		return refuse(codeStopping, "the service is stopping")
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{code: codeTimeout, detail: "the answer was not ready in time", cause: err}
	case errors.Is(err, context.Canceled):
		return refuse(codeCancelled, "the client did not wait for the answer")
	case errors.As(err, &he):
		return ofHTTPError(he)
	}
	return &problem{code: codeInternal, detail: "the service's own log says more", cause: err}
}

// ofHTTPError puts what the router and the generated code refuse into our words.
func ofHTTPError(he *echo.HTTPError) *problem {
	switch he.Code {
	case http.StatusNotFound:
		return refuse(codeNotFound, "see /openapi.json for what there is")
	case http.StatusMethodNotAllowed:
		return refuse(codeMethodNotAllowed, "the Allow header names those it takes")
	case http.StatusRequestEntityTooLarge:
		return refuse(codeBodyTooLarge, "the body is too large")
	case http.StatusUnsupportedMediaType:
		return refuse(codeMediaType, "send application/json")
	case http.StatusBadRequest:
		return refuse(codeBadRequest, "a parameter or a header cannot be read")
	}
	return &problem{code: codeInternal, detail: "the service's own log says more", cause: he}
}

// handleError answers with problem+json, unless an answer is on its way already.
func (a *API) handleError(err error, c echo.Context) {
	p := problemOf(err)
	entry := problems[p.code]
	r := c.Request()
	if p.cause != nil && entry.status >= http.StatusInternalServerError {
		a.logger.ErrorContext(r.Context(), "request failed", slog.String("method", r.Method),
			slog.String("path", r.URL.Path), slog.String("code", string(p.code)), slog.Any("err", p.cause))
	}
	if entry.status == http.StatusUnauthorized || entry.status == http.StatusForbidden {
		a.logger.WarnContext(r.Context(), "access refused", slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("remote", r.RemoteAddr), slog.String("code", string(p.code)), slog.String("detail", p.detail))
	}
	if c.Response().Committed {
		return
	}
	if entry.status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="mcpledger"`)
	}
	if entry.status == http.StatusServiceUnavailable || entry.status == http.StatusTooManyRequests {
		c.Response().Header().Set("Retry-After", "1")
	}
	writeProblem(c.Response(), p)
}

// writeProblem writes p as problem+json. A client that has gone is no error of ours.
func writeProblem(w http.ResponseWriter, p *problem) {
	entry := problems[p.code]
	body := p.also
	body.Type, body.Code = "urn:mcpledger:problem:"+string(p.code), string(p.code)
	body.Title, body.Status, body.Detail = entry.title, entry.status, p.detail
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("ETag")
	w.WriteHeader(entry.status)
	if p.rpc {
		_ = json.NewEncoder(w).Encode(rpcProblem{Problem: body, Version: "2.0", Error: rpcError{Code: codeRefused, Message: p.detail}})
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}

// rpcProblem is a problem for clients of MCP. Common libraries read every JSON object as a
// JSON-RPC message, whatever its type, and have nothing to tell of one without an error.
type rpcProblem struct {
	api.Problem
	Version string   `json:"jsonrpc"`
	ID      *int     `json:"id"` // null: it is no answer to any one request
	Error   rpcError `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// codeRefused is the JSON-RPC code of what is refused before it was looked at, the first
// of those left to implementations.
const codeRefused = -32000
