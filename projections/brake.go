package projections

import (
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// maxBrakes bounds, per connection, how many failing calls are watched at a time; the
// one that failed longest ago falls away.
const maxBrakes = 256

// failingCall counts how often in a row one caller's call of a tool with the same
// arguments failed by the tool's own word: isError, or a JSON-RPC error.
type failingCall struct {
	Count   int             `json:"count"`
	FirstAt time.Time       `json:"first_at"`
	LastAt  time.Time       `json:"last_at"`
	Last    events.Sequence `json:"last"`
	Text    string          `json:"text"` // the decisive text of the last failure
}

// brakeKey names what the brake watches.
func brakeKey(caller, tool, argumentsHash string) string {
	return caller + "\x00" + tool + "\x00" + argumentsHash
}

// Braked is a call that is refused for a while, since the same one kept failing.
type Braked struct {
	Failures int
	Since    time.Time // of the first of them
	Until    time.Time
	Text     string // what the last one said
}

// Braked reports whether a call is refused at now because the same one kept failing.
func (s *State) Braked(name events.ServerName, caller, tool, argumentsHash string, now time.Time) (Braked, bool) {
	srv := s.own(name)
	policy := s.rules.Brake()
	if srv == nil || policy.Failures <= 0 {
		return Braked{}, false
	}
	f, known := srv.present().Brakes[brakeKey(caller, tool, argumentsHash)]
	until := f.LastAt.Add(policy.For)
	// One that seems to begin later than it lasts is of a clock that was set back since.
	if !known || f.Count < policy.Failures || !now.Before(until) || f.LastAt.Sub(now) > policy.For {
		return Braked{}, false
	}
	return Braked{Failures: f.Count, Since: f.FirstAt, Until: until, Text: f.Text}, true
}

// brake counts a call that failed by the tool's own word, if its start is known.
func (c *connection) brake(e events.Event, call openCall, v rules.Verdict, policy rules.Brake) {
	if policy.Failures <= 0 || call.Tool == "" {
		return
	}
	at, key := e.HappenedAt(), brakeKey(call.Caller, call.Tool, call.ArgumentsHash)
	f, known := c.Brakes[key]
	since := f.FirstAt
	if f.Count >= policy.Failures {
		since = f.LastAt // it was refused meanwhile, so one more failure is enough for a while
	}
	if !known || at.Sub(since) > policy.Within {
		f = failingCall{FirstAt: at}
	}
	f.Count++
	f.LastAt, f.Last, f.Text = at, e.Sequence, v.Text
	if c.Brakes == nil {
		c.Brakes = map[string]failingCall{}
	}
	c.Brakes[key] = f
	dropOldest(c.Brakes, maxBrakes, func(f failingCall) events.Sequence { return f.Last })
}
