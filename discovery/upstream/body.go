package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
)

func isEventStream(h http.Header) bool { return mediaType(h) == "text/event-stream" }

// isReply reports whether a body of these headers can hold a reply.
func isReply(h http.Header) bool {
	return isEventStream(h) || mediaType(h) == "application/json"
}

func mediaType(h http.Header) string {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media
}

// replyBody is the body of a JSON reply, recorded and bounded.
type replyBody struct {
	body   io.ReadCloser
	x      *exchange
	cancel context.CancelFunc
	left   int64 // bytes that may still come
}

func (b *replyBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		n, err = 0, errOversized
	}
	b.x.received(p[:n], err)
	return n, err
}

func (b *replyBody) Close() error {
	b.cancel()
	return b.body.Close()
}

// received records a part of a body and how it ended, if it did.
func (x *exchange) received(part []byte, err error) {
	x.update(func() {
		x.bodyBytes += int64(len(part))
		if room := keptBodyBytes - len(x.body); room > 0 {
			x.body = append(x.body, part[:min(room, len(part))]...)
		}
		// Being closed early is no way for a body to end.
		if err != nil && x.bodyErr == nil && !errors.Is(err, context.Canceled) {
			x.bodyErr = err
		}
	})
}

// eventBody is a body of server-sent events, recorded, and bounded event by event,
// for a stream may last. It hands on whole events. A stream that answers one request
// ends for the reader with the reply to it, for the client library leaks a goroutine
// over what follows; replies to other requests are left out, for the library takes
// any.
type eventBody struct {
	replyBody
	oneReply bool
	limit    int64
	onEvent  func(name, data string) error // may end the stream
	asked    *places                       // of the server's own requests

	chunk  []byte // to read into
	buf    []byte // read, not handed on yet
	ready  int    // bytes of buf that are events to hand on
	seen   int    // bytes of buf that are whole lines; at least ready
	name   []byte // of the event that is coming in
	data   []byte
	size   int64 // of that event
	ending error
}

func newEventBody(body io.ReadCloser, x *exchange, cancel context.CancelFunc, limit int64, oneReply bool, onEvent func(name, data string) error, asked *places) *eventBody {
	return &eventBody{
		replyBody: replyBody{body: body, x: x, cancel: cancel},
		oneReply:  oneReply, limit: limit, onEvent: onEvent, asked: asked,
		chunk: make([]byte, 16<<10),
	}
}

func (b *eventBody) Read(p []byte) (int, error) {
	for b.ready == 0 {
		if b.ending != nil {
			return 0, b.ending
		}
		b.fill()
	}
	n := copy(p, b.buf[:b.ready])
	b.buf = b.buf[n:]
	b.ready -= n
	b.seen -= n
	return n, nil
}

// fill reads on, by one chunk.
func (b *eventBody) fill() {
	n, err := b.body.Read(b.chunk)
	b.x.received(b.chunk[:n], err)
	from := len(b.buf)
	b.buf = append(b.buf, b.chunk[:n]...)
	b.size += int64(n)
	for {
		i := bytes.IndexByte(b.buf[from:], '\n')
		if i < 0 {
			break
		}
		line := b.buf[b.seen : from+i]
		b.seen = from + i + 1
		if ending := b.line(bytes.TrimRight(line, "\r")); ending != nil {
			b.end(ending)
			return
		}
		from = b.seen
	}
	switch {
	case err != nil:
		if errors.Is(err, io.EOF) {
			// The reader takes an event that lacks its end.
			b.seen = len(b.buf)
			b.ending = b.event()
		}
		if b.ending == nil {
			b.ending = err
		}
	case b.size > b.limit:
		b.end(errOversized)
	}
}

// end cuts the stream after what is ready.
func (b *eventBody) end(err error) {
	b.buf = b.buf[:b.ready]
	b.ending = err
	b.x.received(nil, err)
}

// line follows the stream; an error ends it.
func (b *eventBody) line(line []byte) error {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(line) == 0:
		return b.event()
	case string(field) == "event":
		b.name = append(b.name[:0], bytes.TrimSpace(value)...)
	case string(field) == "data":
		if len(b.data) > 0 {
			b.data = append(b.data, '\n')
		}
		b.data = append(b.data, value...)
	}
	return nil
}

// event looks at an event that is complete, and hands it on or leaves it out.
func (b *eventBody) event() error {
	handOn, ending := b.judge()
	if handOn {
		b.ready = b.seen
	} else {
		b.buf = slices.Delete(b.buf, b.ready, b.seen)
		b.seen = b.ready
	}
	b.name, b.data, b.size = b.name[:0], b.data[:0], int64(len(b.buf)-b.seen)
	if cap(b.data) > 1<<20 {
		b.data = nil
	}
	return ending
}

// judge says whether the event is for the reader, and whether the stream ends with it.
func (b *eventBody) judge() (handOn bool, ending error) {
	if len(b.data) == 0 {
		return true, nil
	}
	if b.onEvent != nil {
		// Over this transport the library answers no requests.
		err := b.onEvent(string(b.name), string(b.data))
		return true, err
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
	}
	switch {
	case json.Unmarshal(b.data, &message) != nil:
		b.x.update(func() { b.x.garbage = true })
		return true, nil
	case message.Method != nil && message.ID != nil && string(message.ID) != "null":
		return b.asked.take(b.data), nil
	case !b.oneReply || message.Method != nil || message.ID == nil:
		return true, nil
	case b.x.isForeign(message.ID):
		return false, nil
	}
	b.x.update(func() { b.x.reply = bytes.Clone(b.data[:min(len(b.data), keptBodyBytes)]) })
	return true, io.EOF
}
