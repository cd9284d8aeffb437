package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// ExplainServer answers GET /api/servers/{name}/why.
func (a *API) ExplainServer(ctx context.Context, r api.ExplainServerRequestObject) (api.ExplainServerResponseObject, error) {
	v, m, err := a.explained(ctx, r.Name, r.Params)
	if err != nil {
		return nil, err
	}
	chain, err := a.chainOf(ctx, v)
	if err != nil {
		return nil, err
	}
	shown := api.Explanation{
		Server: v.Name, ConfigKey: v.ConfigKey, AsOf: api.Timestamp(m.now), Sequence: m.sequence,
		State: v.State, Decision: v.Decision, Summary: v.Reason, Rule: explainRule(v, m.set),
		Chain: chain, ClearsOn: []api.Clearing{}, NextAttemptAt: api.NewTimestamp(v.NextAttempt),
	}
	if v.FromReports {
		shown.ReportedBy = v.Source
	}
	for _, c := range v.Clearings() {
		shown.ClearsOn = append(shown.ClearsOn, api.Clearing{
			What: api.ClearingWhat(c.What), At: api.NewTimestamp(c.At), Detail: clearingDetail(v.Name, c),
		})
	}
	return api.ExplainServer200JSONResponse{
		Body: shown, Headers: api.ExplainServer200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// clearingDetail says what to do for a clearing. What a person may ask of the service is a
// request of this contract.
func clearingDetail(server events.ServerName, c projections.Clearing) string {
	path := "/api/servers/" + url.PathEscape(string(server))
	switch c.Request {
	case projections.RequestAttempt:
		return "POST " + path + "/discover"
	case projections.RequestUnpin:
		return "DELETE " + path + "/skip"
	}
	return c.Detail
}

// explained returns the view of a server that is to be explained.
func (a *API) explained(ctx context.Context, name string, p api.ExplainServerParams) (projections.Server, moment, error) {
	q := projections.Question{
		Server: events.ServerName(name), Source: p.Source, Key: events.ConfigKey(p.ConfigKey), Asker: callerOf(ctx).identity.Name,
	}
	var v projections.Server
	var known bool
	m, err := a.ask(ctx, p.At, p.Rules, func(s *projections.State, now time.Time) { v, known = s.Explained(q, now) })
	switch {
	case err != nil || known:
		return v, m, err
	case p.Source == a.source || (p.Source == "" && p.ConfigKey == ""):
		return v, m, a.notConfigured(ctx, events.ServerName(name), m)
	}
	return v, m, nothingReported(name, p.Source, p.ConfigKey)
}

func nothingReported(name, source, key string) error {
	what := "nothing of " + strconv.Quote(name)
	if key != "" {
		what += " under the config key " + strconv.Quote(key)
	}
	what += " is reported"
	if source != "" {
		what += " by " + strconv.Quote(source)
	}
	return refuse(codeReportNotFound, "%s; /api/servers/%s/history has what was", what, url.PathEscape(name))
}

// defaultRulesPage describes the default set, each rule under its id.
const defaultRulesPage = "docs/reference/rules.md"

// explainRule says which rule the server's cause was judged by, nil when it has
// none, and what makes a skip. The policies are the rule's and the set's after the
// server's own settings; the rule's gives way to the set's if that made the skip.
func explainRule(v projections.Server, set *rules.Set) *api.ExplainedRule {
	cause := v.Cause
	if cause == nil && v.Skip != nil && !v.Pinned() {
		cause = &v.Skip.Cause
	}
	if cause == nil {
		return nil
	}
	own := v.Entry.Settings.Skip
	shown := &api.ExplainedRule{
		Set: set.Name(), Hash: set.Hash(), Id: cause.Rule, Class: cause.Class,
		Disposition: cause.Disposition, Hint: cause.Hint, Policy: showPolicy(rules.SkipPolicy{}),
		AnyFailures: showPolicy(projections.OwnAnyFailures(set.AnyFailures(), own)),
	}
	if rule, known := set.Rule(cause.Rule); known {
		shown.Policy = showPolicy(projections.OwnPolicy(rule.Policy, rule.Disposition, own))
		if set.Hash() == rules.Default().Hash() {
			shown.Reference = defaultRulesPage + "#" + rule.ID
		}
	}
	if v.Skip != nil && v.Skip.Reason == projections.SkipAnyFailures {
		shown.Policy = shown.AnyFailures
	}
	return shown
}

// chainOf returns the events a server's state rests on, oldest first, with the
// evidence they hold: the fold's chain, and the events that set its gate or pin.
func (a *API) chainOf(ctx context.Context, v projections.Server) ([]api.ChainLink, error) {
	chain := []api.ChainLink{}
	seen := map[string]bool{}
	add := func(id string, link projections.Link) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		e, err := a.eventOf(ctx, v.Source, id)
		if err != nil {
			return err
		}
		shown := api.ChainLink{
			EventId: id, Sequence: e.Sequence, Time: api.Timestamp(e.HappenedAt()), Type: e.Type,
			Role: link.Role, Note: link.Note,
		}
		if evidence := e.Evidence(); evidence != nil {
			if shown.Evidence, err = json.Marshal(evidence); err != nil {
				return err
			}
		}
		chain = append(chain, shown)
		return nil
	}
	links := v.Chain
	if v.Gate != nil {
		links = append(slices.Clone(links), decision(v.Gate.EventID, "since then calls are refused"))
	}
	if v.Pinned() {
		for _, id := range v.Skip.EventIDs {
			links = append(slices.Clone(links), decision(id, projections.PinNote))
		}
	}
	for _, link := range links {
		if err := add(link.EventID, link); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(chain, func(x, y api.ChainLink) int { return cmp.Compare(x.Sequence, y.Sequence) })
	return chain, nil
}

// eventOf returns an event by its source and id.
func (a *API) eventOf(ctx context.Context, source, id string) (events.Event, error) {
	for e, err := range a.log.Read(ctx, events.Query{Source: source, ID: id, Limit: 1}) {
		return e, err
	}
	return events.Event{}, fmt.Errorf("event %q of %q: %w", id, source, events.ErrNotFound)
}

func decision(id, note string) projections.Link {
	return projections.Link{EventID: id, Role: projections.RoleDecision, Note: note}
}
