package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"mcpledger/events"
)

// ErrClosed is how a session ends that we closed.
var ErrClosed = errors.New("session closed")

// Failure is an error with all that was seen of it. Open, ListTools and CallTool
// return no other error.
type Failure struct {
	// Evidence is fit for the log: secrets masked, texts bounded.
	Evidence events.Evidence
	// RPC is the JSON-RPC error as the server sent it, if it sent one. It is for the
	// caller alone: nothing in it is masked.
	RPC *RPCError

	cause error
	sent  bool // the request may have reached the server
}

// Error says in which phase, if one is known, what failed.
func (f *Failure) Error() string {
	if f.Evidence.Phase == "" {
		return f.Evidence.Error
	}
	return fmt.Sprintf("%s: %s", f.Evidence.Phase, f.Evidence.Error)
}

// Unwrap returns the error underneath, if the failure came from one.
func (f *Failure) Unwrap() error { return f.cause }

// RPCError is a JSON-RPC error. Data is nil when there was none.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// limitError is the cause of a context that a limit ended.
type limitError struct {
	limit time.Duration
	what  string // such as "answer the handshake"
}

func (e *limitError) Error() string {
	return fmt.Sprintf("did not %s within %s", e.what, e.limit)
}

// rpcFailure is the failure a JSON-RPC error is.
func (t Target) rpcFailure(reply *transport.JSONRPCResponse) *Failure {
	rpc := &RPCError{Code: reply.Error.Code, Message: reply.Error.Message}
	if reply.Error.Data != nil {
		// The value came out of JSON, so it goes back in.
		rpc.Data, _ = json.Marshal(reply.Error.Data)
	}
	f := &Failure{RPC: rpc, Evidence: events.Evidence{ErrorKind: events.KindJSONRPC}}
	t.describeRPC(&f.Evidence, rpc)
	f.Evidence.Error = f.Evidence.JSONRPCMessage
	return f
}

func (t Target) describeRPC(ev *events.Evidence, rpc *RPCError) {
	ev.JSONRPCCode = &rpc.Code
	ev.JSONRPCMessage = t.Redactor.Text(rpc.Message, events.MaxJSONRPCBytes)
	ev.JSONRPCData = t.Redactor.Text(string(rpc.Data), events.MaxJSONRPCBytes)
}
