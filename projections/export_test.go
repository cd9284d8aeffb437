package projections

import "mcpledger/events"

// Keep has an engine make marks after so many events, and keep so many bytes of them,
// as many in memory as in the store, where a long fold puts a quarter of them at once.
// It is called before anything is folded.
func (e *Engine) Keep(every events.Sequence, most int) {
	a := e.archive
	a.every, a.mostStored, a.mostUnstored, a.gathered = every, most, most, most/4
}

// MaxConnections and MaxOpen are what a server, and a connection, remember.
const (
	MaxConnections = maxConnections
	MaxOpen        = maxOpen
)

// Remembered returns how many connections, and how many attempts and calls without
// outcome on all of them, are known of a server that a source reports.
func (s *State) Remembered(source string, name events.ServerName) (connections, open int) {
	srv := s.b.Sources[source][name]
	for _, c := range srv.Connections {
		open += len(c.Open) + len(c.OpenCalls)
	}
	return len(srv.Connections), open
}

// Unstored returns how many bytes of marks are only in memory.
func (e *Engine) Unstored() int { return e.archive.unstored }
