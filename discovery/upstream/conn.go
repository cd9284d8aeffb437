package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// conn carries messages to one server. Its failures lack what only the session
// knows: the phase, unless the connection itself failed, and the time.
type conn interface {
	// request returns the reply to req if it has a result, else the failure.
	request(ctx context.Context, phase events.Phase, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, *Failure)
	notify(ctx context.Context, phase events.Phase, n mcp.JSONRPCNotification) *Failure
	// describe adds to the evidence of any failure, at the time at, what the
	// connection knows.
	describe(ev *events.Evidence, at time.Time)
	// headers returns what of a request is to be repeated in HTTP headers. tool is the
	// definition of the tool that is called, if it is known.
	headers(method string, params, tool json.RawMessage) http.Header
	// setVersion tells which revision of the protocol is spoken.
	setVersion(version string)
	close(ctx context.Context) error
}

// hooks are what a connection tells its session.
type hooks struct {
	lastID *atomic.Int64 // the highest request id in use
	active func()        // something was received
	lost   func(*Failure)
	// notified runs where messages are read, so it must not block.
	notified func(mcp.JSONRPCNotification)
}

// judge returns the failure a reply is, nil if it has a result.
func (t Target) judge(req transport.JSONRPCRequest, reply *transport.JSONRPCResponse) *Failure {
	switch {
	case reply.ID != req.ID:
		return malformed("the reply has another id than the request")
	case reply.Error != nil:
		return t.rpcFailure(reply)
	case len(reply.Result) == 0:
		return malformed("the reply has neither a result nor an error")
	}
	return nil
}

// malformed is the failure of an answer that is not what the protocol says.
func malformed(detail string) *Failure {
	return &Failure{
		Evidence: events.Evidence{ErrorKind: events.KindMalformed, Error: detail},
		cause:    errors.New(detail),
	}
}

// contextFailure is the failure of a request whose context ended: the session's
// end, a limit, shown as timeout, or a cancellation.
func contextFailure(ctx context.Context, timeout events.ErrorKind) *Failure {
	cause := context.Cause(ctx)
	var lost *Failure
	if errors.As(cause, &lost) {
		same := *lost
		return &same
	}
	f := &Failure{cause: cause, Evidence: events.Evidence{ErrorKind: events.KindCancelled, Error: cause.Error()}}
	var limit *limitError
	switch {
	case errors.As(cause, &limit):
		f.Evidence.ErrorKind = timeout
		f.Evidence.LimitMS = limit.limit.Milliseconds()
	case errors.Is(cause, context.DeadlineExceeded):
		f.Evidence.ErrorKind = timeout
	case errors.Is(cause, ErrClosed):
		f.Evidence.EndedBy = events.EndedByUs
	}
	return f
}
