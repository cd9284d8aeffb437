package projections

import "mcpledger/events"

// Keep has an engine make marks after so many events, and keep so many bytes of them.
// It is called before anything is folded.
func (e *Engine) Keep(every events.Sequence, most int) {
	e.archive.marks.Every, e.archive.most = every, most
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
