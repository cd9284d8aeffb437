package projections

import (
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// maxLinks bounds the chain that explains a tally; older links fall away.
const maxLinks = 32

// pardonLimit is how often, per connection, a package runner that was still
// printing when its budget ended is not counted.
const pardonLimit = 3

// abandonedCounts is how often in a row the service must have ended during an attempt
// for that to be laid to the server.
const abandonedCounts = 2

// leastEventIDs is how many of the failures that a streak or a skip rests on are kept by
// id, where fewer make a skip.
const leastEventIDs = 3

// PackageRunnerBudget is the time in all that package discovery gives a package runner
// for a start. One that used it up while still printing is pardoned.
const PackageRunnerBudget = 10 * time.Minute

// PackageRunnerSilence is how long a package runner may print nothing.
const PackageRunnerSilence = 3 * time.Minute

// SkipReason says what made a skip.
type SkipReason string

// The reasons.
const (
	SkipAuth              SkipReason = "auth"
	SkipIdenticalFailures SkipReason = "identical_failures"
	SkipAnyFailures       SkipReason = "any_failures"
	SkipPinned            SkipReason = "pinned"
)

// Skip says that a connection is not attempted until something clears it. It is
// what a circuit breaker calls open; the single attempt at its end is the probe.
// The skip list is not the data structure of that name.
type Skip struct {
	Reason SkipReason `json:"reason"`
	// Cause is the failure that made or last renewed it; zero for a pin.
	Cause    Cause    `json:"cause,omitzero"`
	Failures int      `json:"failures,omitempty"` // counted runs it rests on
	Mixed    bool     `json:"mixed,omitempty"`    // those runs did not all fail alike
	EventIDs []string `json:"event_ids,omitempty"`
	// FirstAt is when the first of those failures happened; Since when the skip began.
	FirstAt time.Time `json:"first_at,omitzero"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"` // zero: no end
	Rung    int       `json:"rung,omitempty"` // of the policy's ladder, from 0
	// Requalify: a changed local fact ends it early.
	Requalify bool `json:"requalify,omitempty"`
	// Ended is the trigger of the probe when the skip ended before its time.
	Ended events.Trigger `json:"ended,omitempty"`
	Note  string         `json:"note,omitempty"` // a pin's reason
}

// clockSlack is how far ahead of now a thing may seem to have happened.
const clockSlack = 5 * time.Minute

// isAhead reports whether t lies so far ahead of now that the clock was wrong then.
func isAhead(t, now time.Time) bool { return t.After(now.Add(clockSlack)) }

// ActiveAt reports whether the skip holds at now. One that the rules made while the
// clock was ahead is over when that is right again; a pin holds until its time.
func (s *Skip) ActiveAt(now time.Time) bool {
	if s == nil || s.Ended != "" || s.Reason != SkipPinned && isAhead(s.Since, now) {
		return false
	}
	return s.Until.IsZero() || now.Before(s.Until)
}

// Streak counts identical failing runs in a row.
type Streak struct {
	Signature string    `json:"signature,omitempty"`
	Count     int       `json:"count,omitempty"`
	Needed    int       `json:"needed,omitempty"` // runs that make a skip; 0: never
	FirstAt   time.Time `json:"first_at,omitzero"`
	LastAt    time.Time `json:"last_at,omitzero"`
	EventIDs  []string  `json:"event_ids,omitempty"` // the newest last
}

// Role is the part an event plays in an explanation.
type Role string

// The roles.
const (
	RoleCounted    Role = "counted"
	RoleNotCounted Role = "not_counted"
	RoleReset      Role = "reset"
	RoleDecision   Role = "decision"
)

// PinNote is the note of the event by which a person set a server aside.
const PinNote = "set aside by a person"

// Link is one event of the chain that explains a connection's state.
type Link struct {
	_        struct{}        `cbor:",toarray"` // a snapshot is mostly links
	EventID  string          `json:"event_id"`
	Sequence events.Sequence `json:"sequence"`
	Time     time.Time       `json:"time"`
	Type     events.Type     `json:"type"`
	Role     Role            `json:"role"`
	Note     string          `json:"note,omitempty"`
}

// tally is what the outcomes of runs add up to for one connection. It is a value:
// its methods return the next tally and leave slices they were given alone.
type tally struct {
	Streak Streak `json:"streak,omitzero"`
	// AnyCount runs failed since AnySince without a success, whatever their signature.
	AnyCount int       `json:"any_count,omitempty"`
	AnySince time.Time `json:"any_since,omitzero"`
	Skip     *Skip     `json:"skip,omitempty"`
	// FailedRuns is how many runs of the service's own accord failed in a row, counted or
	// not; retries are spaced by it.
	FailedRuns int `json:"failed_runs,omitempty"`
	Pardons    int `json:"pardons,omitempty"`
	Abandoned  int `json:"abandoned,omitempty"` // in a row
	// ExcusedSince is when the first failure since the last success was laid to an
	// outage.
	ExcusedSince time.Time `json:"excused_since,omitzero"`
	Chain        []Link    `json:"chain,omitempty"`
}

// failure is one failed attempt with its judgment.
type failure struct {
	link   Link // Role and Note are filled in by the tally
	cause  Cause
	policy rules.SkipPolicy
	any    rules.SkipPolicy
	pardon bool   // a runner's start that was still printing
	asked  bool   // by a person or a call, so it says nothing about the next retry
	exempt string // why it is not counted; empty when it is
}

// fail returns the tally after a failed run.
func (t tally) fail(f failure) tally {
	if !f.asked {
		t.FailedRuns++
	}
	if f.exempt == "" && f.pardon && t.Pardons < pardonLimit {
		t.Pardons++
		f.exempt = "not counted: its package runner was still at work when the time ended"
	}
	if f.exempt != "" {
		return t.note(f.link, RoleNotCounted, f.exempt)
	}
	at := f.link.Time
	if t.Streak.Signature != f.cause.Signature {
		t.Streak = Streak{Signature: f.cause.Signature, FirstAt: at}
	}
	t.Streak.Count++
	t.Streak.Needed = f.policy.After
	t.Streak.LastAt = at
	t.Streak.EventIDs = appendBounded(t.Streak.EventIDs, f.link.EventID, max(leastEventIDs, f.policy.After))
	if t.AnyCount == 0 {
		t.AnySince = at
	}
	t.AnyCount++
	skip, note := t.judge(f)
	t.Skip = skip
	return t.note(f.link, RoleCounted, note)
}

// succeed returns the tally after a success: all is forgotten but the event that
// reset it.
func (t tally) succeed(l Link) tally {
	if t.FailedRuns == 0 && t.Skip == nil && t.Abandoned == 0 {
		return tally{}
	}
	return tally{}.note(l, RoleReset, "a success: counting starts at zero")
}

// abandon returns the tally after an attempt that the service's own end cut short.
func (t tally) abandon(f failure) tally {
	t.Abandoned++
	if t.Abandoned < abandonedCounts {
		return t.note(f.link, RoleNotCounted, "not counted: the service ended in the midst of it")
	}
	n := t.Abandoned
	t = t.fail(f)
	t.Abandoned = n
	return t
}

// clear returns the tally after a person ended the skip.
func (t tally) clear(l Link, reason string) tally {
	return tally{}.note(l, RoleReset, "cleared: "+reason)
}

// end returns the tally with its skip over early, due for one probe.
func (t tally) end(trigger events.Trigger) tally {
	if t.Skip != nil && t.Skip.Ended == "" {
		over := *t.Skip
		over.Ended = trigger
		t.Skip = &over
	}
	return t
}

func (t tally) note(l Link, role Role, note string) tally {
	l.Role, l.Note = role, note
	t.Chain = appendBounded(t.Chain, l, maxLinks)
	return t
}

func (t tally) chainIDs(role Role) []string {
	var ids []string
	for _, l := range t.Chain {
		if l.Role == role {
			ids = append(ids, l.EventID)
		}
	}
	return ids
}

// appendBounded returns a new slice of s and v, the last n of them.
func appendBounded[T any](s []T, v T, n int) []T {
	if len(s) >= n {
		s = s[len(s)-n+1:]
	}
	out := make([]T, 0, len(s)+1)
	return append(append(out, s...), v)
}
