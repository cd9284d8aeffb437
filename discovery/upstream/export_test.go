package upstream

import (
	"io"
	"sync/atomic"

	"mcpledger/events"
)

// ReadLines returns what the reader of a process's stdout hands on of src, the stray
// lines, and whether a line passed the limit. Requests 1 to lastID are ours.
func ReadLines(src io.Reader, limit, lastID int64) (messages []byte, stray *events.Junk, oversized bool) {
	j := newJunk(Target{})
	var last atomic.Int64
	last.Store(lastID)
	messages, _ = io.ReadAll(newLineReader(src, limit, j, &last, func() { oversized = true }))
	return messages, j.seen(), oversized
}
