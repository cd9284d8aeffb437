package replay

import (
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// subject is a server as one source sees it.
type subject struct {
	source string
	server events.ServerName
}

// about returns the server an event is about.
func about(e *events.Event) subject { return subject{e.Source, e.Subject} }

// counts is what one side did otherwise than the log with one server.
type counts struct {
	avoided, unknown, delayed, refused int
	timeAvoided, delay                 time.Duration
}

// side is the fold under one rule set, by its own decisions.
type side struct {
	set    *rules.Set
	state  *projections.State
	counts map[subject]*counts
	wanted func(at time.Time, server events.ServerName) bool // what is counted

	judged  []judged // of the piece folded last
	runs    map[subject][]*run
	refused refusedCalls
	late    map[subject]*recovery
	end     time.Time // of the last event
}

// maxRuns is how many runs of one server may be under way. Our own service makes
// one at a time; a reporter may be several programs.
const maxRuns = 8

// run is one opportunity: a run as far as it concerns one server.
type run struct {
	id      string // of the run, or of the attempt where there is none
	skipped bool   // it fell into a skip of this side
	over    bool   // this side would not have gone on after its last failure
	probe   bool   // it goes past a skip of this side
	attempt int    // place of the last attempt begun, from 1
	open    bool   // it has no outcome yet
}

// made reports whether the attempt under way is one that this side made.
func (r *run) made() bool { return !r.skipped && !r.over }

// recovery is a success that fell into a skip, so that this side learned of it late.
type recovery struct {
	key   events.ConfigKey
	at    time.Time
	until time.Time // the skip's end
	count bool
}

func newSide(set *rules.Set, wanted func(time.Time, events.ServerName) bool) *side {
	return &side{
		set: set, state: projections.New(set), wanted: wanted,
		counts: map[subject]*counts{}, runs: map[subject][]*run{}, refused: refusedCalls{}, late: map[subject]*recovery{},
	}
}

// judged is what a side makes of a failure.
type judged struct {
	place    int // of its event in the piece
	judgment Judgment
}

// fold puts a piece of the log through the side and returns what it makes of the
// failures in it, in order. That is good until the next piece.
func (s *side) fold(piece []events.Event) []judged {
	s.judged = s.judged[:0]
	for i := range piece {
		if v := s.apply(&piece[i]); v.Class != "" {
			s.judged = append(s.judged, judged{i, Judgment{Class: v.Class, Signature: v.Signature}})
		}
	}
	return s.judged
}

// apply takes the next event of the log. For one that holds the evidence of a
// failure it returns the verdict on it.
func (s *side) apply(e *events.Event) (v rules.Verdict) {
	at := e.HappenedAt()
	if at.After(s.end) {
		s.end = at
	}
	folded := true
	switch d := e.Data.(type) {
	case events.DiscoveryRunStarted:
		for _, name := range d.Servers {
			s.decide(subject{e.Source, name}, e.RunID, "", d.Trigger, at)
		}
	case events.DiscoveryStarted:
		folded = s.started(e, d)
	case events.DiscoveryFailed:
		v = s.set.Classify(d.Evidence)
		folded = s.failed(e, d, v)
	case events.DiscoverySucceeded:
		folded = s.succeeded(e, d)
	case events.DiscoveryCancelled:
		folded = s.ended(e, time.Duration(d.ElapsedMS)*time.Millisecond).made()
	case events.DiscoveryAbandoned:
		folded = s.ended(e, 0).made()
	case events.CatalogueChanged:
		folded = s.run(e, "").made()
	case events.DiscoverySkipped:
		folded = s.noted(e, d)
	case events.ToolCallStarted:
		if s.state.Opportunity(e.Source, e.Subject, e.ConfigKey, at).Gate != nil {
			s.refused.begin(e)
		}
	case events.ToolCallSucceeded:
		if s.refused.end(e) && s.wanted(at, e.Subject) {
			s.of(about(e)).refused++
		}
	case events.ToolCallFailed:
		v = s.set.Classify(d.Evidence)
		s.refused.end(e)
	case events.ToolCallAbandoned:
		s.refused.end(e)
	}
	if folded {
		s.state.Apply(*e)
		s.caughtUp(e)
	}
	return v
}

// of returns the counts of a server.
func (s *side) of(who subject) *counts {
	if s.counts[who] == nil {
		s.counts[who] = &counts{}
	}
	return s.counts[who]
}

// decide makes the opportunity of a run. What this side does with it is decided as
// the run begins; an attempt of it may wait for its turn.
func (s *side) decide(who subject, id string, key events.ConfigKey, trigger events.Trigger, at time.Time) *run {
	o := s.state.Opportunity(who.source, who.server, key, at)
	asked := trigger == events.TriggerManual || trigger == events.TriggerOnUse
	r := &run{id: id, skipped: o.Skip != nil && o.Tried && !asked, probe: o.Probe}
	runs := s.runs[who]
	if len(runs) == maxRuns {
		runs = append(runs[:0], runs[1:]...)
	}
	s.runs[who] = append(runs, r)
	return r
}

// run returns the opportunity an attempt's event belongs to. An event that belongs
// to none that is known, such as an outcome reported alone, is one of its own.
func (s *side) run(e *events.Event, trigger events.Trigger) *run {
	id := e.RunID
	if id == "" {
		id = e.AttemptID
	}
	who := about(e)
	for _, r := range s.runs[who] {
		if r.id == id && (id != "" || r.open) {
			return r
		}
	}
	return s.decide(who, id, e.ConfigKey, trigger, e.HappenedAt())
}

func (s *side) started(e *events.Event, d events.DiscoveryStarted) bool {
	r := s.run(e, d.Trigger)
	r.attempt, r.open = d.Attempt, true
	if !r.made() && s.wanted(e.HappenedAt(), e.Subject) {
		s.of(about(e)).avoided++
	}
	return r.made()
}

// ended notes the end of an attempt that took so long, and what of it was avoided.
func (s *side) ended(e *events.Event, elapsed time.Duration) *run {
	r := s.run(e, "")
	if !r.made() && s.wanted(e.HappenedAt(), e.Subject) {
		c := s.of(about(e))
		c.timeAvoided += elapsed
		if !r.open {
			c.avoided++ // its start was not reported
		}
	}
	r.open = false
	return r
}

func (s *side) failed(e *events.Event, d events.DiscoveryFailed, v rules.Verdict) bool {
	r := s.ended(e, time.Duration(d.Evidence.ElapsedMS)*time.Millisecond)
	made := r.made()
	if made && !projections.InRunRetry(v, r.attempt, r.probe) {
		r.over = true
	}
	if !made {
		s.settle(about(e), e.HappenedAt())
	}
	return made
}

func (s *side) succeeded(e *events.Event, d events.DiscoverySucceeded) bool {
	r := s.ended(e, time.Duration(d.ElapsedMS)*time.Millisecond)
	if r.made() {
		return true
	}
	at, who := e.HappenedAt(), about(e)
	o := s.state.Opportunity(e.Source, e.Subject, e.ConfigKey, at)
	if o.Skip == nil || s.late[who] != nil {
		return false
	}
	s.late[who] = &recovery{key: e.ConfigKey, at: at, until: o.Skip.Until, count: s.wanted(at, e.Subject)}
	return false
}

// noted decides what a recorded skip is on this side. It was decided before the
// skip's end, if recorded a moment later.
func (s *side) noted(e *events.Event, d events.DiscoverySkipped) bool {
	at := e.HappenedAt()
	if !d.Until.IsZero() && !at.Before(d.Until) {
		at = d.Until.Add(-1)
	}
	pinned := d.Reason == string(projections.SkipPinned)
	if pinned || s.state.Opportunity(e.Source, e.Subject, e.ConfigKey, at).Skip != nil {
		return true
	}
	if s.wanted(e.HappenedAt(), e.Subject) {
		s.of(about(e)).unknown++
	}
	return false
}

// caughtUp ends a late recovery when what was folded ended the skip or was a
// success.
func (s *side) caughtUp(e *events.Event) {
	if len(s.late) == 0 {
		return
	}
	who := about(e)
	r := s.late[who]
	if r == nil {
		return
	}
	at := e.HappenedAt()
	_, success := e.Data.(events.DiscoverySucceeded)
	if success || s.state.Opportunity(who.source, who.server, r.key, at).Skip == nil {
		s.settle(who, at)
	}
}

// settle counts a late recovery up to a time at which it was over, at the latest
// when the skip ended.
func (s *side) settle(who subject, at time.Time) {
	r := s.late[who]
	if r == nil {
		return
	}
	delete(s.late, who)
	if !r.count {
		return
	}
	if r.until.Before(at) {
		at = r.until
	}
	c := s.of(who)
	c.delayed++
	c.delay += max(0, at.Sub(r.at))
}

// finish settles what is open at the end of the log.
func (s *side) finish() {
	for who := range s.late {
		s.settle(who, s.end)
	}
}
