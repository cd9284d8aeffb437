package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"mcpledger/discovery/upstream"
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
		h.Set(noBuffering, "no")
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

// noBuffering is the header that has nginx, and proxies after its fashion, pass events
// on at once.
const noBuffering = "X-Accel-Buffering"

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

// writeHeartbeat writes what says nothing, so that proxies do not close a stream for
// silence.
func writeHeartbeat(w http.ResponseWriter) {
	_, _ = w.Write([]byte(": still here\n\n"))
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
