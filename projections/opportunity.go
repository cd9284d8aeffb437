package projections

import (
	"time"

	"mcpledger/events"
)

// Opportunity is what a State says about an attempt or a call on one connection.
// Replay asks it, to learn what a rule set would have let happen.
type Opportunity struct {
	// Tried says that an attempt on the connection is known.
	Tried bool
	// Skip is the skip that the rules made and that holds; nil if none does. A pin is
	// none: it holds under any rules.
	Skip *Skip
	// Probe says that an attempt goes past a skip or a pin, which holds or is over with
	// nothing tried since. A probe is one attempt.
	Probe bool
	// Gate is what calls are refused for; nil if they are not.
	Gate *Gate
}

// Opportunity returns what there is to say at a time about the connection of a
// server as one source sees it. An empty key means the server's present one.
func (s *State) Opportunity(source string, name events.ServerName, key events.ConfigKey, at time.Time) Opportunity {
	srv := s.b.Sources[source][name]
	if srv == nil {
		return Opportunity{}
	}
	if key == "" {
		key = srv.Current
	}
	c := srv.Connections[key]
	if c == nil {
		return Opportunity{}
	}
	o := Opportunity{Tried: c.Last != nil || len(c.Open) > 0, Gate: c.Gate}
	o.Probe = c.Tally.Skip != nil || srv.Pin.ActiveAt(at)
	if c.Tally.Skip.ActiveAt(at) {
		o.Skip = c.Tally.Skip
	}
	return o
}
