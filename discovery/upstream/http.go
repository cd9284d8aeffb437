package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// streamGrace is how long after the end of a stream its last replies may take to
// reach who waits for them.
const streamGrace = 50 * time.Millisecond

// foreverLong stands for no limit where the client library wants one: contexts
// limit what we send.
const foreverLong = 365 * 24 * time.Hour

// httpConn is a connection over streamable HTTP, or over SSE.
type httpConn struct {
	target  Target
	client  transport.HTTPConnection
	plain   *http.Client
	rec     *recorder
	hooks   hooks
	version string // of the protocol, once it is settled

	life context.Context // ends with the connection, by cause
	end  context.CancelCauseFunc
}

// dialHTTP prepares a connection over streamable HTTP. Nothing is sent yet.
func dialHTTP(t Target, h hooks) (*httpConn, *Failure) {
	c, f := newHTTPConn(t, h)
	if f != nil {
		return nil, f
	}
	options := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(c.plain),
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)),
	}
	if t.OnToolsChanged != nil {
		options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // legacy servers tell of changes on no other stream
	}
	client, err := transport.NewStreamableHTTP(t.URL, options...)
	if err != nil {
		return nil, t.connectFailure(err)
	}
	client.SetRequestHandler(c.rec.asked.answer)
	client.SetNotificationHandler(h.notified)
	// Start sends nothing: it waits for the handshake before it listens.
	_ = client.Start(c.life)
	c.client = client
	return c, nil
}

// dialSSE connects over SSE: it opens the stream and waits for the endpoint.
func dialSSE(ctx context.Context, t Target, h hooks) (*httpConn, *Failure) {
	c, f := newHTTPConn(t, h)
	if f != nil {
		return nil, f
	}
	client, err := transport.NewSSE(t.URL,
		transport.WithHTTPClient(c.plain),
		transport.WithSSELogger(slog.New(slog.DiscardHandler)),
		transport.WithEndpointTimeout(foreverLong),
		transport.WithResponseTimeout(foreverLong),
	)
	if err != nil {
		return nil, t.connectFailure(err)
	}
	client.SetNotificationHandler(h.notified)
	c.client = client
	c.rec.onEvent = c.checkEndpoint

	life, x := withExchange(c.life)
	client.SetConnectionLostHandler(func(err error) {
		time.AfterFunc(streamGrace, func() { c.streamLost(x, err) })
	})
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	err = client.Start(life)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if x.refused() {
			f = x.statusFailure(t)
		} else {
			f = c.fail(life, x, err)
		}
		x.describe(t, &f.Evidence)
		f.Evidence.Phase = events.PhaseConnect
		c.end(f)
		return c, f
	}
	return c, nil
}

func newHTTPConn(t Target, h hooks) (*httpConn, *Failure) {
	plain, rec, err := newHTTPClient(t)
	if err != nil {
		return nil, t.connectFailure(err)
	}
	c := &httpConn{target: t, plain: plain, rec: rec, hooks: h}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

func (t Target) connectFailure(err error) *Failure {
	return &Failure{cause: err, Evidence: events.Evidence{
		Phase: events.PhaseConnect, Transport: t.Transport, Error: t.errorText(err),
	}}
}

// checkEndpoint ends an SSE stream that sends us elsewhere. The library ignores such
// an endpoint and waits on.
func (c *httpConn) checkEndpoint(name, data string) error {
	if name != "endpoint" {
		return nil
	}
	endpoint, err := c.rec.origin.Parse(data)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if endpoint.Scheme != c.rec.origin.Scheme || endpoint.Host != c.rec.origin.Host {
		return errForeign
	}
	return nil
}

// streamLost ends an SSE connection whose stream ended.
func (c *httpConn) streamLost(x *exchange, err error) {
	f := &Failure{cause: err, Evidence: events.Evidence{
		ErrorKind: x.kindOf(err), Error: c.target.errorText(err), EndedBy: events.EndedByServer,
	}}
	x.describe(c.target, &f.Evidence)
	c.end(f)
	c.hooks.lost(f)
}

func (c *httpConn) request(ctx context.Context, phase events.Phase, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, *Failure) {
	ctx, x, release := c.watch(ctx)
	defer release()
	x.id = encoded(req.ID)
	reply, err := c.client.SendRequest(ctx, req)
	var f *Failure
	switch {
	case x.refused():
		f = x.statusFailure(c.target)
	case err != nil:
		f = c.fail(ctx, x, err)
	default:
		if f = c.target.judge(req, reply); f != nil {
			f.sentAs(x.rpcError())
		}
	}
	if f != nil {
		c.complete(f, x, phase)
		return nil, f
	}
	return reply, nil
}

func (c *httpConn) notify(ctx context.Context, phase events.Phase, n mcp.JSONRPCNotification) *Failure {
	ctx, x, release := c.watch(ctx)
	defer release()
	err := c.client.SendNotification(ctx, n)
	if err == nil {
		return nil
	}
	f := c.fail(ctx, x, err)
	if x.refused() {
		f = x.statusFailure(c.target)
	}
	c.complete(f, x, phase)
	return f
}

// watch returns ctx with an exchange to record in, ended by the connection's end.
func (c *httpConn) watch(ctx context.Context) (context.Context, *exchange, func()) {
	ctx, cancel := context.WithCancelCause(undated{ctx})
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	ctx, x := withExchange(ctx)
	return ctx, x, func() {
		stop()
		cancel(nil)
	}
}

// undated hides a context's deadline. The library's SSE client would watch it by
// itself, be a little early, and lose the cause.
type undated struct{ context.Context }

// Deadline returns none.
func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// fail turns the error of a request that got no answer, or one that the library
// could not read, into a failure.
func (c *httpConn) fail(ctx context.Context, x *exchange, err error) *Failure {
	if ctx.Err() == nil && c.life.Err() != nil {
		ctx = c.life // which ends ctx in a moment
	}
	if ctx.Err() != nil {
		return contextFailure(ctx, x.timeout())
	}
	var sending *url.Error
	switch {
	case errors.Is(err, transport.ErrSessionTerminated):
		// The library sends nothing more on a session that another request lost.
		return &Failure{cause: err, Evidence: events.Evidence{
			ErrorKind: events.KindHTTPStatus, HTTPStatus: http.StatusNotFound, Error: "session lost before",
		}}
	case errors.As(err, &sending):
		err = sending.Err // without the address, which may hold credentials
	case strings.HasPrefix(err.Error(), "response should contain RPC id"):
		err = errNoID // the text goes on with the reply, in numbers that no mask fits
	}
	return &Failure{cause: err, Evidence: events.Evidence{
		ErrorKind: x.kindOf(err), Error: c.target.errorText(err),
	}}
}

// errNoID reports a reply that does not say what it replies to.
var errNoID = errors.New("the reply has no id")

// complete adds what the exchange saw, and ends a session the server has forgotten.
func (c *httpConn) complete(f *Failure, x *exchange, phase events.Phase) {
	x.describe(c.target, &f.Evidence)
	f.sent = x.reached()
	if !f.sent && phase == events.PhaseHandshake {
		f.Evidence.Phase = events.PhaseConnect
	}
	if x.sessionGone() {
		end := *f
		end.sent = false // of later requests
		c.hooks.lost(&end)
	}
}

func (c *httpConn) describe(ev *events.Evidence, _ time.Time) {
	ev.Transport = c.target.Transport
}

func (c *httpConn) setVersion(version string) {
	c.version = version
	c.client.SetProtocolVersion(version)
}

// headers returns those that 2026-07-28 wants: the method, the tool's name, and the
// parameters that the tool's definition marks.
func (c *httpConn) headers(method string, params, tool json.RawMessage) http.Header {
	header := http.Header{}
	for name, value := range mcp.StandardHeaders(c.version, mcp.MCPMethod(method), params) {
		header.Set(name, value)
	}
	var definition mcp.Tool
	if len(header) == 0 || len(tool) == 0 || json.Unmarshal(tool, &definition) != nil {
		return header
	}
	for name, value := range mcp.GenerateParamHeaders(&definition, params) {
		header.Set(name, value)
	}
	return header
}

// close ends the session at the server, and the connections.
func (c *httpConn) close(ctx context.Context) error {
	c.end(ErrClosed)
	ctx, cancel := context.WithTimeout(ctx, deleteGrace)
	defer cancel()
	c.rec.closeWithin(ctx)
	var err error
	if c.client != nil {
		err = c.client.Close()
	}
	c.plain.CloseIdleConnections()
	return err
}

// deleteGrace is how long a server may take to end a session.
const deleteGrace = 2 * time.Second
