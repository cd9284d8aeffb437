package projections

import (
	"hash/fnv"
	"strconv"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Due says when a server is to be attempted next, and why.
type Due struct {
	At      time.Time
	Trigger events.Trigger
}

const (
	checkInterval    = 15 * time.Minute // of a server reached over the network
	checkRetryFirst  = 10 * time.Second // after a failed check, doubling
	checkRetryMost   = 5 * time.Minute
	gateCheckFirst   = time.Minute // of a gated connection, doubling
	gateCheckMost    = time.Hour
	emptyListRecheck = time.Minute
	retryAfterMost   = time.Hour // that a server can ask for
)

// retryWaits are the waits after each failed run in a row; the last repeats.
var retryWaits = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// Due returns when the server of that name is to be attempted next; false when
// nothing but a change of its entry or a person can bring an attempt about. A time
// not after now means at once.
func (s *State) Due(name events.ServerName, now time.Time) (Due, bool) {
	srv := s.own(name)
	if srv == nil || srv.Removed || srv.Entry.Disabled || srv.Entry.Problem != nil {
		return Due{}, false
	}
	if srv.Pin.ActiveAt(now) {
		if srv.Pin.Until.IsZero() {
			return Due{}, false
		}
		return Due{At: srv.Pin.Until, Trigger: events.TriggerSkipExpired}, true
	}
	return s.dueConnection(name, srv, srv.present(), now), true
}

func (s *State) dueConnection(name events.ServerName, srv *server, c *connection, now time.Time) Due {
	spread := func(d time.Duration) time.Duration { return spread(d, name, c.Tally.FailedRuns) }
	entry := srv.known()
	overNetwork := srv.Entry.Transport != events.TransportStdio
	skip := c.Tally.Skip
	switch {
	case skip != nil && skip.Ended != "":
		return Due{At: now, Trigger: skip.Ended}
	case skip != nil && isAhead(skip.Since, now):
		return Due{At: now, Trigger: events.TriggerSkipExpired}
	case skip != nil:
		return Due{At: skip.Until, Trigger: events.TriggerSkipExpired}
	case c.Gate != nil:
		wait := doubling(gateCheckFirst, gateCheckMost, c.Gate.Checks)
		return Due{At: after(spread(wait), now, c.Gate.Since, c.SettledAt), Trigger: events.TriggerCheck}
	case c.Settled == "":
		return Due{At: now, Trigger: s.firstTrigger(srv)}
	case c.Settled == OutcomeFailed:
		return s.dueAfterFailure(c, now, entry.Catalogue != nil && overNetwork, spread)
	case !entry.EmptyAt.IsZero():
		return Due{At: after(emptyListRecheck, now, entry.EmptyAt), Trigger: events.TriggerCheck}
	case overNetwork:
		return Due{At: after(spread(checkInterval), now, c.VerifiedAt, s.b.StartedAt), Trigger: events.TriggerCheck}
	}
	// A stdio server that is ready is not started to look.
	return Due{At: never, Trigger: events.TriggerCheck}
}

// never is a time no service lives to see.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *State) dueAfterFailure(c *connection, now time.Time, checked bool, spread func(time.Duration) time.Duration) Due {
	if c.SettledIn < s.b.Start {
		return Due{At: after(0, now, s.b.StartedAt), Trigger: events.TriggerStartup}
	}
	runs := max(c.Tally.FailedRuns, 1)
	wait, trigger := retryWaits[min(runs, len(retryWaits))-1], events.TriggerRetry
	if checked {
		wait, trigger = doubling(checkRetryFirst, checkRetryMost, runs-1), events.TriggerCheck
	}
	return Due{At: after(max(spread(wait), c.RetryAfter), now, c.SettledAt), Trigger: trigger}
}

// after returns the end of a wait that began at the latest of the times given. Those
// ahead of now are of a clock that was set back since, and say nothing; the wait is over
// when no other is left.
func after(wait time.Duration, now time.Time, times ...time.Time) time.Time {
	var began time.Time
	for _, t := range times {
		if !isAhead(t, now) {
			began = later(began, t)
		}
	}
	if began.IsZero() {
		return now
	}
	return began.Add(wait)
}

// firstTrigger tells a server that was there at start from one that a change of the
// config brought.
func (s *State) firstTrigger(srv *server) events.Trigger {
	if srv.Entry.Change != events.ChangeAdded && srv.ConfigIn > s.b.Start {
		return events.TriggerConfigChanged
	}
	return events.TriggerStartup
}

// Decision is what would be done with a server that is due.
type Decision string

// The decisions.
const (
	DecideAttempt  Decision = "attempt"
	DecideSkip     Decision = "skip"
	DecideBlocked  Decision = "blocked"
	DecideDisabled Decision = "disabled"
)

// SkipNote returns the discovery.skipped to record for a server that would be due
// at this start but for its skip; false when there is none to record, or it was
// recorded.
func (s *State) SkipNote(name events.ServerName, now time.Time) (events.DiscoverySkipped, bool) {
	srv := s.own(name)
	if srv == nil || srv.Removed || srv.Entry.Disabled || srv.Entry.Problem != nil {
		return events.DiscoverySkipped{}, false
	}
	c := srv.present()
	skip := srv.activeSkip(now)
	if skip == nil || (c.SkipNotedIn == s.b.Start && c.SkipNotedUntil.Equal(skip.Until)) {
		return events.DiscoverySkipped{}, false
	}
	return events.DiscoverySkipped{
		Reason: string(skip.Reason), RuleID: skip.Cause.Rule, RulesHash: s.rules.Hash(),
		Since: skip.Since, Until: skip.Until, Failures: skip.EventIDs,
	}, true
}

// activeSkip returns the pin or the skip that holds at now, nil if none does.
func (srv *server) activeSkip(now time.Time) *Skip {
	if srv.Pin.ActiveAt(now) {
		return srv.Pin
	}
	if skip := srv.present().Tally.Skip; skip.ActiveAt(now) {
		return skip
	}
	return nil
}

// OpenAttempt is an attempt or a call without outcome.
type OpenAttempt struct {
	Server    events.ServerName
	ConfigKey events.ConfigKey
	RunID     string
	AttemptID string // empty for a call
	CallID    string // empty for an attempt
	Tool      string // of a call
}

// Unfinished returns the attempts and calls of this service that have no outcome,
// in a fixed order. At a start they are those the last end cut short.
func (s *State) Unfinished() []OpenAttempt {
	var open []OpenAttempt
	servers := s.b.Sources[s.b.Own]
	for _, name := range sortedKeys(servers) {
		for _, key := range sortedKeys(servers[name].Connections) {
			c := servers[name].Connections[key]
			for _, id := range sortedKeys(c.Open) {
				open = append(open, OpenAttempt{Server: name, ConfigKey: key, RunID: c.Open[id].RunID, AttemptID: id})
			}
			for _, id := range sortedKeys(c.OpenCalls) {
				open = append(open, OpenAttempt{Server: name, ConfigKey: key, CallID: id, Tool: c.OpenCalls[id].Tool})
			}
		}
	}
	return open
}

// Abandoned returns how many attempts in a row on a server of ours, under its present
// key, were cut short by the end of the service; 0 if there is none of that name.
func (s *State) Abandoned(name events.ServerName) int {
	srv := s.own(name)
	if srv == nil {
		return 0
	}
	return srv.present().Tally.Abandoned
}

// RequalifyFacts returns the local facts a skip of this server rests on; false when
// it has no skip that a changed fact could end.
func (s *State) RequalifyFacts(name events.ServerName, now time.Time) ([]events.LocalFact, bool) {
	srv := s.own(name)
	if srv == nil || srv.Removed {
		return nil, false
	}
	c := srv.present()
	if srv.Pin.ActiveAt(now) || !c.Tally.Skip.ActiveAt(now) || !c.Tally.Skip.Requalify {
		return nil, false
	}
	return c.Facts, true
}

// attemptsInRun is how many attempts on a server a run may make.
const attemptsInRun = 3

// InRunRetry reports whether a failure with this verdict, of the attempt of that place
// in its run, is tried again there. A probe is one attempt and no storm.
func InRunRetry(v rules.Verdict, attempt int, probe bool) bool {
	return v.Retry && attempt < attemptsInRun && !probe
}

// spread moves a wait by up to a tenth either way, the same for the same server and
// count, so that servers that failed together do not return together.
func spread(d time.Duration, name events.ServerName, n int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write([]byte(strconv.Itoa(n)))
	perMille := int64(h.Sum64()%201) - 100
	return d + time.Duration(int64(d)/1000*perMille)
}

// doubling returns first doubled n times, most at the most.
func doubling(first, most time.Duration, n int) time.Duration {
	d := first
	for ; n > 0 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
