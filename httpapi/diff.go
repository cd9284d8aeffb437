package httpapi

import (
	"context"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// DiffMoments answers GET /api/diff.
func (a *API) DiffMoments(ctx context.Context, r api.DiffMomentsRequestObject) (api.DiffMomentsResponseObject, error) {
	was, from, err := a.standings(ctx, r.Params.From, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	now, to, err := a.standings(ctx, r.Params.To, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	var items []api.DiffItem
	names := map[events.ServerName]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	for name := range names {
		if changed := changes(was[name], now[name]); len(changed) > 0 {
			items = append(items, api.DiffItem{Server: name, Changed: changed, Was: was[name], Now: now[name]})
		}
	}
	key := func(d api.DiffItem) string { return string(d.Server) }
	page, next, err := pageOf(items, "diff", key, false, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	return api.DiffMoments200JSONResponse{
		Body:    api.Diff{From: from.sequence, To: to.sequence, Items: list(page), NextCursor: next},
		Headers: api.DiffMoments200ResponseHeaders{LedgerSequence: int64(to.sequence)},
	}, nil
}

// standings returns how each server stood at a moment.
func (a *API) standings(ctx context.Context, at, setName string) (map[events.ServerName]*api.Standing, moment, error) {
	all := map[events.ServerName]*api.Standing{}
	m, err := a.ask(ctx, at, setName, func(s *projections.State, now time.Time) {
		for _, v := range s.Servers(now) {
			all[v.Name] = standing(v)
		}
	})
	return all, m, err
}

// standing says how a server stands, nil for one that no entry configures.
func standing(v projections.Server) *api.Standing {
	if v.Name == "" {
		return nil
	}
	return &api.Standing{
		State: v.State, StateReason: v.Reason, ConfigKey: v.ConfigKey,
		Catalogue: showCatalogue(v), Skip: showSkip(v), Gate: showGate(v),
	}
}

// changes says in what a server differs between two moments; nil is a moment at
// which no entry configured it.
func changes(was, now *api.Standing) []api.DiffItemChanged {
	switch {
	case was == nil:
		return []api.DiffItemChanged{api.DiffItemChangedAdded}
	case now == nil:
		return []api.DiffItemChanged{api.DiffItemChangedRemoved}
	}
	var changed []api.DiffItemChanged
	if was.State != now.State {
		changed = append(changed, api.DiffItemChangedState)
	}
	if !sameSkip(was.Skip, now.Skip) {
		changed = append(changed, api.DiffItemChangedSkip)
	}
	if !sameGate(was.Gate, now.Gate) {
		changed = append(changed, api.DiffItemChangedGate)
	}
	if was.Catalogue.Hash != now.Catalogue.Hash {
		changed = append(changed, api.DiffItemChangedCatalogue)
	}
	return changed
}

func sameSkip(a, b *api.Skip) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Signature == b.Signature && a.Since.Time().Equal(b.Since.Time()) &&
		(a.Until == nil) == (b.Until == nil) && (a.Until == nil || a.Until.Time().Equal(b.Until.Time()))
}

func sameGate(a, b *api.Gate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.EventId == b.EventId
}
