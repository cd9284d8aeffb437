package projections

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// ServerState is the state of a server in one word, for people.
type ServerState string

// The states; the first that holds, in this order.
const (
	StateDisabled    ServerState = "disabled"
	StateBlocked     ServerState = "blocked" // a gate, or a variable that is not set
	StateSkipped     ServerState = "skipped"
	StateDiscovering ServerState = "discovering" // no outcome yet, no catalogue
	StateUnreachable ServerState = "unreachable" // the last run failed; its tools are still offered
	StateFailed      ServerState = "failed"      // the last run failed; no tools are known
	StateReady       ServerState = "ready"
)

// OffersTools reports whether the tools that are known of a server in this state are
// offered.
func (s ServerState) OffersTools() bool { return s == StateReady || s == StateUnreachable }

// Needs says what would bring a server back.
type Needs string

// The needs.
const (
	NeedsNothing    Needs = "nothing"
	NeedsWait       Needs = "wait"
	NeedsLogin      Needs = "login"
	NeedsCredential Needs = "credential"
	NeedsConfig     Needs = "config"
	NeedsDependency Needs = "dependency"
	NeedsOperator   Needs = "operator"
)

// What can end a skip, a gate or a failure.
const (
	ClearsOnExpiry       = "expiry"
	ClearsOnConfigChange = "config_change"
	ClearsOnManual       = "manual"
	ClearsOnRequalify    = "requalify"
	ClearsOnCheck        = "successful_check"
)

// Server is what is known of one server at one moment. Its fields are values or
// shared with the State; nobody changes them.
type Server struct {
	Name          events.ServerName
	Source        string
	FromReports   bool // Source is a host that reports, and not this service
	ConfigKey     events.ConfigKey
	Entry         events.ServerConfigured // zero for a server that is only reported
	State         ServerState
	Reason        string // cause first, one sentence
	Needs         Needs
	Reachability  Reachability
	Authorization Authorization
	Cause         *Cause
	Skip          *Skip // the pin or skip that holds now
	// Over is the skip that ended without a success or a counted failure since; the next
	// attempt is its probe.
	Over *Skip
	// UnderWay says that an attempt of ours was started and has no outcome yet. A
	// reporter may never tell how its own ended.
	UnderWay bool
	Gate     *Gate
	Streak   *Streak
	Last     *Attempt
	// InVain is how long the last attempt that failed lasted, or one after it that was
	// cancelled when it had lasted longer; 0 after a success, and before any.
	InVain time.Duration
	// NextAttempt is zero when only a change or a person brings one about.
	NextAttempt     time.Time
	NextTrigger     events.Trigger
	Decision        Decision
	VerifiedAt      time.Time
	Catalogue       *Catalogue
	Live            bool // the catalogue was seen since the service started
	ProtocolVersion string
	ServerInfo      events.ServerInfo
	Stats           Stats
	Chain           []Link
	// Reported is how other sources see a server of this name.
	Reported []Server
}

// Offered reports whether the server's tools are offered.
func (v Server) Offered() bool { return v.State.OffersTools() }

// Pinned reports whether the server is set aside by hand.
func (v Server) Pinned() bool { return v.Skip != nil && v.Skip.Reason == SkipPinned }

// ClearsOn returns what can end the skip that holds now, nil if none does.
func (v Server) ClearsOn() []string {
	if v.Skip == nil {
		return nil
	}
	if v.Pinned() {
		if v.Skip.Until.IsZero() {
			return []string{ClearsOnManual}
		}
		return []string{ClearsOnExpiry, ClearsOnManual}
	}
	if v.FromReports {
		return []string{ClearsOnExpiry, ClearsOnConfigChange}
	}
	on := []string{ClearsOnExpiry, ClearsOnConfigChange, ClearsOnManual}
	if v.requalifies() {
		on = append(on, ClearsOnRequalify)
	}
	return on
}

// requalifies reports whether a changed local file ends the skip that holds now: only
// programs that we start rest on any.
func (v Server) requalifies() bool {
	return v.Skip.Requalify && v.Entry.Transport == events.TransportStdio
}

// Servers returns all configured servers by name.
func (s *State) Servers(now time.Time) []Server {
	var all []Server
	for _, name := range sortedKeys(s.b.Sources[s.b.Own]) {
		if v, ok := s.Server(name, now); ok {
			all = append(all, v)
		}
	}
	return all
}

// Server returns one configured server; false when no entry configures it.
func (s *State) Server(name events.ServerName, now time.Time) (Server, bool) {
	srv := s.own(name)
	if srv == nil || srv.Removed {
		return Server{}, false
	}
	v := s.view(s.b.Own, name, srv, now)
	v.Reported = s.reports(name, now)
	return v, true
}

func (s *State) view(source string, name events.ServerName, srv *server, now time.Time) Server {
	c := srv.present()
	v := Server{
		Name: name, Source: source, FromReports: source != s.b.Own, ConfigKey: srv.Current,
		Reachability: c.Reachability, Authorization: c.Authorization,
		Cause: c.Cause, Skip: srv.activeSkip(now), Gate: c.Gate, Last: c.Last, InVain: c.InVain,
		VerifiedAt: c.VerifiedAt, Catalogue: srv.known().Catalogue,
		ProtocolVersion: c.ProtocolVersion, ServerInfo: c.ServerInfo, Stats: srv.stats(),
		Chain: c.Tally.Chain, UnderWay: source == s.b.Own && len(c.Open) > 0,
	}
	if skip := c.Tally.Skip; skip != nil && !skip.ActiveAt(now) {
		v.Over = skip
	}
	if srv.Entry != nil {
		v.Entry = *srv.Entry
	}
	if v.Catalogue != nil {
		v.Live = v.Catalogue.In == s.b.Start
		v.VerifiedAt = later(v.VerifiedAt, v.Catalogue.AsOf)
	}
	if c.Tally.Streak.Count > 0 {
		streak := c.Tally.Streak
		v.Streak = &streak
	}
	if c.Cause == nil && c.Tally.Skip.ActiveAt(now) {
		v.Cause = &c.Tally.Skip.Cause
	}
	if c.Gate != nil {
		v.Cause = &c.Gate.Cause
	}
	if p := v.Entry.Problem; p != nil {
		cause := causeOf(s.rules.Classify(ProblemEvidence(v.Entry)))
		cause.Text = p.Detail
		v.Cause = &cause
		if p.Code == events.ProblemVariableUnset {
			v.Authorization = CredentialsMissing
		}
	}
	if due, ok := s.Due(name, now); ok && source == s.b.Own && due.At.Before(never) {
		v.NextAttempt, v.NextTrigger = due.At, due.Trigger
	}
	v.State = stateOf(v, c)
	v.Decision = decide(v)
	v.Needs = needsOf(v)
	v.Reason = reasonOf(v)
	return v
}

// stats returns the counts with the times read off.
func (srv *server) stats() Stats {
	stats := srv.Stats
	stats.CallP50MS, stats.CallP99MS = srv.Latency.quantile(0.5), srv.Latency.quantile(0.99)
	return stats
}

// ProblemEvidence is the evidence of a fault found in an entry before anything was
// started; the error begins with the problem's code.
func ProblemEvidence(d events.ServerConfigured) events.Evidence {
	return events.Evidence{Phase: events.PhaseConfig, Transport: d.Transport, Error: d.Problem.Code + ": " + d.Problem.Detail}
}

func stateOf(v Server, c *connection) ServerState {
	problem := v.Entry.Problem
	switch {
	case v.Entry.Disabled:
		return StateDisabled
	case c.Gate != nil, problem != nil && problem.Code == events.ProblemVariableUnset:
		return StateBlocked
	case problem != nil:
		return StateFailed
	case v.Skip != nil:
		return StateSkipped
	case c.Settled == "" && v.Catalogue == nil:
		return StateDiscovering
	case c.Settled == OutcomeFailed && v.Catalogue != nil:
		return StateUnreachable
	case c.Settled == OutcomeFailed:
		return StateFailed
	}
	return StateReady
}

func decide(v Server) Decision {
	switch v.State {
	case StateDisabled:
		return DecideDisabled
	case StateBlocked:
		return DecideBlocked
	case StateSkipped:
		return DecideSkip
	case StateFailed:
		if v.Entry.Problem != nil {
			return DecideBlocked
		}
	case StateDiscovering, StateUnreachable, StateReady:
	}
	return DecideAttempt
}

func needsOf(v Server) Needs {
	switch {
	case v.State == StateDisabled, v.State == StateReady:
		return NeedsNothing
	case v.State == StateDiscovering:
		return NeedsWait
	case v.Pinned():
		return NeedsOperator
	case v.Gate != nil && v.Gate.Kind != rules.GateCredentialsMissing:
		return loginOrCredential(v)
	case v.Gate != nil:
		return NeedsCredential
	case v.Cause == nil:
		return NeedsWait
	}
	switch v.Cause.Class {
	case rules.ClassAuth:
		return loginOrCredential(v)
	case rules.ClassCredentialsMissing:
		return NeedsCredential
	case rules.ClassDependency, rules.ClassCommandNotFound:
		if v.Cause.Disposition == rules.DispositionTransient {
			return NeedsWait
		}
		return NeedsDependency
	case rules.ClassConfig:
		return NeedsConfig
	case rules.ClassProtocol, rules.ClassResource, rules.ClassNetwork, rules.ClassTimeout, rules.ClassRateLimit,
		rules.ClassServerError, rules.ClassToolError, rules.ClassUnknown:
	}
	if v.Cause.Disposition == rules.DispositionTransient {
		return NeedsWait
	}
	return NeedsOperator
}

// loginOrCredential tells whether the entry already sends a credential, which is
// then to be replaced, or whether a person has to log in.
func loginOrCredential(v Server) Needs {
	var written struct {
		Headers map[string]json.RawMessage `json:"headers"`
		Env     map[string]json.RawMessage `json:"env"`
	}
	if json.Unmarshal(v.Entry.Config, &written) == nil && len(written.Headers)+len(written.Env) > 0 {
		return NeedsCredential
	}
	return NeedsLogin
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
