// Package patient writes answers to clients that may be slow, but not for ever.
package patient

import (
	"net/http"
	"time"
)

// Limit is how long a client may take nothing before it counts as gone.
const Limit = 15 * time.Second

// piece is how much is written under one limit, in bytes, so that a large answer may
// take longer than a small one.
const piece = 64 << 10

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// Writer is an answer whose client must go on reading: a write or a flush of which it
// takes nothing within the limit fails, and so does all that follows. The server then
// cuts the connection and ends the request's context. On a writer that has no deadlines
// it waits as long as that does.
type Writer struct {
	http.ResponseWriter
	limit time.Duration
}

// New returns a Writer on w.
func New(w http.ResponseWriter, limit time.Duration) *Writer {
	return &Writer{ResponseWriter: w, limit: limit}
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes b, each piece of it within the limit.
func (w *Writer) Write(b []byte) (written int, err error) {
	for {
		part := b[written:min(len(b), written+piece)]
		n := 0
		err = w.within(func() (err error) {
			n, err = w.ResponseWriter.Write(part)
			return err
		})
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

// FlushError sends what was written.
func (w *Writer) FlushError() error {
	return w.within(http.NewResponseController(w.ResponseWriter).Flush)
}

// within calls do, which fails if the client stalls it for longer than the limit.
func (w *Writer) within(do func() error) error {
	rc := http.NewResponseController(w.ResponseWriter)
	cut := make(chan struct{})
	limit := time.AfterFunc(w.limit, func() {
		defer close(cut)
		_ = rc.SetWriteDeadline(past)
	})
	err := do()
	if limit.Stop() {
		return err
	}
	if <-cut; err == nil {
		_ = rc.SetWriteDeadline(time.Time{}) // it was done a moment before
	}
	return err
}
