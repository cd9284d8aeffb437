package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// get opens the stream on which a client hears what it did not ask for.
func (g *Gateway) get(w http.ResponseWriter, r *http.Request, v *view) error {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		v.http.ServeHTTP(w, r) // which refuses it
		return nil
	}
	c, leave, err := g.enter(r, v)
	if err != nil {
		return err
	}
	defer leave()
	return g.stream(w, r, c, func(ctx context.Context, w http.ResponseWriter) {
		begin := func() error {
			// From here on no other stream of the session takes anything to send.
			sent := c.outbox.sent()
			if read := r.Header.Get("Last-Event-Id"); read != "" && read != strconv.FormatInt(sent, 10) {
				g.missed(c)
			}
			if err := beginStream(w); err != nil {
				return err
			}
			return c.prime(w, sent)
		}
		if c.outbox.serve(ctx, w, begin) != nil {
			g.missed(c)
		}
	})
}

// prime tells a client up to which event it has been told, so that it can say so when it
// comes back though nothing more was sent. Earlier revisions do not know of that.
func (c *client) prime(w http.ResponseWriter, sent int64) error {
	if c.protocolVersion() < primingVersion {
		return nil
	}
	return send(w, fmt.Appendf(nil, "id: %d\ndata:\n\n", sent))
}

// primingVersion is the first revision whose streams begin with the id of an event.
const primingVersion = mcp.ProtocolVersion20251125

// missed notes for a session's next stream all that its client may not have read of the
// last one: that lists have changed, and what it subscribed to.
func (g *Gateway) missed(c *client) {
	for _, method := range listChanges {
		c.outbox.tell(method, nil)
	}
	g.subscriptions.remind(c.updates)
}

// stream serves a stream that ends with the client's session or with the service, and has
// nothing more written to it when the client may hear no more.
func (g *Gateway) stream(w http.ResponseWriter, r *http.Request, c *client, serve func(context.Context, http.ResponseWriter)) error {
	leave, ok := takePlace(g.streams)
	if !ok {
		return busy("too many streams at the same time")
	}
	defer leave()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	stop := context.AfterFunc(g.life, func() { cancel(errStopping) })
	defer stop()
	if c != nil {
		stop := context.AfterFunc(c.life, func() { cancel(errNoSession) })
		defer stop()
	}
	serve(ctx, allowedWriter{w, func() bool { return g.allowed(r) }})
	return nil
}

// allowedWriter writes as long as the client may hear what is written.
type allowedWriter struct {
	http.ResponseWriter
	allowed func() bool
}

// errNotAllowed ends a stream whose client may hear no more, as if it had gone.
var errNotAllowed = errors.New("the client may hear no more")

// Write writes p, or nothing and returns errNotAllowed.
func (w allowedWriter) Write(p []byte) (int, error) {
	if !w.allowed() {
		return 0, errNotAllowed
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController what else the writer can do.
func (w allowedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
