package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// GetConfig answers GET /api/config.
func (a *API) GetConfig(ctx context.Context, r api.GetConfigRequestObject) (api.GetConfigResponseObject, error) {
	var c projections.Config
	var servers []projections.Server
	m, err := a.ask(ctx, r.Params.At, r.Params.Rules, func(s *projections.State, now time.Time) {
		c, servers = s.Config(), s.Servers(now)
	})
	if err != nil {
		return nil, err
	}
	shown := api.Config{
		Files: c.Files, LoadedAt: api.NewTimestamp(c.LoadedAt),
		Errors: []api.ConfigProblem{}, Warnings: []api.ConfigProblem{},
	}
	if c.Rejected != nil {
		shown.Errors = append(shown.Errors, showProblem(*c.Rejected))
	}
	told := map[events.ServerName]bool{}
	for _, f := range c.Faults {
		told[f.Server] = true
		shown.Errors = append(shown.Errors, showProblem(f))
	}
	for _, v := range servers {
		if p := v.Entry.Problem; p != nil && !told[v.Name] {
			shown.Errors = append(shown.Errors, api.ConfigProblem{
				File: v.Entry.SourceFile, Line: p.Line, Column: p.Column, Server: v.Name, Detail: p.Detail,
			})
		}
	}
	for _, w := range c.Warnings {
		shown.Warnings = append(shown.Warnings, showProblem(w))
	}
	return api.GetConfig200JSONResponse{
		Body: shown, Headers: api.GetConfig200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// ReloadConfig answers POST /api/config/reload.
func (a *API) ReloadConfig(ctx context.Context, _ api.ReloadConfigRequestObject) (api.ReloadConfigResponseObject, error) {
	reloaded, err := a.discovery.Reload(ctx, callerOf(ctx).actor())
	var unusable *config.ProblemError
	if errors.As(err, &unusable) {
		reloaded.Faults = unusable.Problems
		reloaded.Changes, err = a.unchanged(ctx)
	}
	if err != nil {
		return nil, err
	}
	report := api.ReloadConfig200JSONResponse{
		Added: []events.ServerName{}, Changed: []events.ServerName{},
		Removed: list(slices.Sorted(slices.Values(reloaded.Removed))), Errors: []api.ConfigProblem{},
	}
	for name, change := range reloaded.Changes {
		switch change {
		case "":
			report.Unchanged++
		case events.ChangeAdded:
			report.Added = append(report.Added, name)
		default:
			report.Changed = append(report.Changed, name)
		}
	}
	slices.Sort(report.Added)
	slices.Sort(report.Changed)
	for _, p := range reloaded.Faults {
		report.Errors = append(report.Errors, showProblem(p))
	}
	return report, nil
}

// unchanged has every server configured now, as a reload that touched none.
func (a *API) unchanged(ctx context.Context) (map[events.ServerName]events.Change, error) {
	f, err := a.fleetAt(ctx, "", "")
	if err != nil {
		return nil, err
	}
	changes := map[events.ServerName]events.Change{}
	for _, v := range f.servers {
		changes[v.Name] = ""
	}
	return changes, nil
}
