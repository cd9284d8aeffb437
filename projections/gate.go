package projections

import (
	"regexp"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// gateMemory is how soon after its end the same gate counts as being back.
const gateMemory = 10 * time.Minute

// Gate says that calls on a connection are refused until a check succeeds.
type Gate struct {
	Kind     rules.Gate      `json:"kind"`
	Since    time.Time       `json:"since"`
	Scope    string          `json:"required_scope,omitempty"`
	EventID  string          `json:"event_id"` // of the call that was refused
	Sequence events.Sequence `json:"sequence"`
	Cause    Cause           `json:"cause"`
	// Checks spaces the checks: it grows with each that fails, and starts where the
	// last gate left off when it is back soon.
	Checks int `json:"checks,omitempty"`
}

// gate closes the connection to calls when the rules ask for it. A call that started
// before the check that last cleared a gate does not set it again.
func (c *connection) gate(e events.Event, v rules.Verdict, scope string, started events.Sequence) {
	if v.Gate == rules.GateNone || c.Gate != nil || started < c.GateCheckedFrom {
		return
	}
	at := e.HappenedAt()
	g := Gate{Kind: v.Gate, Since: at, Scope: scope, EventID: e.ID, Sequence: e.Sequence, Cause: causeOf(v)}
	if !c.GateClearedAt.IsZero() && at.Sub(c.GateClearedAt) <= gateMemory {
		g.Checks = c.GateChecks + 1
	}
	c.Gate, c.Authorization = &g, Authorization(v.Gate)
}

// admitted opens the gate after a successful attempt, unless that started before the
// gate was set: it saw the server as it was before.
func (c *connection) admitted(a openAttempt, at time.Time) {
	switch {
	case c.Gate == nil:
		c.Authorization = Authorized
	case a.Sequence > c.Gate.Sequence:
		c.GateClearedAt, c.GateChecks, c.GateCheckedFrom = at, c.Gate.Checks, a.Sequence
		c.Gate, c.Authorization = nil, Authorized
	}
}

// gateStays spaces the checks of a gate further after one that failed.
func (c *connection) gateStays() {
	if c.Gate != nil {
		g := *c.Gate
		g.Checks++
		c.Gate = &g
	}
}

// gateExemption says why a failed check of a gate is not counted, empty for any other
// failure: the gate keeps calls off already, and its checks have a schedule of their
// own.
func (c *connection) gateExemption(t events.Trigger) string {
	if c.Gate == nil || t != events.TriggerCheck {
		return ""
	}
	return "not counted: it looked whether calls may go on"
}

// scopeParameter finds the scope a server asks for in WWW-Authenticate (RFC 6750,
// section 3).
var scopeParameter = regexp.MustCompile(`(?i)\bscope="([^"]{1,200})"`)

func requiredScope(wwwAuthenticate string) string {
	if m := scopeParameter.FindStringSubmatch(wwwAuthenticate); m != nil {
		return m[1]
	}
	return ""
}
