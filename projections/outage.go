package projections

import (
	"maps"
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
	// outageLasts is how long after the last failure laid to an outage another one
	// belongs to it, unless a server that it took came back.
	outageLasts = 10 * time.Minute
	// rowBegan is how long ago a row of failures may have begun for its server to bear
	// witness: long enough for all servers to have had a check since.
	rowBegan = 20 * time.Minute
)

// contact is the outcome of the last run of a server that may bear witness.
type contact struct {
	Key    events.ConfigKey `json:"key"`
	RunID  string           `json:"run_id,omitempty"`
	At     time.Time        `json:"at"`
	Failed bool             `json:"failed,omitempty"` // in a way an outage explains
	Link   Link             `json:"link"`
}

// contacts are the latest contact of each server, those of the last outageWindow at
// least. Looking through them is left to the events that need it: nearly all
// contacts are successes, which only have to be there.
type contacts struct {
	Of map[events.ServerName]contact `json:"of,omitempty"`
	// Swept is when those that are over were last taken away.
	Swept time.Time `json:"swept,omitzero"`
}

func (k *contacts) note(name events.ServerName, c contact) {
	if k.Of == nil {
		k.Of = map[events.ServerName]contact{}
	}
	k.Of[name] = c
	if apart(k.Swept, c.At) > outageWindow {
		k.sweep(c.At)
	}
}

// sweep takes away the contacts that are over at a time.
func (k *contacts) sweep(at time.Time) {
	k.Swept = at
	maps.DeleteFunc(k.Of, func(_ events.ServerName, c contact) bool { return apart(c.At, at) > outageWindow })
}

// together reports whether what failed is enough to be the fault of none.
func (k *contacts) together() bool {
	down := 0
	for _, c := range k.Of {
		if c.Failed {
			down++
		}
	}
	return down >= outageServers && 2*down >= len(k.Of)
}

// witnessed notes a counted outcome of a server that was fine before its present row
// of failures, and takes those failures off the count when they add up to an outage,
// or fall into one that lasts. It is called after c took the outcome.
func (s *State) witnessed(e events.Event, c *connection, fine, failed bool) {
	if e.Source != s.b.Own || !fine {
		return
	}
	at := e.HappenedAt()
	s.b.Contacts.note(e.Subject, contact{Key: e.ConfigKey, RunID: c.RunID, At: at, Failed: failed, Link: link(e)})
	if !failed {
		return
	}
	s.b.Contacts.sweep(at)
	if s.b.Contacts.together() || apart(s.b.Outage, at) <= outageLasts {
		s.b.Outage = at
		s.excuse()
	}
}

// excuse takes the failures of the servers that an outage took off their count. Each
// server has one contact, so the order is no matter.
func (s *State) excuse() {
	for name, k := range s.b.Contacts.Of {
		srv := s.b.Sources[s.b.Own][name]
		if srv == nil {
			continue
		}
		other := srv.Connections[k.Key]
		if k.Failed && other != nil && other.RunID == k.RunID {
			other.Tally = other.Tally.excuse(k.Link)
		}
	}
}

// excuse returns the tally without the failures counted in a row up to the one that
// an outage explains. They stay counted once the server was excused for too long.
func (t tally) excuse(l Link) tally {
	since := t.ExcusedSince
	if since.IsZero() {
		since = t.AnySince
	}
	if apart(since, l.Time) > excuseLimit {
		return t
	}
	chain := slices.Clone(t.Chain)
	for i := range chain {
		if chain[i].Role == RoleCounted && !chain[i].Time.Before(t.AnySince) {
			chain[i].Role, chain[i].Note = RoleNotCounted, "not counted: an outage, several servers failed together, so the fault was not this one's"
		}
	}
	return tally{FailedRuns: t.FailedRuns, Pardons: t.Pardons, ExcusedSince: since, Chain: chain}
}

// apart returns how far two times are from each other, whichever comes first: a clock
// may have been set back between them.
func apart(a, b time.Time) time.Duration { return b.Sub(a).Abs() }

// byOutage reports whether an outage explains a failure of this class.
func byOutage(c rules.Class) bool {
	return c == rules.ClassNetwork || c == rules.ClassTimeout || c == rules.ClassResource
}
