package discovery

import (
	"context"
	"log/slog"
	"sync"

	"mcpledger/events"
	"mcpledger/projections"
)

// announcer says on the log what became of a server, once per transition. A failure
// that repeats is counted in the event log, not said again.
type announcer struct {
	logger *slog.Logger
	mu     sync.Mutex
	said   map[events.ServerName]transition
}

// transition is what of a server's state is worth a line when it changes.
type transition struct {
	state     projections.ServerState
	signature string
	catalogue string
	key       events.ConfigKey
}

func newAnnouncer(l *slog.Logger) *announcer {
	return &announcer{logger: l, said: map[events.ServerName]transition{}}
}

// say writes the line for a server if its state changed since the last one.
func (a *announcer) say(ctx context.Context, v projections.Server) {
	now := transition{state: v.State, key: v.ConfigKey}
	if v.Cause != nil && v.State != projections.StateReady {
		now.signature = v.Cause.Signature
	}
	if v.Catalogue != nil {
		now.catalogue = v.Catalogue.Hash
	}
	a.mu.Lock()
	before, known := a.said[v.Name]
	a.said[v.Name] = now
	a.mu.Unlock()
	if known && before == now {
		return
	}
	attrs := []slog.Attr{
		slog.String("server", string(v.Name)), slog.String("state", string(v.State)), slog.String("reason", v.Reason),
	}
	a.logger.LogAttrs(ctx, levelOf(v, known), "server state changed", attrs...)
}

// levelOf warns of a new failure. What is set aside on purpose, or was known to the
// log before this start, is information.
func levelOf(v projections.Server, known bool) slog.Level {
	switch v.State {
	case projections.StateFailed, projections.StateUnreachable:
		if known {
			return slog.LevelWarn
		}
	case projections.StateDiscovering:
		return slog.LevelDebug
	case projections.StateDisabled, projections.StateBlocked, projections.StateSkipped, projections.StateReady:
	}
	return slog.LevelInfo
}

// announce says what became of one server.
func (s *Service) announce(ctx context.Context, name events.ServerName) {
	var v projections.Server
	var ok bool
	now := s.now()
	err := s.engine.View(func(st *projections.State) { v, ok = st.Server(name, now) })
	if err == nil && ok {
		s.voice.say(ctx, v)
	}
}

// announceAll says what became of every server.
func (s *Service) announceAll(ctx context.Context) {
	var all []projections.Server
	now := s.now()
	if s.engine.View(func(st *projections.State) { all = st.Servers(now) }) != nil {
		return
	}
	for _, v := range all {
		s.voice.say(ctx, v)
	}
}
