package upstream

import (
	"io"
	"strings"
	"sync"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// capture keeps what a process wrote to stderr: the first and the last of it,
// masked on the way in, and how much there was and when the last of it came. It is
// safe for concurrent use.
type capture struct {
	mu    sync.Mutex
	now   func() time.Time
	kept  masked
	total int64     // bytes as they came
	last  time.Time // of the last write
}

func newCapture(t Target) *capture {
	// Making text plain shortens it, so more is kept than will be shown.
	return &capture{now: t.Now, kept: newMasked(t.Redactor, headTail{
		headMax: events.MaxStderrTailBytes, tailMax: 2 * events.MaxStderrTailBytes,
	})}
}

// Write keeps p. It never fails, so that the pipe is always drained.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	c.last = c.now()
	c.kept.write(p)
	return len(p), nil
}

// finish lets go of what was held back in case a secret went on. No Write follows.
func (c *capture) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.release()
}

// describe puts what was captured into ev; at is the moment of the failure.
func (c *capture) describe(ev *events.Evidence, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total == 0 {
		return
	}
	ev.StderrBytes = c.total
	ev.StderrHead, ev.StderrTail = c.texts()
	silent := max(0, at.Sub(c.last).Milliseconds())
	ev.StderrLastMS = &silent
}

// texts returns head and tail as evidence has them: the head is empty when the
// tail is all there was, and a tail with something missing begins with "…".
func (c *capture) texts() (head, tail string) {
	kept := c.kept.show()
	if whole, ok := kept.whole(); ok {
		if tail = c.kept.text(whole); len(tail) <= events.MaxStderrTailBytes {
			return "", tail
		}
	}
	return config.Cut(c.kept.text(kept.head), events.MaxStderrHeadBytes),
		cutFront(c.kept.text(kept.tail), events.MaxStderrTailBytes)
}

// masked is a headTail of text whose secrets are masked on the way in.
type masked struct {
	redactor *config.Redactor
	stream   io.WriteCloser // into kept
	kept     *headTail
	line     bool // the last byte ended a line
}

func newMasked(r *config.Redactor, bounds headTail) masked {
	return masked{redactor: r, stream: r.Stream(&bounds), kept: &bounds}
}

func (m *masked) write(p []byte) {
	if len(p) > 0 {
		m.line = p[len(p)-1] == '\n'
	}
	_, _ = m.stream.Write(p)
}

// show returns what is kept so far. The stream holds back what may be the beginning
// of a secret: that is let go at the end of a line, where a token ends, too.
func (m *masked) show() *headTail {
	if m.line {
		m.release()
	}
	return m.kept
}

// text makes a part of what is kept fit to show. It masks again what may have become
// a secret only when the control codes in its midst were removed.
func (m *masked) text(part []byte) string {
	return m.redactor.String(config.Sanitize(strings.TrimRight(string(part), "\r\n")))
}

// release lets go of what the stream holds back.
func (m *masked) release() {
	_ = m.stream.Close()
	m.stream = m.redactor.Stream(m.kept)
}

// headTail keeps the first headMax and the last tailMax bytes of what is written.
type headTail struct {
	headMax, tailMax int
	head, tail       []byte
	total            int
}

func (h *headTail) Write(p []byte) (int, error) {
	h.total += len(p)
	if room := h.headMax - len(h.head); room > 0 {
		h.head = append(h.head, p[:min(room, len(p))]...)
	}
	// The tail grows to twice its size before the old half is dropped, so that a
	// flood of short lines does not move it at every write.
	h.tail = append(h.tail, p[max(0, len(p)-h.tailMax):]...)
	if len(h.tail) > 2*h.tailMax {
		h.tail = append(h.tail[:0], h.tail[len(h.tail)-h.tailMax:]...)
	}
	return len(p), nil
}

// whole returns all that was written, if none of it was dropped.
func (h *headTail) whole() ([]byte, bool) {
	return h.tail, h.total == len(h.tail)
}

// junk keeps the beginning of the lines on stdout that are no message for us. It is
// safe for concurrent use.
type junk struct {
	mu    sync.Mutex
	count int64
	kept  masked
}

func newJunk(t Target) *junk {
	return &junk{kept: newMasked(t.Redactor, headTail{headMax: 4 * events.MaxJunkBytes})}
}

// add takes one line, with its newline.
func (j *junk) add(line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	if len(j.kept.kept.head) < 4*events.MaxJunkBytes {
		j.kept.write(line)
	}
}

// seen returns the lines so far, nil if there were none.
func (j *junk) seen() *events.Junk {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.count == 0 {
		return nil
	}
	return &events.Junk{Count: j.count, Excerpt: config.Cut(j.kept.text(j.kept.show().head), events.MaxJunkBytes)}
}
