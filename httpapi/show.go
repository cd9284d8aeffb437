package httpapi

import (
	"bytes"
	"encoding/json"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// showServer gives the server as the contract has it.
func showServer(v projections.Server) api.Server {
	s := api.Server{
		Name: v.Name, Source: v.Source, State: v.State, StateReason: v.Reason, Needs: v.Needs,
		ConfigKey: v.ConfigKey, Transport: string(v.Entry.Transport), Description: v.Entry.Description,
		Config: v.Entry.Config, SourceFile: v.Entry.SourceFile,
		Reachability: v.Reachability, Authorization: v.Authorization,
		Cause: showCause(v.Cause), Skip: showSkip(v), Gate: showGate(v), Streak: showStreak(v.Streak),
		LastAttempt: showAttempt(v.Last), NextAttemptAt: api.NewTimestamp(v.NextAttempt),
		VerifiedAt: api.NewTimestamp(v.VerifiedAt), Catalogue: showCatalogue(v),
		ProtocolVersion: v.ProtocolVersion, ServerInfo: v.ServerInfo, Stats: showStats(v.Stats),
		Reported: []api.Reported{},
	}
	if !bytes.HasPrefix(s.Config, []byte("{")) { // its problem says that it is no object
		s.Config = json.RawMessage("{}")
	}
	if p := v.Entry.Problem; p != nil {
		s.Problem = &api.EntryProblem{Code: p.Code, Detail: p.Detail, Names: list(p.Names)}
	}
	for _, r := range v.Reported {
		s.Reported = append(s.Reported, api.Reported{
			Source: r.Source, ConfigKey: r.ConfigKey, State: r.State, StateReason: r.Reason, Decision: r.Decision,
			Cause: showCause(r.Cause), Skip: showSkip(r), LastAttempt: showAttempt(r.Last),
		})
	}
	return s
}

func showStats(s projections.Stats) api.Stats {
	return api.Stats{
		Attempts: s.Attempts, Failures: s.Failures, Launches: s.Launches,
		Calls: s.Calls, CallFailures: s.CallFailures, CallP50Ms: s.CallP50MS, CallP99Ms: s.CallP99MS,
	}
}

func showCause(c *projections.Cause) *api.Cause {
	if c == nil {
		return nil
	}
	return &api.Cause{
		Class: c.Class, Disposition: c.Disposition, Signature: c.Signature,
		Rule: c.Rule, Text: c.Text, Hint: c.Hint,
	}
}

// showSkip gives the pin or skip that holds, nil if none does.
func showSkip(v projections.Server) *api.Skip {
	s := v.Skip
	if s == nil {
		return nil
	}
	shown := &api.Skip{
		Reason: s.Reason, Note: s.Note, Rule: s.Cause.Rule, Class: s.Cause.Class, Disposition: s.Cause.Disposition,
		Signature: s.Cause.Signature, Failures: s.Failures, Since: api.Timestamp(s.Since),
		Until: api.NewTimestamp(s.Until), ClearsOn: []api.SkipClearsOn{}, EventIds: list(s.EventIDs),
	}
	for _, what := range v.ClearsOn() {
		shown.ClearsOn = append(shown.ClearsOn, api.SkipClearsOn(what))
	}
	return shown
}

func showGate(v projections.Server) *api.Gate {
	g := v.Gate
	if g == nil {
		return nil
	}
	return &api.Gate{
		Kind: g.Kind, Since: api.Timestamp(g.Since), RequiredScope: g.Scope, EventId: g.EventID,
		NextCheckAt: api.NewTimestamp(v.NextAttempt), ClearsOn: []api.GateClearsOn{projections.ClearsOnCheck},
	}
}

func showStreak(s *projections.Streak) *api.Streak {
	if s == nil {
		return nil
	}
	return &api.Streak{
		Signature: s.Signature, Count: s.Count, Needed: s.Needed,
		FirstAt: api.Timestamp(s.FirstAt), LastAt: api.Timestamp(s.LastAt),
	}
}

func showAttempt(t *projections.Attempt) *api.Attempt {
	if t == nil {
		return nil
	}
	return &api.Attempt{
		EventId: t.EventID, At: api.Timestamp(t.At), Trigger: t.Trigger, Outcome: t.Outcome,
		DurationMs: t.DurationMS, Class: t.Class, Error: t.Error,
	}
}

func showCatalogue(v projections.Server) api.Catalogue {
	info := catalogueInfo(v)
	shown := api.Catalogue{Hash: info.Hash, AsOf: info.AsOf, Source: info.Source}
	if v.Catalogue != nil {
		shown.Tools = len(v.Catalogue.Names)
	}
	return shown
}

func catalogueInfo(v projections.Server) api.CatalogueInfo {
	if v.Catalogue == nil {
		return api.CatalogueInfo{Source: api.CatalogueSourceNone}
	}
	info := api.CatalogueInfo{Hash: v.Catalogue.Hash, AsOf: api.NewTimestamp(v.Catalogue.AsOf), Source: api.CatalogueSourceCached}
	if v.Live && v.State == projections.StateReady {
		info.Source = api.CatalogueSourceLive
	}
	return info
}

func showHealth(v projections.Server) api.Health {
	return api.Health{
		Server: v.Name, State: v.State, Reachability: v.Reachability, Authorization: v.Authorization,
		Gate: showGate(v), VerifiedAt: api.NewTimestamp(v.VerifiedAt),
	}
}

func showPolicy(p rules.SkipPolicy) api.SkipPolicy {
	shown := api.SkipPolicy{After: p.After, MinSpanMs: p.MinSpan.Milliseconds(), TtlMs: []int64{}}
	for _, ttl := range p.TTL {
		shown.TtlMs = append(shown.TtlMs, ttl.Milliseconds())
	}
	return shown
}

// showEvent gives the event with what the set makes of its evidence.
func showEvent(e events.Event, set *rules.Set) (api.Event, error) {
	shown := api.Event{
		Id: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject, Time: api.Timestamp(e.Time),
		Dataversion: e.DataVersion, Sequence: e.Sequence, RecordedAt: api.Timestamp(e.RecordedAt),
		ConfigKey: e.ConfigKey, RunId: e.RunID, AttemptId: e.AttemptID, CallId: e.CallID,
		Actor: e.Actor, Traceparent: e.TraceParent, Hash: e.Hash, Data: e.Raw,
	}
	if shown.Data == nil {
		var err error
		if shown.Data, err = events.EncodeData(e.Data); err != nil {
			return api.Event{}, err
		}
	}
	if evidence := e.Evidence(); evidence != nil {
		v := set.Classify(*evidence)
		shown.Classification = &api.Classification{
			Class: v.Class, Disposition: v.Disposition, Rule: v.Rule, Signature: v.Signature, Text: v.Text,
		}
	}
	return shown, nil
}

func showProblem(p events.ConfigProblem) api.ConfigProblem {
	return api.ConfigProblem{File: p.File, Line: p.Line, Column: p.Column, Server: p.Server, Detail: p.Detail}
}

// list returns s, empty instead of nil, so that JSON has [] and not null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
