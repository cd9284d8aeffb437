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

// Question names a server that is to be explained.
type Question struct {
	Server events.ServerName
	Source string           // whose connection; empty: ours, else a host's
	Key    events.ConfigKey // of a host's; empty: the one it reported last
	Asker  string           // who asks, by the source that their own reports have
}

// Explained returns the connection that a question is about: our own of a server in the
// config, unless a host's is asked for; else that of the host that asks, or that told of
// the server last. It is false when there is none.
func (s *State) Explained(q Question, now time.Time) (v Server, known bool) {
	if q.Source == s.b.Own || (q.Source == "" && q.Key == "") {
		v, known = s.Server(q.Server, now)
	}
	switch {
	case known || q.Source == s.b.Own:
		return v, known
	case q.Source != "":
		return s.Reported(q.Source, q.Server, q.Key, now)
	}
	if v, known = s.Reported(q.Asker, q.Server, q.Key, now); known {
		return v, true
	}
	return s.LastReported(q.Server, q.Key, now)
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
