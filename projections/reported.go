package projections

import (
	"cmp"
	"time"

	"mcpledger/events"
)

// Reported returns how one source sees a server under a config key, or under the one it
// reported last if that is empty; false when it reported nothing of it.
func (s *State) Reported(source string, name events.ServerName, key events.ConfigKey, now time.Time) (Server, bool) {
	srv := s.b.Sources[source][name]
	if srv == nil {
		return Server{}, false
	}
	key = cmp.Or(key, srv.Current)
	if srv.Connections[key] == nil {
		return Server{}, false
	}
	under := *srv
	under.Current = key
	return s.view(source, name, &under, now), true
}

// LastReported returns how the host that told of a server last sees it, of those that
// told of the config key if that is not empty; false when none did.
func (s *State) LastReported(name events.ServerName, key events.ConfigKey, now time.Time) (Server, bool) {
	var last string
	var at events.Sequence
	for source, servers := range s.b.Sources {
		srv := servers[name]
		if srv == nil || source == s.b.Own {
			continue
		}
		if c := srv.Connections[cmp.Or(key, srv.Current)]; c != nil && c.Touched > at {
			last, at = source, c.Touched
		}
	}
	return s.Reported(last, name, key, now)
}

// reports returns how the hosts that report see a server, by source.
func (s *State) reports(name events.ServerName, now time.Time) []Server {
	var all []Server
	for _, source := range sortedKeys(s.b.Sources) {
		if srv := s.b.Sources[source][name]; source != s.b.Own && srv != nil {
			all = append(all, s.view(source, name, srv, now))
		}
	}
	return all
}
