package projections

import (
	"cmp"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Outcome is how an attempt or a call ended.
type Outcome string

// The outcomes.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeSkipped   Outcome = "skipped"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeAbandoned Outcome = "abandoned"
	OutcomeRefused   Outcome = "refused" // a call that was not sent
)

// Cause is the judgment on one failure, with the few words that people read.
type Cause struct {
	Class       rules.Class       `json:"class"`
	Disposition rules.Disposition `json:"disposition"`
	Signature   string            `json:"signature"`
	Rule        string            `json:"rule"`
	Text        string            `json:"text"`
	Hint        string            `json:"hint,omitempty"`
}

func causeOf(v rules.Verdict) Cause {
	return Cause{
		Class: v.Class, Disposition: v.Disposition, Signature: v.Signature,
		Rule: v.Rule, Text: v.Text, Hint: v.Hint,
	}
}

// Attempt is the last thing that was done about a server.
type Attempt struct {
	EventID    string         `json:"event_id"`
	At         time.Time      `json:"at"`
	Trigger    events.Trigger `json:"trigger"`
	Outcome    Outcome        `json:"outcome"`
	DurationMS int64          `json:"duration_ms"`
	Class      rules.Class    `json:"class,omitempty"`
	Error      string         `json:"error,omitempty"` // the decisive text
}

// openAttempt is an attempt that was started and has no outcome yet.
type openAttempt struct {
	EventID  string          `json:"event_id"`
	Sequence events.Sequence `json:"sequence"`
	At       time.Time       `json:"at"`
	RunID    string          `json:"run_id,omitempty"`
	Trigger  events.Trigger  `json:"trigger"`
}

// openCall is a call that was started and has no outcome yet.
type openCall struct {
	Sequence      events.Sequence `json:"sequence"`
	Tool          string          `json:"tool"`
	Caller        string          `json:"caller,omitempty"`
	ArgumentsHash string          `json:"arguments_hash,omitempty"`
}

// maxOpen bounds the attempts, and the calls, without outcome that are remembered of
// a connection. Our own never come near it; a reporter may forget to tell how its own
// ended.
const maxOpen = 4096

// connection is one server under one config key, as one source sees it.
type connection struct {
	// Touched is the last event about it; the least recently touched are pruned.
	Touched       events.Sequence `json:"touched"`
	Reachability  Reachability    `json:"reachability"`
	Authorization Authorization   `json:"authorization"`
	Gate          *Gate           `json:"gate,omitempty"`
	// GateCheckedFrom is where the check started that last cleared a gate: a call
	// from before it does not set the gate again.
	GateCheckedFrom events.Sequence `json:"gate_checked_from,omitempty"`
	// GateClearedAt is when that check succeeded, and GateChecks how many checks the
	// gate had then: the same gate back soon after is looked at less often.
	GateClearedAt time.Time `json:"gate_cleared_at,omitzero"`
	GateChecks    int       `json:"gate_checks,omitempty"`

	// Tally counts finished runs; Before is what it was before the run RunID, so that
	// a run counts once, by its last failed attempt.
	Tally  tally  `json:"tally,omitzero"`
	Before tally  `json:"before,omitzero"`
	RunID  string `json:"run_id,omitempty"`

	Open      map[string]openAttempt `json:"open,omitempty"`       // by attempt id
	OpenCalls map[string]openCall    `json:"open_calls,omitempty"` // by call id

	Brakes map[string]failingCall `json:"brakes,omitempty"` // by brakeKey

	Last *Attempt `json:"last,omitempty"`
	// InVain is how long the last attempt that failed lasted, or one after it that was
	// cancelled when it had lasted longer; 0 after a success.
	InVain time.Duration `json:"in_vain,omitempty"`
	// Settled is the outcome of the last attempt that came to an end by itself, or with
	// the service more than once; SettledAt is when, SettledIn the service start it fell
	// in, or any place between that start and the next.
	Settled    Outcome            `json:"settled,omitempty"`
	SettledAt  time.Time          `json:"settled_at,omitzero"`
	SettledIn  events.Sequence    `json:"settled_in,omitempty"`
	RetryAfter time.Duration      `json:"retry_after,omitempty"` // asked for by the last failure
	VerifiedAt time.Time          `json:"verified_at,omitzero"`
	Cause      *Cause             `json:"cause,omitempty"` // of the last failure; nil after a success
	Facts      []events.LocalFact `json:"facts,omitempty"`
	// SkipNotedIn and SkipNotedUntil are the service start and the skip's end for which a
	// discovery.skipped is recorded.
	SkipNotedIn    events.Sequence `json:"skip_noted_in,omitempty"`
	SkipNotedUntil time.Time       `json:"skip_noted_until,omitzero"`

	ProtocolVersion string            `json:"protocol_version,omitempty"`
	ServerInfo      events.ServerInfo `json:"server_info,omitzero"`
}

func newConnection() *connection {
	return &connection{Reachability: ReachabilityUnknown, Authorization: AuthorizationUnknown}
}

// link makes the chain's link for an event.
func link(e events.Event) Link {
	return Link{EventID: e.ID, Sequence: e.Sequence, Time: e.HappenedAt(), Type: e.Type}
}

func (c *connection) started(e events.Event, d events.DiscoveryStarted) {
	if c.Open == nil {
		c.Open = map[string]openAttempt{}
	}
	c.Open[e.AttemptID] = openAttempt{
		EventID: e.ID, Sequence: e.Sequence, At: e.HappenedAt(), RunID: e.RunID, Trigger: d.Trigger,
	}
	dropOldest(c.Open, maxOpen, func(a openAttempt) events.Sequence { return a.Sequence })
	if d.Facts != nil {
		c.Facts = d.Facts
	}
}

// finish takes the attempt of e off the open ones. A reporter may tell of an
// outcome alone; then the attempt has the outcome's place, and no more.
func (c *connection) finish(e events.Event) openAttempt {
	a, known := c.Open[e.AttemptID]
	if !known {
		a.Sequence = e.Sequence
	}
	delete(c.Open, e.AttemptID)
	return a
}

func (c *connection) startedCall(e events.Event, d events.ToolCallStarted) {
	if c.OpenCalls == nil {
		c.OpenCalls = map[string]openCall{}
	}
	c.OpenCalls[e.CallID] = openCall{Sequence: e.Sequence, Tool: d.Tool, Caller: d.Caller, ArgumentsHash: d.ArgumentsHash}
	dropOldest(c.OpenCalls, maxOpen, func(o openCall) events.Sequence { return o.Sequence })
}

// finishCall takes the call of e off the open ones, as finish does with attempts.
func (c *connection) finishCall(e events.Event) openCall {
	call, known := c.OpenCalls[e.CallID]
	if !known {
		call.Sequence = e.Sequence
	}
	delete(c.OpenCalls, e.CallID)
	return call
}

// inRun reports whether the last failure was in this run, too.
func (c *connection) inRun(id string) bool { return id != "" && id == c.RunID }

// fineBefore reports whether no failure was counted between the last success and
// this run, or only such as fell into the last minutes.
func (c *connection) fineBefore(runID string, at time.Time) bool {
	before := c.Tally
	if c.inRun(runID) {
		before = c.Before
	}
	return before.AnyCount == 0 || (before.Skip == nil && apart(before.AnySince, at) <= rowBegan)
}

func (c *connection) succeeded(e events.Event, d events.DiscoverySucceeded, start events.Sequence) {
	a := c.finish(e)
	at := e.HappenedAt()
	c.Tally = c.Tally.succeed(link(e))
	c.Before, c.RunID = tally{}, ""
	c.Reachability = Reachable
	c.VerifiedAt = at
	c.Cause = nil
	c.RetryAfter, c.InVain = 0, 0
	c.ProtocolVersion, c.ServerInfo = d.ProtocolVersion, d.ServerInfo
	c.admitted(a, at)
	c.settle(OutcomeSucceeded, at, start)
	c.Last = &Attempt{EventID: e.ID, At: at, Trigger: a.Trigger, Outcome: OutcomeSucceeded, DurationMS: d.ElapsedMS}
}

func (c *connection) failed(e events.Event, d events.DiscoveryFailed, v rules.Verdict, p policies, start events.Sequence) {
	a := c.finish(e)
	at := e.HappenedAt()
	if !c.inRun(e.RunID) {
		c.Before, c.RunID = c.Tally, e.RunID
	}
	cause := causeOf(v)
	base := c.Before
	base.Abandoned = 0
	c.Tally = base.fail(failure{
		link: link(e), cause: cause, policy: p.own, any: p.any,
		pardon: stillPrinting(d.Evidence),
		asked:  a.Trigger == events.TriggerManual || a.Trigger == events.TriggerOnUse,
		exempt: cmp.Or(c.gateExemption(a.Trigger), exemption(a.Trigger, d.Evidence, v)),
	})
	c.Cause = &cause
	c.Reachability, c.Authorization = axes(c.Reachability, c.Authorization, d.Evidence, v)
	c.RetryAfter = min(time.Duration(d.Evidence.RetryAfterMS)*time.Millisecond, retryAfterMost)
	c.InVain = time.Duration(d.Evidence.ElapsedMS) * time.Millisecond
	c.gateStays()
	c.settle(OutcomeFailed, at, start)
	c.Last = &Attempt{
		EventID: e.ID, At: at, Trigger: a.Trigger, Outcome: OutcomeFailed,
		DurationMS: d.Evidence.ElapsedMS, Class: v.Class, Error: v.Text,
	}
}

func (c *connection) cancelled(e events.Event, d events.DiscoveryCancelled) {
	a := c.finish(e)
	note := "not counted: cancelled"
	if d.Reason != "" { // a host may tell none
		note += " (" + d.Reason + ")"
	}
	c.Tally = c.Tally.note(link(e), RoleNotCounted, note)
	c.InVain = max(c.InVain, time.Duration(d.ElapsedMS)*time.Millisecond)
	c.Last = &Attempt{EventID: e.ID, At: e.HappenedAt(), Trigger: a.Trigger, Outcome: OutcomeCancelled, DurationMS: d.ElapsedMS}
}

func (c *connection) abandoned(e events.Event, v rules.Verdict, p policies) {
	a := c.finish(e)
	at := e.HappenedAt()
	cause := causeOf(v)
	c.Tally = c.Tally.abandon(failure{link: link(e), cause: cause, policy: p.own, any: p.any})
	if c.Tally.Abandoned >= abandonedCounts {
		c.Cause = &cause
		// It is found at the start after the one it fell in.
		c.settle(OutcomeFailed, at, a.Sequence)
	}
	c.Before, c.RunID = tally{}, ""
	c.Last = &Attempt{EventID: e.ID, At: at, Trigger: a.Trigger, Outcome: OutcomeAbandoned}
}

func (c *connection) settle(o Outcome, at time.Time, start events.Sequence) {
	c.Settled, c.SettledAt, c.SettledIn = o, at, start
}

// exemption says why a failure is not counted, empty when it is.
func exemption(t events.Trigger, ev events.Evidence, v rules.Verdict) string {
	switch {
	case t == events.TriggerManual:
		return "not counted: a person asked for it"
	case t == events.TriggerOnUse:
		return "not counted: a call asked for it"
	case t == events.TriggerVerify:
		return "not counted: it only verified a known catalogue"
	case v.Disposition == rules.DispositionIgnore:
		return "not counted: no failure of the server"
	case ev.EndedBy == events.EndedByUs && ev.ErrorKind == events.KindCancelled:
		return "not counted: we ended it"
	}
	return ""
}

// stillPrinting reports whether a package runner used up its whole budget while it
// was at work, as a slow first download is.
func stillPrinting(ev events.Evidence) bool {
	return ev.ErrorKind == events.KindTimeoutStart &&
		ev.LimitMS >= PackageRunnerBudget.Milliseconds() &&
		ev.StderrLastMS != nil && *ev.StderrLastMS < PackageRunnerSilence.Milliseconds()
}
