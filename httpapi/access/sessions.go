package access

import (
	"sync"
	"time"
)

// SessionLifetime is how long a session lasts.
const SessionLifetime = 12 * time.Hour

// maxSessions bounds how many sessions are remembered; the one that ends first gives
// way to a new one.
const maxSessions = 256

// Sessions remembers who signed in. A session stands for the token it was opened
// with and ends with it. Sessions do not outlive the process. The zero value is
// ready, and safe for concurrent use.
type Sessions struct {
	mu   sync.Mutex
	open map[Hash]session // by the hash of the session's id
}

type session struct {
	token   Hash
	expires time.Time
}

// Open begins a session for the token and returns its id.
func (s *Sessions) Open(token Hash, now time.Time) string {
	id := newSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[Hash]session{}
	}
	if len(s.open) >= maxSessions {
		s.dropFirst()
	}
	s.open[hashOf(id)] = session{token: token, expires: now.Add(SessionLifetime)}
	return id
}

func (s *Sessions) dropFirst() {
	var first Hash
	var ends time.Time
	for id, o := range s.open {
		if ends.IsZero() || o.expires.Before(ends) {
			first, ends = id, o.expires
		}
	}
	delete(s.open, first)
}

// Token returns the token a session stands for; false when there is no such session
// or it has ended by now.
func (s *Sessions) Token(id string, now time.Time) (Hash, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.open[hashOf(id)]
	if !ok || !now.Before(o.expires) {
		return Hash{}, false
	}
	return o.token, true
}

// Close ends a session, if there is one of that id.
func (s *Sessions) Close(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, hashOf(id))
}
