package projections

import (
	"math"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// FoldVersion names the shape and meaning of a State's snapshot. A snapshot of
// another version is not used.
const FoldVersion = "6"

// State is what the events up to one place in the log add up to under one rule
// set. It is not safe for concurrent use; the Engine guards the live one.
type State struct {
	rules *rules.Set
	b     body
}

// body is what a snapshot holds.
type body struct {
	Sequence   events.Sequence `json:"sequence"`
	RecordedAt time.Time       `json:"recorded_at,omitzero"` // of the last event
	// PassedOver counts events of types this version does not know.
	PassedOver int64 `json:"passed_over,omitempty"`
	// Own is the source of the service that holds the log; Start is its last
	// service.started.
	Own       string          `json:"own,omitempty"`
	Start     events.Sequence `json:"start,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	Config    Config          `json:"config,omitzero"`
	Active    ActiveRules     `json:"active,omitzero"`
	// Contacts are the latest outcomes by which an outage is told.
	Contacts contacts `json:"contacts,omitzero"`
	// Outage is when a failure was last laid to an outage; zero once a server that it
	// took is back.
	Outage time.Time `json:"outage,omitzero"`
	// Sources has the servers each source sees, by source and name.
	Sources map[string]map[events.ServerName]*server `json:"sources"`
}

// Config is what is known of the config files.
type Config struct {
	Files    []string               `json:"files"`
	LoadedAt time.Time              `json:"loaded_at,omitzero"`
	Warnings []events.ConfigProblem `json:"warnings"`
	// Faults are those of single entries at the last load. Logs from before they were
	// recorded have them in the entries alone.
	Faults []events.ConfigProblem `json:"faults,omitempty"`
	// Rejected is why the last load was refused; nil when it was taken.
	Rejected *events.ConfigProblem `json:"rejected,omitempty"`
}

// ActiveRules names the rule set last activated.
type ActiveRules struct {
	Set  string `json:"set"`
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// New returns the State before the first event, under set.
func New(set *rules.Set) *State {
	return &State{rules: set, b: body{Sources: map[string]map[events.ServerName]*server{}}}
}

// Sequence returns the place of the last event folded.
func (s *State) Sequence() events.Sequence { return s.b.Sequence }

// RecordedAt returns when the last event folded was recorded; zero before the first.
func (s *State) RecordedAt() time.Time { return s.b.RecordedAt }

// PassedOver returns how many events were of a type this version does not know.
func (s *State) PassedOver() int64 { return s.b.PassedOver }

// Rules returns the set the state is folded under.
func (s *State) Rules() *rules.Set { return s.rules }

// Active returns the rule set last activated in the log; zero if none was.
func (s *State) Active() ActiveRules { return s.b.Active }

// Config returns what is known of the config files.
func (s *State) Config() Config {
	c := s.b.Config
	c.Files = append([]string{}, c.Files...)
	c.Warnings = append([]events.ConfigProblem{}, c.Warnings...)
	c.Faults = append([]events.ConfigProblem{}, c.Faults...)
	return c
}

// Apply folds e, the event after Sequence, into s. It reads no clock and no store:
// time comes from the event, judgment from the rule set. An event of an unknown
// type is counted and changes nothing else.
func (s *State) Apply(e events.Event) {
	s.b.Sequence, s.b.RecordedAt = e.Sequence, e.RecordedAt
	switch d := e.Data.(type) {
	case events.Unknown:
		s.b.PassedOver++
	case events.ServiceStarted:
		if e.Source != s.b.Own { // the contacts are another's
			s.b.Contacts, s.b.Outage = contacts{}, time.Time{}
		}
		s.b.Own, s.b.Start, s.b.StartedAt = e.Source, e.Sequence, e.HappenedAt()
	case events.ConfigLoaded:
		s.b.Config = Config{Files: d.Files, LoadedAt: e.HappenedAt(), Warnings: d.Warnings, Faults: d.Faults}
	case events.ConfigRejected:
		s.b.Config.Rejected = &d.ConfigProblem
	case events.RulesActivated:
		s.b.Active = ActiveRules{Set: d.Set, Hash: d.Hash, Text: d.Text}
	case events.ServerConfigured:
		s.server(e).configured(e, d)
	case events.ServerRemoved:
		s.server(e).Removed = true
	case events.DiscoveryStarted, events.DiscoverySucceeded, events.DiscoveryFailed,
		events.DiscoveryCancelled, events.DiscoveryAbandoned, events.DiscoverySkipped,
		events.CatalogueChanged, events.SkipPinned, events.SkipCleared, events.SkipRequalified:
		s.applyDiscovery(e)
	case events.ToolCallStarted, events.ToolCallSucceeded, events.ToolCallFailed, events.ToolCallAbandoned:
		s.applyCall(e)
	case events.SessionOpened:
		if d.ProcessGroup != 0 {
			s.server(e).Stats.Launches++
		}
	case events.ServiceStopped, events.DiscoveryRunStarted, events.DiscoveryRunCompleted,
		events.ToolCallRefused, events.SessionDiscarded, events.LogImported:
		// Facts for the history, restsOnNone.
	}
}

// restsOnNone are the types that no state rests on. A fold to a place need not read
// them, but for the event at the place itself.
var restsOnNone = []events.Type{
	events.TypeServiceStopped, events.TypeDiscoveryRunStarted, events.TypeDiscoveryRunCompleted,
	events.TypeToolCallRefused, events.TypeSessionDiscarded, events.TypeLogImported,
}

func (s *State) applyDiscovery(e events.Event) {
	srv := s.server(e)
	c := srv.connection(e)
	switch d := e.Data.(type) {
	case events.DiscoveryStarted:
		srv.Stats.Attempts++
		if srv.Entry != nil && srv.Entry.Transport == events.TransportStdio {
			srv.Stats.Launches++
		}
		c.started(e, d)
	case events.DiscoverySucceeded:
		fine := c.fineBefore(e.RunID, e.HappenedAt())
		if e.Source == s.b.Own && !c.Tally.ExcusedSince.IsZero() {
			s.b.Outage = time.Time{}
		}
		c.succeeded(e, d, s.b.Start)
		srv.listed(e, d, s.b.Start)
		s.witnessed(e, c, fine, false)
	case events.DiscoveryFailed:
		srv.Stats.Failures++
		v := s.rules.Classify(d.Evidence)
		fine := c.fineBefore(e.RunID, e.HappenedAt())
		c.failed(e, d, v, policiesFor(v, s.rules.AnyFailures(), srv.skipSettings()), s.b.Start)
		if c.Tally.AnyCount > c.Before.AnyCount {
			s.witnessed(e, c, fine, byOutage(v.Class))
		}
	case events.DiscoveryCancelled:
		c.cancelled(e, d)
	case events.DiscoveryAbandoned:
		v := s.rules.Abandoned()
		c.abandoned(e, v, policiesFor(v, s.rules.AnyFailures(), srv.skipSettings()))
	case events.DiscoverySkipped:
		c.SkipNotedIn, c.SkipNotedUntil = s.b.Start, d.Until
		c.Tally = c.Tally.note(link(e), RoleDecision, "skipped: "+d.Reason)
	case events.CatalogueChanged:
		srv.entry(e.ConfigKey).changed(e, d, s.b.Start)
	case events.SkipPinned:
		srv.Pin = &Skip{Reason: SkipPinned, Since: e.HappenedAt(), Until: d.Until, Note: d.Reason, EventIDs: []string{e.ID}}
		c.Tally = c.Tally.note(link(e), RoleDecision, PinNote)
	case events.SkipCleared:
		srv.Pin = nil
		c.Tally = c.Tally.clear(link(e), d.Reason)
		c.Before, c.RunID = tally{}, ""
	case events.SkipRequalified:
		c.Tally = c.Tally.end(events.TriggerRequalified).note(link(e), RoleDecision, d.Reason)
	}
}

// dropOldest drops the value with the lowest place if there are more than most.
func dropOldest[K comparable, V any](m map[K]V, most int, place func(V) events.Sequence) {
	if len(m) <= most {
		return
	}
	var oldest K
	lowest := events.Sequence(math.MaxInt64)
	for k, v := range m {
		if at := place(v); at < lowest {
			oldest, lowest = k, at
		}
	}
	delete(m, oldest)
}

func (s *State) applyCall(e events.Event) {
	srv := s.server(e)
	c := srv.connection(e)
	call := c.finishCall(e)
	switch d := e.Data.(type) {
	case events.ToolCallStarted:
		srv.Stats.Calls++
		c.startedCall(e, d)
	case events.ToolCallSucceeded:
		if len(c.Brakes) > 0 {
			delete(c.Brakes, brakeKey(call.Caller, call.Tool, call.ArgumentsHash))
		}
		srv.Latency.add(d.ElapsedMS)
	case events.ToolCallFailed:
		srv.Stats.CallFailures++
		if d.Dispatched {
			srv.Latency.add(d.ElapsedMS)
		}
		v := s.rules.Classify(d.Evidence)
		c.gate(e, v, requiredScope(d.Evidence.WWWAuthenticate), call.Sequence)
		if k := d.Evidence.ErrorKind; k == events.KindToolError || k == events.KindJSONRPC {
			c.brake(e, call, v, s.rules.Brake())
		}
	}
}

// server returns the server e is about, as e's source sees it.
func (s *State) server(e events.Event) *server {
	servers := s.b.Sources[e.Source]
	if servers == nil {
		servers = map[events.ServerName]*server{}
		s.b.Sources[e.Source] = servers
	}
	srv := servers[e.Subject]
	if srv == nil {
		srv = &server{Connections: map[events.ConfigKey]*connection{}, Entries: map[string]*entry{}}
		servers[e.Subject] = srv
	}
	return srv
}

// own returns the server of that name as the service itself sees it, nil if it was
// never configured.
func (s *State) own(name events.ServerName) *server {
	srv := s.b.Sources[s.b.Own][name]
	if srv == nil || srv.Entry == nil {
		return nil
	}
	return srv
}

// Catalogue returns what is known of the tools of a configured server's present
// entry, nil if nothing is, and whether its list came empty once since.
func (s *State) Catalogue(name events.ServerName) (known *Catalogue, emptySeen bool) {
	srv := s.own(name)
	if srv == nil {
		return nil, false
	}
	en := srv.known()
	return en.Catalogue, !en.EmptyAt.IsZero()
}

// ProtocolVersion returns the version last spoken with a configured server under its
// present entry; empty if none was.
func (s *State) ProtocolVersion(name events.ServerName) string {
	srv := s.own(name)
	if srv == nil {
		return ""
	}
	return srv.known().ProtocolVersion
}
