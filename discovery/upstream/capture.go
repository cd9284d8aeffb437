package upstream

import (
	"io"
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
	mask  io.WriteCloser // into kept
	kept  headTail
	total int64     // bytes as they came
	last  time.Time // of the last write
}

func newCapture(t Target) *capture {
	// Making text plain shortens it, so more is kept than will be shown.
	c := &capture{now: t.Now, kept: headTail{headMax: events.MaxStderrTailBytes, tailMax: 2 * events.MaxStderrTailBytes}}
	c.mask = t.Redactor.Stream(&c.kept)
	return c
}

// Write keeps p. It never fails, so that the pipe is always drained.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	c.last = c.now()
	_, _ = c.mask.Write(p)
	return len(p), nil
}

// finish lets go of what was held back in case a secret went on. No Write follows.
func (c *capture) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.mask.Close()
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
	if whole, ok := c.kept.whole(); ok {
		if tail = plain(whole); len(tail) <= events.MaxStderrTailBytes {
			return "", tail
		}
	}
	return config.Cut(plain(c.kept.head), events.MaxStderrHeadBytes),
		cutFront(plain(c.kept.tail), events.MaxStderrTailBytes)
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
	mask  io.WriteCloser // into kept
	kept  headTail
}

func newJunk(t Target) *junk {
	j := &junk{kept: headTail{headMax: 4 * events.MaxJunkBytes}}
	j.mask = t.Redactor.Stream(&j.kept)
	return j
}

func (j *junk) add(line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	if len(j.kept.head) < j.kept.headMax {
		_, _ = j.mask.Write(line)
	}
}

// seen returns the lines so far, nil if there were none. What the mask holds back
// shows once more has come.
func (j *junk) seen() *events.Junk {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.count == 0 {
		return nil
	}
	return &events.Junk{Count: j.count, Excerpt: config.Cut(plain(j.kept.head), events.MaxJunkBytes)}
}

func (j *junk) finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.mask.Close()
}
