package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
)

// errOversized is the cause of a session that ended because one message passed its
// bound.
var errOversized = errors.New("message exceeds the limit")

// sniffBytes is the size up to which a line is parsed to see whether it belongs to
// us. Longer ones are told by a search.
const sniffBytes = 64 << 10

// lineReader hands on the JSON-RPC messages that come on a process's stdout, one
// per line, but for the requests of the server, and sets the rest aside as junk: what is
// no message, and replies to requests we never sent. Blanks around a message are left out,
// and a last line without a newline gets one. A line over limit ends the stream without
// being held in memory.
type lineReader struct {
	src       *bufio.Reader
	limit     int64
	junk      *junk
	lastID    *atomic.Int64 // the highest request id in use
	oversized func()        // called once, before Read returns io.EOF
	asked     asked         // gets the requests of the server
	sent      sentErrors

	line []byte // what is left of the line being handed on
	buf  []byte // backs line
	done bool
}

func newLineReader(src io.Reader, limit int64, stray *junk, lastID *atomic.Int64, oversized func()) *lineReader {
	return &lineReader{
		src: bufio.NewReaderSize(src, 16<<10), limit: limit, junk: stray, lastID: lastID, oversized: oversized,
		asked: make(asked, maxAsked),
	}
}

// Read returns io.EOF at the end, whatever ended it: a broken pipe and a closed one
// are told apart by the process's fate.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		if r.done {
			return 0, io.EOF
		}
		r.next()
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// next reads one line into r.line, or leaves it empty if that line is not for us.
func (r *lineReader) next() {
	if cap(r.buf) > 1<<20 {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for {
		part, err := r.src.ReadSlice('\n')
		if int64(len(r.buf)+len(part)) > r.limit {
			r.done = true
			r.oversized()
			return
		}
		r.buf = append(r.buf, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			r.done = true
			if len(r.buf) == 0 {
				return
			}
			r.buf = append(r.buf, '\n')
		}
		break
	}
	text := bytes.TrimSpace(r.buf)
	switch {
	case len(text) == 0:
	case !isMessage(text, r.lastID.Load()):
		r.junk.add(r.buf)
	case !r.asked.take(text):
		r.sent.note(text)
		r.line = append(text, '\n') // in its place: blanks around it need not be those of JSON
	}
}

// isMessage reports whether a line is a JSON-RPC message that can be meant for us:
// a request, a notification, or a reply to one of the requests 1 to lastID.
func isMessage(line []byte, lastID int64) bool {
	if line[0] != '{' || !bytes.Contains(line, []byte(`"jsonrpc"`)) {
		return false
	}
	if len(line) > sniffBytes {
		return true
	}
	var head struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	if json.Unmarshal(line, &head) != nil {
		return false
	}
	if head.Method != "" {
		return true
	}
	id, ok := head.ID.(float64)
	return ok && id >= 1 && id <= float64(lastID)
}
