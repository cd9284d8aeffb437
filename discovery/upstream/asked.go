package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// maxAsked is how many requests of a server may wait for our answer. The client library
// answers each in a goroutine of its own, so a server that asks and does not read would
// have as many of them as it likes.
const maxAsked = 64

// answerServer answers what a server asks of its client. We take part in nothing
// but ping: no sampling, no elicitation, no roots.
func answerServer(_ context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if req.Method == string(mcp.MethodPing) {
		return transport.NewJSONRPCResultResponse(req.ID, []byte(`{}`)), nil
	}
	return transport.NewJSONRPCErrorResponse(req.ID, mcp.METHOD_NOT_FOUND, req.Method+" is refused: mcpledger, which stands between this server and its clients, passes on no sampling, elicitation or roots", nil), nil
}

// asked are the requests of a process that wait for an answer. They are answered one
// after another.
type asked chan transport.JSONRPCRequest

// take takes a line, if it is a request. One too many gets no answer.
func (a asked) take(line []byte) bool {
	if !bytes.Contains(line, []byte(`"method"`)) {
		return false
	}
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &head) != nil || head.Method == "" || len(head.ID) == 0 || string(head.ID) == "null" {
		return false
	}
	req := transport.JSONRPCRequest{Method: head.Method}
	if json.Unmarshal(head.ID, &req.ID) != nil {
		return true // an id that is none cannot be answered
	}
	select {
	case a <- req:
	default:
	}
	return true
}

// answer writes the answers to w until the process ends.
func (a asked) answer(w io.Writer, ended <-chan struct{}) {
	for {
		select {
		case req := <-a:
			reply, _ := answerServer(context.Background(), req) // which never fails
			if _, err := w.Write(append(encoded(reply), '\n')); err != nil {
				return // nobody reads any more
			}
		case <-ended:
			return
		}
	}
}

// places counts the requests of a server over HTTP that wait for our answer, or for it to
// be taken.
type places struct{ taken atomic.Int64 }

// take takes a place for a request; false for one too many, and for a message that the
// library does not take as a request, so that answer is never called for it.
func (p *places) take(message []byte) bool {
	// It reads each message as a reply first.
	var reply transport.JSONRPCResponse
	var req transport.JSONRPCRequest
	if json.Unmarshal(message, &reply) != nil || json.Unmarshal(message, &req) != nil {
		return false
	}
	if p.taken.Add(1) <= maxAsked {
		return true
	}
	p.taken.Add(-1)
	return false
}

// answer answers a request that has a place. The library's context for it ends when the
// answer is sent, or cannot be.
func (p *places) answer(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	context.AfterFunc(ctx, func() { p.taken.Add(-1) })
	return answerServer(ctx, req)
}
