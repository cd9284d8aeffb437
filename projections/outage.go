package projections

import (
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// An outage is ours, not a server's: within outageWindow at least outageServers of
// them, and half of those contacted, failed the way a lost network or an overloaded
// machine makes them fail. Only servers that were fine before, or never tried, bear
// witness. Their failures are not counted, for no longer than excuseLimit each.
const (
	outageWindow  = 2 * time.Minute
	outageServers = 3
	excuseLimit   = 24 * time.Hour
)

// contact is the outcome of the last run of a server that may bear witness.
type contact struct {
	Server events.ServerName `json:"server"`
	Key    events.ConfigKey  `json:"key"`
	RunID  string            `json:"run_id,omitempty"`
	At     time.Time         `json:"at"`
	Failed bool              `json:"failed,omitempty"` // in a way an outage explains
	Link   Link              `json:"link"`
}

// witnessed notes a counted outcome of a server that was fine before, and takes
// failures off the count when they add up to an outage. It is called after c took
// the outcome.
func (s *State) witnessed(e events.Event, c *connection, fine, failed bool) {
	if e.Source != s.b.Own || !fine {
		return
	}
	at := e.HappenedAt()
	s.b.Contacts = slices.DeleteFunc(s.b.Contacts, func(k contact) bool {
		return k.Server == e.Subject || k.At.Before(at.Add(-outageWindow))
	})
	s.b.Contacts = append(s.b.Contacts, contact{
		Server: e.Subject, Key: e.ConfigKey, RunID: c.RunID, At: at, Failed: failed, Link: link(e),
	})
	down := 0
	for _, k := range s.b.Contacts {
		if k.Failed {
			down++
		}
	}
	if down < outageServers || 2*down < len(s.b.Contacts) {
		return
	}
	for _, k := range s.b.Contacts {
		srv := s.b.Sources[s.b.Own][k.Server]
		other := srv.Connections[k.Key]
		if k.Failed && other != nil && other.RunID == k.RunID {
			other.Tally = other.Before.excuse(k.Link, other.Tally)
		}
	}
}

// excuse returns the tally of before a run whose failure an outage explains; counted
// is the tally that counts it, kept once the server was excused for too long.
func (t tally) excuse(l Link, counted tally) tally {
	if t.ExcusedSince.IsZero() {
		t.ExcusedSince = l.Time
	}
	if l.Time.Sub(t.ExcusedSince) > excuseLimit {
		return counted
	}
	t.FailedRuns = counted.FailedRuns
	return t.note(l, RoleNotCounted, "not counted: several servers failed together, so the fault was not this one's")
}

// byOutage reports whether an outage explains a failure of this class.
func byOutage(c rules.Class) bool {
	return c == rules.ClassNetwork || c == rules.ClassTimeout || c == rules.ClassResource
}
