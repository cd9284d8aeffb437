package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// Outcome is what a replay comes to.
type Outcome string

// The outcomes. Worse means that under the candidate some server's recoveries would
// have been noticed later, or its good calls refused, more than under the baseline.
const (
	Same    Outcome = "same"
	Changed Outcome = "changed"
	Worse   Outcome = "worse"
)

// maxFailures and maxKinds bound how many failures, and kinds of them, a report lists.
const (
	maxFailures = 1000
	maxKinds    = 1000
)

// stateRemoved stands for the state of a server that no entry configures any more.
const stateRemoved projections.ServerState = "removed"

// Report says where a candidate parts from the baseline. Durations are in
// milliseconds.
type Report struct {
	Events int64 `json:"events"` // folded
	// EventsCounted are those within the bounds of Options, EventsPassedOver those of
	// types that this version does not know.
	EventsCounted    int64  `json:"events_counted"`
	EventsPassedOver int64  `json:"events_passed_over"`
	DurationMS       int64  `json:"duration_ms"`
	Baseline         Set    `json:"baseline"`
	Candidate        Set    `json:"candidate"`
	Totals           Totals `json:"totals"`
	// Servers are the rows that differ, or all, by server and source.
	Servers []Server `json:"servers"`
	// Failures are the rows that differ, or all, in the log's order; FailuresOmitted
	// counts those past the first thousand.
	Failures        []Failure `json:"failures"`
	FailuresOmitted int64     `json:"failures_omitted"`
	// Kinds count the failures whose rows differ, or all, by server and then by how
	// often; KindsOmitted counts the failures of those past the first thousand.
	Kinds        []Kind  `json:"kinds"`
	KindsOmitted int64   `json:"kinds_omitted"`
	Verdict      Outcome `json:"verdict"`
}

// Set names a rule set.
type Set struct {
	Name string `json:"set"`
	Hash string `json:"hash"`
}

// Totals are the candidate's beyond the baseline's: of what is the same on both
// sides, nothing, and below zero where the candidate has less. Failures and
// Reclassified are plain counts.
type Totals struct {
	Failures     int64 `json:"failures"`     // recorded, of attempts and calls
	Reclassified int64 `json:"reclassified"` // those with another class or signature
	// AttemptsAvoided were made and would not have been; TimeAvoidedMS is what they
	// took.
	AttemptsAvoided int64 `json:"attempts_avoided"`
	TimeAvoidedMS   int64 `json:"time_avoided_ms"`
	// RecoveriesDelayed counts the times a server was back, as a recorded success
	// shows, while the side skipped it. The delay runs to the skip's end, the next
	// success the side saw, or the end of the log. Further successes belong to the same
	// recovery until the server fails again.
	RecoveriesDelayed int64 `json:"recoveries_delayed"`
	DelayMS           int64 `json:"delay_ms"`
	// GoodCallsRefused were begun behind a gate of the side, and succeeded.
	GoodCallsRefused int64 `json:"good_calls_refused"`
	// AttemptsUnknown would have been made where the log recorded a skip. What would
	// have come of them nobody knows.
	AttemptsUnknown int64 `json:"attempts_unknown"`
}

// Server is one server on both sides. Its counts are the candidate's beyond the
// baseline's.
type Server struct {
	Server events.ServerName `json:"server"`
	Source string            `json:"source"` // whose view it is
	// Was and Now are the state at the end of the log; "removed" when no entry
	// configures the server any more.
	Was               projections.ServerState `json:"was"`
	Now               projections.ServerState `json:"now"`
	AttemptsAvoided   int64                   `json:"attempts_avoided"`
	RecoveriesDelayed int64                   `json:"recoveries_delayed"`
	GoodCallsRefused  int64                   `json:"good_calls_refused"`
	AttemptsUnknown   int64                   `json:"attempts_unknown"`
}

// Failure is one recorded failure on both sides.
type Failure struct {
	EventID string            `json:"event_id"`
	Server  events.ServerName `json:"server"`
	Was     Judgment          `json:"was"`
	Now     Judgment          `json:"now"`
}

// Kind is one way in which both sides judge failures of a server.
type Kind struct {
	Server  events.ServerName `json:"server"`
	Was     Judgment          `json:"was"`
	Now     Judgment          `json:"now"`
	Times   int64             `json:"times"`
	EventID string            `json:"event_id"` // of the first
}

// Judgment is what one side makes of a failure.
type Judgment struct {
	Class     rules.Class `json:"class"`
	Signature string      `json:"signature"`
}

// tally gathers a report while the sides fold.
type tally struct {
	opts   Options
	result Report
	keys   map[subject]events.ConfigKey // the last of each server
	kinds  map[Failure]int              // where each is in the result; without an event
}

func newTally(opts Options) *tally {
	return &tally{
		opts: opts, keys: map[subject]events.ConfigKey{}, kinds: map[Failure]int{},
		result: Report{Servers: []Server{}, Failures: []Failure{}, Kinds: []Kind{}, Verdict: Same},
	}
}

// compare takes what the two sides made of the same events.
func (t *tally) compare(piece []events.Event, was, is []judged) {
	t.result.Events += int64(len(piece))
	for i := range piece {
		e := &piece[i]
		if e.Subject != "" {
			t.keys[about(e)] = e.ConfigKey
		}
		if t.opts.counted(e.HappenedAt(), e.Subject) {
			t.result.EventsCounted++
		}
	}
	for i := range was {
		e := &piece[was[i].place]
		if !t.opts.counted(e.HappenedAt(), e.Subject) {
			continue
		}
		row := Failure{EventID: e.ID, Server: e.Subject, Was: was[i].judgment, Now: is[i].judgment}
		t.result.Totals.Failures++
		if row.Was != row.Now {
			t.result.Totals.Reclassified++
		} else if !t.opts.All {
			continue
		}
		t.list(row)
	}
}

// list takes a failure into the rows, as far as there is room.
func (t *tally) list(row Failure) {
	r := &t.result
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, row)
	} else {
		r.FailuresOmitted++
	}
	kind := row
	kind.EventID = ""
	at, known := t.kinds[kind]
	switch {
	case known:
		r.Kinds[at].Times++
	case len(r.Kinds) < maxKinds:
		t.kinds[kind] = len(r.Kinds)
		r.Kinds = append(r.Kinds, Kind{Server: row.Server, Was: row.Was, Now: row.Now, Times: 1, EventID: row.EventID})
	default:
		r.KindsOmitted++
	}
}

// report adds up both sides at the log's end.
func (t *tally) report(base, other *side) Report {
	r := t.result
	r.EventsPassedOver = base.state.PassedOver()
	slices.SortStableFunc(r.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(b.Times, a.Times))
	})
	r.Baseline = Set{base.set.Name(), base.set.Hash()}
	r.Candidate = Set{other.set.Name(), other.set.Hash()}
	changed, worse := r.Totals.Reclassified > 0, false
	whole := slices.SortedFunc(maps.Keys(t.keys), func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.source, b.source))
	})
	for _, who := range whole {
		if !t.opts.wants(who.server) {
			continue
		}
		d := other.counted(who).beyond(base.counted(who))
		r.Totals.add(d)
		row := Server{
			Server: who.server, Source: who.source,
			Was: base.standing(who, t.keys[who]), Now: other.standing(who, t.keys[who]),
			AttemptsAvoided: int64(d.avoided), RecoveriesDelayed: int64(d.delayed),
			GoodCallsRefused: int64(d.refused), AttemptsUnknown: int64(d.unknown),
		}
		differs := row.Was != row.Now || d != counts{}
		changed = changed || differs
		worse = worse || d.delayed > 0 || d.delay > 0 || d.refused > 0
		if differs || t.opts.All {
			r.Servers = append(r.Servers, row)
		}
	}
	switch {
	case worse:
		r.Verdict = Worse
	case changed:
		r.Verdict = Changed
	}
	return r
}

// standing is the state of a server at the end of a replay, stateRemoved when no
// entry configures it any more.
func (s *side) standing(who subject, key events.ConfigKey) projections.ServerState {
	v, ok := s.state.Server(who.server, s.end)
	if !ok || v.Source != who.source {
		v, ok = s.state.Reported(who.source, who.server, key, s.end)
	}
	if !ok {
		return stateRemoved
	}
	return v.State
}

// counted returns what was counted of a server.
func (s *side) counted(who subject) counts {
	if c := s.counts[who]; c != nil {
		return *c
	}
	return counts{}
}

// beyond returns what c has more than the baseline.
func (c counts) beyond(base counts) counts {
	return counts{
		avoided: c.avoided - base.avoided, unknown: c.unknown - base.unknown,
		delayed: c.delayed - base.delayed, refused: c.refused - base.refused,
		timeAvoided: c.timeAvoided - base.timeAvoided, delay: c.delay - base.delay,
	}
}

func (t *Totals) add(d counts) {
	t.AttemptsAvoided += int64(d.avoided)
	t.TimeAvoidedMS += int64(d.timeAvoided / time.Millisecond)
	t.RecoveriesDelayed += int64(d.delayed)
	t.DelayMS += int64(d.delay / time.Millisecond)
	t.GoodCallsRefused += int64(d.refused)
	t.AttemptsUnknown += int64(d.unknown)
}
