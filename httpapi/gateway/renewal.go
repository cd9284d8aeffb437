package gateway

import (
	"context"
	"maps"
	"slices"
	"time"

	"mcpledger/events"
)

// renewal is how far a server has been asked again for what clients subscribed to. It
// is guarded by subscriptions.mu.
type renewal struct {
	underway bool
	again    bool // there was reason to, while it was under way
	failures int  // in a row
	// retryAt is when a server that failed twice in a row may be asked again, so that one
	// which ends its session whenever it is asked is not opened again and again.
	retryAt time.Time
}

// The wait after the second failure in a row, doubling.
const (
	renewWaitFirst = time.Second
	renewWaitMost  = time.Minute
)

// renew has a server asked again for all that somebody wants to hear of: its session
// may be a new one, or there is none. It does not block.
func (s *subscriptions) renew(server events.ServerName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.renewals[server]
	switch {
	case r == nil:
	case r.underway:
		r.again = true
	case !s.gateway.now().Before(r.retryAt):
		r.underway = true
		go s.askAgain(server, r)
	}
}

// renewAll renews all servers.
func (s *subscriptions) renewAll() {
	s.mu.Lock()
	servers := slices.Collect(maps.Keys(s.topics))
	s.mu.Unlock()
	for _, server := range servers {
		s.renew(server)
	}
}

// askAgain asks a server for each topic, and once more if there was reason to meanwhile.
// What fails is asked for at the next session, or in a while.
func (s *subscriptions) askAgain(server events.ServerName, r *renewal) {
	for {
		failed := false
		for key, t := range s.wantedOf(server) {
			ctx, cancel := context.WithTimeout(s.gateway.life, subscribeTimeout)
			said, err := s.ask(ctx, key, t)
			failed = failed || err != nil || said.Failure != nil
			cancel()
		}
		s.mu.Lock()
		r.settle(s.gateway.now(), failed)
		r.underway = r.again && r.failures < 2
		r.again = false
		over := !r.underway
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// settle notes how asking ended.
func (r *renewal) settle(now time.Time, failed bool) {
	if !failed {
		r.failures, r.retryAt = 0, time.Time{}
		return
	}
	if r.failures++; r.failures > 1 {
		r.retryAt = now.Add(min(renewWaitFirst<<min(r.failures-2, 6), renewWaitMost))
	}
}

// wantedOf returns the topics of a server that have subscribers.
func (s *subscriptions) wantedOf(server events.ServerName) map[topicKey]*topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := maps.Clone(s.topics[server])
	maps.DeleteFunc(wanted, func(_ topicKey, t *topic) bool { return len(t.subscribers) == 0 })
	return wanted
}
