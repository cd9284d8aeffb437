package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// CallOptions are what a call may add. The zero value adds nothing.
type CallOptions struct {
	// Meta is the request's _meta, an object, passed on as it is but for the progress
	// token, which is ours.
	Meta json.RawMessage
	// Progress is called for each progress notification, in order, from one goroutine,
	// and not after CallTool has returned. While it blocks, up to 16 more wait and
	// later ones are dropped.
	Progress func(Progress)
	// Silence limits the time without an answer or progress, Total the whole call. 0
	// does not limit.
	Silence, Total time.Duration
	// Tool is the tool's definition, if known. Servers of 2026-07-28 may ask in it for
	// parameters to be repeated in HTTP headers.
	Tool json.RawMessage
	// OnStatus is called with the HTTP status of the answer as soon as that is known,
	// before the body is read.
	OnStatus func(status int)
}

// CallTool calls a tool and returns the result as the server sent it. arguments is
// a JSON object, sent as it is; nil leaves it out. Nothing is ever sent twice.
//
// The error is a *Failure. Its evidence says whether the call may have reached the
// server, and RPC holds a JSON-RPC error. For a result with isError the failure has
// the kind events.KindToolError, and the result is returned beside it.
func (s *Session) CallTool(ctx context.Context, name string, arguments json.RawMessage, opts CallOptions) (json.RawMessage, error) {
	began := s.target.Now()
	ctx, cancel := s.target.withLimit(ctx, opts.Total, "answer the call")
	defer cancel()
	if opts.OnStatus != nil {
		ctx = context.WithValue(ctx, statusKey{}, opts.OnStatus)
	}
	ctx, token, done := s.follow(ctx, opts)
	defer done()

	params := map[string]json.RawMessage{"name": encoded(name)}
	if len(arguments) > 0 {
		params["arguments"] = arguments
	}
	meta := map[string]json.RawMessage{}
	if len(opts.Meta) > 0 {
		if err := json.Unmarshal(opts.Meta, &meta); err != nil {
			f := &Failure{cause: err, Evidence: events.Evidence{Error: "_meta is no object"}}
			return nil, s.complete(f, events.PhaseCallTool, began, s.target.Now())
		}
	}
	delete(meta, "progressToken")
	if token != 0 {
		meta["progressToken"] = encoded(token)
	}
	if len(meta) > 0 {
		params["_meta"] = encoded(meta)
	}

	result, f := s.request(ctx, events.PhaseCallTool, string(mcp.MethodToolsCall), params, opts.Tool)
	if f != nil {
		return nil, s.complete(f, events.PhaseCallTool, began, s.target.Now())
	}
	if f := s.target.toolError(result); f != nil {
		f.Evidence.Dispatched = true
		return result, s.complete(f, events.PhaseCallTool, began, s.target.Now())
	}
	return result, nil
}

// follow returns ctx, ended when neither answer nor progress comes for too long, and
// the token that asks for progress, 0 if none is wanted.
func (s *Session) follow(ctx context.Context, opts CallOptions) (followed context.Context, token int64, done func()) {
	if opts.Progress == nil && opts.Silence <= 0 {
		return ctx, 0, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	heard, stop := func() {}, func() {}
	if opts.Silence > 0 {
		timer := s.target.after(opts.Silence, func() {
			cancel(&limitError{limit: opts.Silence, what: "answer the call or report progress"})
		})
		heard, stop = func() { timer.Reset(s.target.Now().Add(opts.Silence)) }, timer.Stop
	}
	queue, delivered := make(chan Progress, 16), make(chan struct{})
	go func() {
		defer close(delivered)
		for p := range queue {
			if opts.Progress != nil {
				opts.Progress(p)
			}
		}
	}()
	token, remove := s.progress.add(func(p Progress) {
		heard()
		select {
		case queue <- p:
		default:
		}
	})
	return ctx, token, func() {
		remove()
		close(queue)
		<-delivered
		stop()
		cancel(nil)
	}
}

// cancelRequest tells the server that nobody waits for the answer any more. Over
// streamable HTTP of 2026-07-28 the end of the request says so by itself.
func (s *Session) cancelRequest(id mcp.RequestId) {
	if s.info.Era == EraModern && s.target.Transport != events.TransportStdio {
		return
	}
	ctx, cancel := context.WithTimeout(s.alive, cancelGrace)
	defer cancel()
	// Best effort: the request has failed already.
	_ = s.conn.notify(ctx, "", mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: string(mcp.MethodNotificationCancelled),
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id}},
		},
	})
}

// cancelGrace is how long the word that a request is cancelled may take to send.
const cancelGrace = 2 * time.Second

// toolError returns the failure that a result with isError is, or one that is not what
// the protocol says: no object, or content that is no array of objects. It is nil for
// any other.
func (t Target) toolError(result json.RawMessage) *Failure {
	var shape struct {
		IsError bool       `json:"isError"`
		Content []struct{} `json:"content"`
	}
	if result[0] != '{' || json.Unmarshal(result, &shape) != nil {
		return malformed("the result of the call is no object with an array of content")
	}
	if !shape.IsError {
		return nil
	}
	var said struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	// What is no text is passed over.
	_ = json.Unmarshal(result, &said)
	var texts []string
	for _, item := range said.Content {
		if item.Text != "" {
			texts = append(texts, item.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if text == "" {
		text = "the tool reports an error without text"
	}
	return &Failure{
		cause:    errors.New("tool error"),
		Evidence: events.Evidence{ErrorKind: events.KindToolError, Error: t.Redactor.Text(text, events.MaxErrorBytes)},
	}
}
