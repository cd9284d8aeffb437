package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
		_ = beginStream(o.w)
	}
	// If the client has gone, the request's context ends.
	_ = writeEvent(o.w, 0, message)
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
		_ = writeEvent(o.w, 0, pieces...) // a client that has gone asks no more
		return
	}
	writeJSON(o.w, http.StatusOK, pieces)
}

// noBuffering is the header that has nginx, and proxies after its fashion, pass events
// on at once.
const noBuffering = "X-Accel-Buffering"

// beginStream begins an answer that is a stream of events.
func beginStream(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set(noBuffering, "no")
	w.WriteHeader(http.StatusOK)
	return http.NewResponseController(w).Flush()
}

// writeEvent writes one message as an event; it has no id where that is 0. An error is
// that of a client that has gone.
func writeEvent(w http.ResponseWriter, id int64, message ...[]byte) error {
	head := []byte("event: message\n")
	if id > 0 {
		head = fmt.Appendf(head, "id: %d\n", id)
	}
	return send(w, slices.Concat([][]byte{head, []byte("data: ")}, message, [][]byte{[]byte("\n\n")})...)
}

// writeHeartbeat writes what says nothing, so that proxies do not close a stream for
// silence.
func writeHeartbeat(w http.ResponseWriter) error { return send(w, []byte(": still here\n\n")) }

// send writes a part of a stream, at once.
func send(w http.ResponseWriter, pieces ...[]byte) error {
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
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
func writeError(w http.ResponseWriter, status, code int, message string) {
	writeJSON(w, status, errorOf(code, "%s", message).reply(nil))
}
