package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// Info is what a server told of itself, unmasked.
type Info struct {
	ProtocolVersion string
	Era             Era // EraLegacy or EraModern
	Server          events.ServerInfo
	Capabilities    json.RawMessage // as sent
	Instructions    string
	ProcessGroup    int // 0 over http and sse
}

// Session is an open connection to a server. It is safe for concurrent use.
type Session struct {
	target Target
	conn   conn
	info   Info
	ids    atomic.Int64

	alive context.Context // ends with the session, by cause
	end   context.CancelCauseFunc

	active   atomic.Pointer[func()] // called when a process wrote something
	changed  chan struct{}          // notices that the list of tools changed
	progress progressSinks
	watches  watches

	closing  sync.Once
	closeErr error
}

// Open starts or dials t and shakes hands. The error is a *Failure; whatever was
// started has ended when it is returned. If ctx ends, the failure's kind is
// events.KindCancelled.
func Open(ctx context.Context, t Target) (*Session, error) {
	began := t.Now()
	ctx, cancel := t.withLimit(ctx, t.Budget.Total, "answer the handshake")
	defer cancel()
	begin := (*Session).initializeOrDiscover
	if t.Era == EraModern {
		begin = (*Session).discover
	}
	s, first := open(ctx, t, began, begin)
	if first == nil {
		return s, nil
	}
	if t.Era != EraModern || !refusesEra(first) {
		return nil, first
	}
	s, second := open(ctx, t, began, (*Session).initialize)
	switch {
	case second == nil:
		return s, nil
	case refusesEra(second):
		return nil, first
	default:
		return nil, second
	}
}

// open makes one connection and shakes hands over it by begin.
func open(ctx context.Context, t Target, began time.Time, begin func(*Session, context.Context) *Failure) (*Session, *Failure) {
	s := &Session{target: t, changed: make(chan struct{}, 1)}
	s.alive, s.end = context.WithCancelCause(context.Background())
	ctx, stop := s.limitSilence(ctx)
	defer stop()
	f := s.connect(ctx)
	if f == nil {
		f = begin(s, ctx)
	}
	if f == nil {
		if t.OnToolsChanged != nil {
			go s.announce()
			if s.info.Era == EraModern {
				go s.subscribe()
			}
		}
		return s, nil
	}
	failed := t.Now()
	if f.Evidence.ErrorKind == events.KindCancelled {
		f.Evidence.EndedBy = events.EndedByUs
	}
	if s.conn != nil {
		// What a process wrote is complete once it has ended.
		_ = s.Close(context.WithoutCancel(ctx))
	}
	return nil, s.complete(f, "", began, failed)
}

// limitSilence returns ctx, ended when a process writes nothing for too long.
func (s *Session) limitSilence(ctx context.Context) (context.Context, func()) {
	limit := s.target.Budget.Silence
	if limit <= 0 || s.target.Transport != events.TransportStdio {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := s.target.after(limit, func() { cancel(&limitError{limit: limit, what: "write anything"}) })
	heard := func() { timer.Reset(s.target.Now().Add(limit)) }
	s.active.Store(&heard)
	return ctx, func() {
		s.active.Store(nil)
		timer.Stop()
		cancel(nil)
	}
}

func (s *Session) connect(ctx context.Context) *Failure {
	h := hooks{
		lastID: &s.ids,
		active: func() {
			if heard := s.active.Load(); heard != nil {
				(*heard)()
			}
		},
		lost:     func(f *Failure) { s.end(f) },
		notified: s.notified,
	}
	switch s.target.Transport {
	case events.TransportStdio:
		c, f := openStdio(s.target, h)
		if f != nil {
			return f
		}
		s.conn = c
		s.info.ProcessGroup = c.process.cmd.Process.Pid
		return nil
	case events.TransportHTTP:
		c, f := dialHTTP(s.target, h)
		if f != nil {
			return f
		}
		s.conn = c
		return nil
	case events.TransportSSE:
		c, f := dialSSE(ctx, s.target, h)
		if c != nil {
			s.conn = c
		}
		return f
	default:
		err := fmt.Errorf("unknown transport %q", s.target.Transport)
		return &Failure{cause: err, Evidence: events.Evidence{Phase: events.PhaseConfig, Error: err.Error()}}
	}
}

// request sends one request and returns its result as the server sent it. The
// failure lacks the time. If ctx ends first, the server is told that nobody waits for
// the answer.
func (s *Session) request(ctx context.Context, phase events.Phase, method string, params map[string]json.RawMessage, tool json.RawMessage) (json.RawMessage, *Failure) {
	if f := s.ended(); f != nil {
		f.Evidence.Phase = phase
		return nil, f
	}
	body, err := json.Marshal(s.withMeta(params))
	if err != nil {
		return nil, &Failure{cause: err, Evidence: events.Evidence{Phase: phase, Error: s.target.errorText(err)}}
	}
	req := transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      mcp.NewRequestId(s.ids.Add(1)),
		Method:  method,
		Params:  json.RawMessage(body),
		Header:  s.conn.headers(method, body, tool),
	}
	reply, f := s.conn.request(ctx, phase, req)
	if f != nil {
		f.Evidence.Dispatched = f.sent && phase == events.PhaseCallTool
		if f.sent && phase != events.PhaseHandshake && ctx.Err() != nil && s.alive.Err() == nil {
			go s.cancelRequest(req.ID)
		}
		if f.Evidence.Phase == "" {
			f.Evidence.Phase = phase
		}
		return nil, f
	}
	return reply.Result, nil
}

// ended returns a copy of the failure that ended the session, nil while it lasts.
func (s *Session) ended() *Failure {
	cause := context.Cause(s.alive)
	if cause == nil {
		return nil
	}
	var f *Failure
	if errors.As(cause, &f) {
		same := *f
		return &same
	}
	return contextFailure(s.alive, "")
}

// complete fills in what a failure of this session lacks. phase is that of failures
// that have none.
func (s *Session) complete(f *Failure, phase events.Phase, began, failed time.Time) *Failure {
	if f.Evidence.Phase == "" {
		f.Evidence.Phase = phase
	}
	if s.conn != nil {
		s.conn.describe(&f.Evidence, failed)
	}
	f.Evidence.ProtocolVersion = s.info.ProtocolVersion
	f.Evidence.ElapsedMS = failed.Sub(began).Milliseconds()
	return f
}

// Info returns what the server told of itself.
func (s *Session) Info() Info { return s.info }

// Done is closed when the session is over: the process ended, the stream broke, the
// server forgot the session, or Close was called.
func (s *Session) Done() <-chan struct{} { return s.alive.Done() }

// Err returns why the session is over, nil while it is not: a *Failure, whose
// evidence has no phase, or ErrClosed.
func (s *Session) Err() error { return context.Cause(s.alive) }

// Stderr returns what a process has written to stderr so far and the stray lines on
// its stdout, as evidence shows them. Head is empty when tail is all there was.
func (s *Session) Stderr() (head, tail string, stray *events.Junk) {
	var ev events.Evidence
	if c, ok := s.conn.(*stdioConn); ok {
		c.process.describeOutput(&ev, s.target.Now())
	}
	return ev.StderrHead, ev.StderrTail, ev.StdoutJunk
}

// Close ends the session and what it started. A process gets its stdin closed, then
// SIGTERM, then SIGKILL, about a second for all, and SIGKILL at once when ctx ends;
// its group is gone when Close returns. Calls in flight fail. The error is that of a
// process that could not be killed, or of a server that could not be told. Further
// calls return the same.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.end(ErrClosed)
		s.closeErr = s.conn.close(ctx)
	})
	return s.closeErr
}
