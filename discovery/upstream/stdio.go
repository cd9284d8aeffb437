package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// stuckGrace is how long a request may go on after its context ended before stdin
// is taken for blocked: the server does not read it.
const stuckGrace = 250 * time.Millisecond

// settleGrace is how long stderr of a process that goes on may lag behind stdout.
const settleGrace = 50 * time.Millisecond

// endGrace is how long a broken pipe waits for the exit that explains it. It covers
// a process that closed stdout and goes on.
const endGrace = stdoutGrace + killGrace

// stdioConn is a connection to a process.
type stdioConn struct {
	target  Target
	process *process
	client  *transport.Stdio
}

// openStdio starts the process of t.
func openStdio(t Target, h hooks) (*stdioConn, *Failure) {
	p, err := startProcess(t, h.lastID, h.active)
	if err != nil {
		return nil, t.spawnFailure(err)
	}
	c := &stdioConn{target: t, process: p}
	c.client = transport.NewIO(p.stdout, p.stdin, io.NopCloser(bytes.NewReader(nil)))
	transport.WithCommandLogger(slog.New(slog.DiscardHandler))(c.client)
	c.client.SetNotificationHandler(h.notified)
	// Start fails only where it starts a process itself.
	_ = c.client.Start(context.Background())
	go func() {
		<-p.ended
		f := c.endFailure()
		c.describe(&f.Evidence, t.Now())
		h.lost(f)
	}()
	return c, nil
}

func (c *stdioConn) request(ctx context.Context, phase events.Phase, req transport.JSONRPCRequest) (reply *transport.JSONRPCResponse, f *Failure) {
	over := c.unblock(ctx)
	reply, err := c.client.SendRequest(ctx, req)
	over()
	if err != nil {
		f = c.fail(ctx, phase)
	} else {
		f = c.target.judge(req, reply)
		if sent := c.process.stdout.sent.take(encoded(req.ID)); f != nil {
			f.sentAs(sent)
		}
	}
	if f != nil {
		f.sent = true
	}
	return reply, f
}

// notify leaves a broken pipe to the next request: whether a dying process still
// takes a line that it will not answer is chance.
func (c *stdioConn) notify(ctx context.Context, phase events.Phase, n mcp.JSONRPCNotification) *Failure {
	defer c.unblock(ctx)()
	if err := c.client.SendNotification(ctx, n); err != nil && ctx.Err() != nil {
		return c.fail(ctx, phase)
	}
	return nil
}

// unblock ends the process if a write to it outlives ctx: half a message is in the
// pipe, so nothing else can be sent. It returns what to call when the write is over.
func (c *stdioConn) unblock(ctx context.Context) (over func()) {
	returned := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(stuckGrace)
		defer timer.Stop()
		if !waitFor(timer.C, returned) {
			c.process.kill(fateDeaf)
		}
	})
	return func() {
		close(returned)
		stop()
	}
}

// fail returns the failure of a message that could not be sent, or was not answered.
// Unless ctx has ended, the pipe broke: it waits for the process to end and tells that.
func (c *stdioConn) fail(ctx context.Context, phase events.Phase) *Failure {
	if ctx.Err() != nil {
		if phase == events.PhaseCallTool {
			return contextFailure(ctx, events.KindTimeoutBody)
		}
		return contextFailure(ctx, events.KindTimeoutStart)
	}
	if !c.process.wait(ctx, endGrace) && ctx.Err() != nil {
		return contextFailure(ctx, events.KindTimeoutStart)
	}
	return c.endFailure()
}

// endFailure is the failure of every request after the end of the process.
func (c *stdioConn) endFailure() *Failure {
	f := &Failure{cause: transport.ErrTransportClosed}
	c.process.describe(&f.Evidence)
	if f.Evidence.EndedBy == events.EndedByUs {
		f.cause = ErrClosed
	}
	return f
}

// describe adds what every failure over this connection shows. What a process wrote
// to stderr belongs to its start and to its end; a call that failed meanwhile may
// have nothing to do with it.
func (c *stdioConn) describe(ev *events.Evidence, at time.Time) {
	ev.Transport = events.TransportStdio
	ev.Command = c.target.Label
	fate, fateAt := c.process.decided()
	if fate == fateClosed && fateAt.Before(at) { // what we close since it failed is the server's failure
		ev.EndedBy = events.EndedByUs
	}
	if fate != "" && fateAt.Before(at) {
		at = fateAt
	}
	if ev.Phase == events.PhaseCallTool && ev.EndedBy != events.EndedByServer {
		return
	}
	// What it wrote to stderr before it failed on stdout may come after it.
	c.process.wait(context.Background(), settleGrace)
	c.process.describeOutput(ev, at)
	if ev.StderrBytes == 0 && ev.ExitCode != nil && *ev.ExitCode != 0 {
		ev.StderrTail = c.target.npmLog(c.process.started)
	}
}

func (c *stdioConn) setVersion(string) {}

func (c *stdioConn) headers(string, json.RawMessage, json.RawMessage) http.Header { return nil }

func (c *stdioConn) close(ctx context.Context) error { return c.process.close(ctx) }
