package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/httpapi/api"
)

// maxCallTimeout is the longest timeout_ms of a call.
const maxCallTimeout = 15 * time.Minute

// CallTool answers POST /api/servers/{name}/tools/{tool}/call.
func (a *API) CallTool(ctx context.Context, r api.CallToolRequestObject) (api.CallToolResponseObject, error) {
	call := discovery.Call{Server: events.ServerName(r.Name), Tool: r.Tool, Caller: callerOf(ctx).actor()}
	if r.Body != nil {
		var err error
		if call.Arguments, err = argumentsOf(r.Body.Arguments); err != nil {
			return nil, err
		}
		call.Timeout = time.Duration(r.Body.TimeoutMs) * time.Millisecond
		if r.Body.TimeoutMs < 0 || r.Body.TimeoutMs > maxCallTimeout.Milliseconds() {
			return nil, refuse(codeBadBody, "timeout_ms: must be from 0 to %d", maxCallTimeout.Milliseconds())
		}
	}
	out, err := a.discovery.Call(ctx, call)
	switch {
	case errors.Is(err, discovery.ErrUnknownServer):
		return nil, a.notConfigured(ctx, call.Server, moment{})
	case errors.Is(err, discovery.ErrOutcomeUnrecorded):
		return nil, &problem{
			code: codeOutcomeUnrecorded, cause: err, also: api.Problem{CallId: out.CallID, Dispatched: true},
			detail: "the call was sent and may have been carried out; do not repeat it unless that does no harm",
		}
	case err != nil:
		return nil, err
	}
	return callAnswer{
		CallId: out.CallID, Server: call.Server, Tool: call.Tool, Outcome: out.Outcome, DurationMs: out.Duration.Milliseconds(),
		Dispatched: out.Dispatched, EventId: out.EventID, Failure: showCallFailure(out), Result: out.Result,
	}, nil
}

// argumentsOf returns a call's arguments as they were sent, nil for none.
func argumentsOf(raw json.RawMessage) (json.RawMessage, error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0, string(trimmed) == "null":
		return nil, nil
	case trimmed[0] != '{':
		return nil, refuse(codeBadBody, "arguments: a JSON object is wanted")
	}
	return raw, nil
}

func showCallFailure(out discovery.CallOutcome) *api.CallFailure {
	f := out.Failure
	if f == nil {
		return nil
	}
	shown := &api.CallFailure{
		Class: f.Class, ErrorKind: f.Evidence.ErrorKind, Code: f.Code, HttpStatus: f.Evidence.HTTPStatus, Detail: f.Detail,
		Since: api.NewTimestamp(f.Since), ClearsOn: list(f.ClearsOn), RetryAfterMs: f.RetryAfter.Milliseconds(),
	}
	if code := f.Evidence.JSONRPCCode; code != nil {
		shown.JsonrpcCode = *code
	}
	if out.RPC != nil {
		shown.JsonrpcData = out.RPC.Data
	}
	return shown
}

// callAnswer is a CallAnswer whose result is written byte for byte as it came. The
// encoder would escape it and take out its white space.
type callAnswer api.CallAnswer

// VisitCallToolResponse writes the answer with the result as its last member.
func (c callAnswer) VisitCallToolResponse(w http.ResponseWriter) error {
	result := c.Result
	if result == nil {
		result = json.RawMessage("null")
	}
	envelope, err := json.Marshal(struct {
		api.CallAnswer
		Result *struct{} `json:"result,omitempty"` // hides the answer's own
	}{CallAnswer: api.CallAnswer(c)})
	if err != nil {
		return fmt.Errorf("encode call %s: %w", c.CallId, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, part := range [][]byte{bytes.TrimSuffix(envelope, []byte("}")), []byte(`,"result":`), result, []byte("}\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
