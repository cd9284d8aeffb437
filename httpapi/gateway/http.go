package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpledger/httpapi/patient"
)

// The methods answered here, and the notifications looked at.
const (
	methodToolsList     = "tools/list"
	methodToolsCall     = "tools/call"
	methodResources     = "resources/list"
	methodTemplates     = "resources/templates/list"
	methodResourcesRead = "resources/read"
	methodSubscribe     = "resources/subscribe"
	methodUnsubscribe   = "resources/unsubscribe"
	methodPrompts       = "prompts/list"
	methodPromptsGet    = "prompts/get"
	methodComplete      = "completion/complete"
	methodInitialize    = "initialize"
	methodDiscover      = "server/discover"
	methodPing          = "ping"
	methodListen        = "subscriptions/listen"
	methodSetLevel      = "logging/setLevel"
	methodCancelled     = "notifications/cancelled"
	methodLog           = "notifications/message"
	methodProgress      = "notifications/progress"
)

// Serve answers a request to /mcp or /mcp/{server}. Whoever mounts it checks hosts,
// origins and who may call.
//
// An error means that nothing was answered. It is a *Refusal, wraps
// discovery.ErrUnknownServer for an address of which no server is configured, or is that
// of folds which have not caught up.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request) error {
	w, restore := g.patiently(w, r)
	defer restore()
	at := placeOf(r)
	// A session can be ended wherever it was begun.
	if r.Method != http.MethodDelete {
		if err := g.check(r.Context(), at); err != nil {
			return err
		}
	}
	v, leave := g.enterView(at)
	defer leave()
	switch r.Method {
	case http.MethodPost:
		return g.post(w, r, v)
	case http.MethodGet:
		return g.get(w, r, v)
	case http.MethodDelete:
		return g.delete(w, r, v)
	}
	w.Header().Set("Allow", "GET, POST, DELETE")
	return refused(http.StatusMethodNotAllowed, "method_not_allowed", "GET, POST and DELETE are possible")
}

// post takes one message.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, v *view) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return refused(http.StatusUnsupportedMediaType, "unsupported_media_type", "messages are sent as application/json")
	}
	leave, ok := takePlace(g.requests)
	if !ok {
		return busy("too many requests at the same time")
	}
	defer leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.maxBody))
	if err != nil {
		status := http.StatusBadRequest
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeError(w, status, mcp.PARSE_ERROR, "the body cannot be read: "+err.Error())
		return nil
	}
	// The body has come; what is read now is only whether the client is still there.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if isBatch(body) && !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		return g.postBatch(w, r, v, body)
	}
	req, err := parseRequest(body)
	if errors.Is(err, errMessageID) {
		writeError(w, http.StatusBadRequest, mcp.INVALID_REQUEST, err.Error())
		return nil
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, mcp.PARSE_ERROR, err.Error())
		return nil
	}
	if wrong := req.wrongShape(); wrong != nil {
		writeJSON(w, http.StatusOK, answer{err: wrong}.reply(req.ID))
		return nil
	}
	if req.modern(r.Header) {
		return g.postModern(w, r, v, req)
	}
	return g.postSession(w, r, v, req)
}

// postModern takes a message of 2026-07-28 or later, which stands for itself.
func (g *Gateway) postModern(w http.ResponseWriter, r *http.Request, v *view, req *request) error {
	if req.ID == nil {
		// Notifications change nothing here: a request is cancelled by its own end.
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	handle := g.method(req.Method)
	switch {
	case req.Method == methodListen:
		return g.listen(w, r, v, req)
	case req.Method == methodDiscover:
		v.introduce(r, req).writeTo(w)
		return nil
	case handle == nil:
		v.library(r, req).writeTo(w)
		return nil
	}
	if wrong := req.checkModern(r.Header); wrong != nil {
		writeJSON(w, http.StatusBadRequest, answer{err: wrong}.reply(req.ID))
		return nil
	}
	asker := g.caller(r)
	who := callerName(asker, req.meta.Client.Name)
	out := newReply(w, r, req, req.meta.LogLevel)
	out.finish(g.answer(r.Context(), &exchange{
		view: v, request: req, out: out, modern: true, first: req.Method == methodToolsList && v.firstList(who),
		caller: who, asker: asker, client: who,
	}, handle))
	return nil
}

// postSession takes a message that belongs to a session, or begins one.
func (g *Gateway) postSession(w http.ResponseWriter, r *http.Request, v *view, req *request) error {
	if req.Method == methodInitialize {
		return g.initialize(w, r, v, req)
	}
	c, leave, err := g.enter(r, v)
	if err != nil {
		return err
	}
	defer leave()
	if req.Method == methodCancelled {
		c.underway.cancel(string(req.params.RequestID))
	}
	handle := g.sessionMethod(req.Method)
	if handle == nil || req.ID == nil {
		v.library(r, req).writeTo(w)
		return nil
	}
	ctx, done, ok := c.underway.begin(r.Context(), string(req.ID))
	if !ok {
		writeJSON(w, http.StatusOK, errorOf(mcp.INVALID_REQUEST, "a request of this id is under way").reply(req.ID))
		return nil
	}
	defer done()
	out := newReply(w, r, req, c.logLevel())
	out.finish(g.answer(ctx, &exchange{
		view: v, request: req, out: out, first: req.Method == methodToolsList && c.firstList(),
		caller: callerName(c.caller, c.name), asker: c.caller, client: c.id, session: c,
	}, handle))
	return nil
}

// enter returns the session that a request is of, and what ends the request. The error is
// a *Refusal, of a request without a session or of one that is over.
func (g *Gateway) enter(r *http.Request, v *view) (c *client, leave func(), err error) {
	id, version := r.Header.Get(server.HeaderKeySessionID), r.Header.Get(mcp.HeaderProtocolVersion)
	c, leave, err = g.clients.enter(id, v, g.caller(r))
	switch {
	case id == "":
		return nil, nil, refused(http.StatusBadRequest, "session_missing", "a session id is missing: send initialize")
	case err != nil:
		return nil, nil, refused(http.StatusNotFound, codeSessionNotFound, "there is no such session, or none any more: send initialize")
	case version != "" && !mcp.IsValidProtocolVersion(version):
		leave()
		return nil, nil, refused(http.StatusBadRequest, "unknown_protocol_version",
			"there is no such version of the protocol: "+strconv.Quote(version))
	}
	return c, leave, nil
}

// delete ends a session.
func (g *Gateway) delete(w http.ResponseWriter, r *http.Request, v *view) error {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		v.http.ServeHTTP(w, r) // which refuses it
		return nil
	}
	c, leave, err := g.clients.enter(r.Header.Get(server.HeaderKeySessionID), v, g.caller(r))
	if err != nil {
		return refused(http.StatusNotFound, codeSessionNotFound, "there is no such session, or none any more")
	}
	leave()
	g.drop(c)
	w.WriteHeader(http.StatusOK)
	return nil
}

// takePlace takes one of the places, unless all are taken.
func takePlace(places chan struct{}) (leave func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

// patiently returns the writer of an answer that may take as long as a call does, or a
// stream: the server's limits on a request's time are lifted, but for one on how long the
// client may read nothing. restore puts the limit on writing back, for what is left to be
// sent when the answer is written.
func (g *Gateway) patiently(w http.ResponseWriter, r *http.Request) (patiently http.ResponseWriter, restore func()) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // not every writer has deadlines
	restore = func() {}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		restore = func() { _ = rc.SetWriteDeadline(g.now().Add(s.WriteTimeout)) }
	}
	return patient.New(w, g.stall), restore
}
