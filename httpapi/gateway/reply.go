package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// reply writes the answer to one request: as JSON, or, once something else came
// before it, as a stream of events. It is safe for concurrent use.
type reply struct {
	w       http.ResponseWriter
	request *request
	level   string // least level of log messages; empty: none
	events  bool   // the client takes a stream

	mu       sync.Mutex
	streams  bool
	finished bool
}

func newReply(w http.ResponseWriter, r *http.Request, req *request, level string) *reply {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return &reply{w: w, request: req, level: level, events: strings.Contains(accept, "text/event-stream")}
}

// notify sends a message in front of the answer, if the client can take one.
func (o *reply) notify(message []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.events || o.finished {
		return
	}
	if !o.streams {
		o.streams = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		o.w.WriteHeader(http.StatusOK)
	}
	writeEvent(o.w, message)
}

// progress passes a server's progress on under the client's own token.
func (o *reply) progress(p upstream.Progress) {
	o.notify(notification(methodProgress, encoded(struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total,omitempty"`
		Message  string          `json:"message,omitempty"`
	}{o.request.meta.ProgressToken, p.Progress, p.Total, p.Message})))
}

// finish writes the answer. Whatever comes later is dropped.
func (o *reply) finish(a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	pieces := a.reply(o.request.ID)
	if o.streams {
		writeEvent(o.w, pieces...)
		return
	}
	writeJSON(o.w, http.StatusOK, pieces)
}

// writeEvent writes one message as an event. The client may have gone; then nobody
// is left to tell.
func writeEvent(w http.ResponseWriter, message ...[]byte) {
	_, _ = w.Write([]byte("event: message\ndata: "))
	for _, piece := range message {
		_, _ = w.Write(piece)
	}
	_, _ = w.Write([]byte("\n\n"))
	_ = http.NewResponseController(w).Flush()
}

// writeJSON writes one message as the whole body.
func writeJSON(w http.ResponseWriter, status int, message [][]byte) {
	length := 0
	for _, piece := range message {
		length += len(piece)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	for _, piece := range message {
		_, _ = w.Write(piece)
	}
}

// writeError answers a message that could not be taken as one.
func writeError(w http.ResponseWriter, status int, id json.RawMessage, code int, message string) {
	writeJSON(w, status, errorOf(code, "%s", message).reply(id))
}

// levels are those of log messages, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns a level's place among levels, -1 for none of them.
func severity(level string) int { return slices.Index(levels, level) }

// note is a log message of a server.
type note struct {
	level   string
	message []byte
}

// calls are the calls under way, by server, whose clients hear what the server logs
// meanwhile. Nobody else does: what a server says during one client's call may be
// about that call.
type calls struct {
	mu       sync.Mutex
	underway map[events.ServerName]map[*listener]bool
}

// listener passes what a server logs on to one call's client.
type listener struct {
	client string
	least  int
	notes  chan note
}

// maxNotes is how many log messages may wait for a client; more are dropped.
const maxNotes = 64

// listen passes a server's log messages to out until done is called.
func (c *calls) listen(server events.ServerName, client string, out *reply) (done func()) {
	if !out.events || severity(out.level) < 0 {
		return func() {}
	}
	l := &listener{client: client, least: severity(out.level), notes: make(chan note, maxNotes)}
	c.mu.Lock()
	if c.underway == nil {
		c.underway = map[events.ServerName]map[*listener]bool{}
	}
	if c.underway[server] == nil {
		c.underway[server] = map[*listener]bool{}
	}
	c.underway[server][l] = true
	c.mu.Unlock()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for n := range l.notes {
			out.notify(n.message)
		}
	}()
	return func() {
		c.mu.Lock()
		delete(c.underway[server], l)
		if len(c.underway[server]) == 0 {
			delete(c.underway, server)
		}
		close(l.notes)
		c.mu.Unlock()
		<-passed
	}
}

// tell hands a log message to the calls under way on a server; to those of one
// client if the server's session is that client's own. It does not block.
func (c *calls) tell(server events.ServerName, client string, n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.underway[server] {
		if client != "" && l.client != client || severity(n.level) < l.least {
			continue
		}
		select {
		case l.notes <- n:
		default:
		}
	}
}
