package httpapi

import (
	"context"
	"time"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// DiffMoments answers GET /api/diff.
func (a *API) DiffMoments(ctx context.Context, r api.DiffMomentsRequestObject) (api.DiffMomentsResponseObject, error) {
	was, from, err := a.serversOf(ctx, r.Params.From, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	now, to, err := a.serversOf(ctx, r.Params.To, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	var items []api.DiffItem
	for _, d := range projections.Differences(was, now) {
		items = append(items, showDifference(d))
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

// serversOf returns the configured servers at a moment.
func (a *API) serversOf(ctx context.Context, at, setName string) (servers []projections.Server, m moment, err error) {
	m, err = a.ask(ctx, at, setName, func(s *projections.State, now time.Time) { servers = s.Servers(now) })
	return servers, m, err
}

func showDifference(d projections.Difference) api.DiffItem {
	shown := api.DiffItem{Server: d.Server, Changed: []api.DiffItemChanged{}, Was: standing(d.Was), Now: standing(d.Now)}
	for _, aspect := range d.In {
		shown.Changed = append(shown.Changed, api.DiffItemChanged(aspect))
	}
	return shown
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
