package httpapi

import (
	"cmp"
	"context"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// DecideServer answers GET /api/servers/{name}/decision.
func (a *API) DecideServer(ctx context.Context, r api.DecideServerRequestObject) (api.DecideServerResponseObject, error) {
	name, source := events.ServerName(r.Name), r.Params.Source
	key := events.ConfigKey(r.Params.ConfigKey)
	if key == "" {
		key = events.DefaultConfigKey
	}
	shown := api.Decision{Decision: projections.DecideAttempt, Reason: "Nothing is known of it"}
	var m moment
	var v projections.Server
	var known bool
	m.now = a.now()
	err := a.engine.View(func(s *projections.State) {
		m.sequence = s.Sequence()
		if source != a.source {
			v, known = s.Reported(cmp.Or(source, callerOf(ctx).identity.Name), name, key, m.now)
		}
		if !known && (source == "" || source == a.source) {
			v, known = s.Server(name, m.now)
		}
	})
	if err != nil {
		return nil, err
	}
	if known {
		shown.Decision, shown.Reason = v.Decision, v.Reason
		if v.Decision == projections.DecideDisabled {
			shown.Decision = projections.DecideBlocked
		}
		if v.Skip != nil {
			shown.Until = api.NewTimestamp(v.Skip.Until)
		}
	}
	return api.DecideServer200JSONResponse{
		Body: shown, Headers: api.DecideServer200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}
