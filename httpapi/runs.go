package httpapi

import (
	"context"
	"strconv"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections/rules"
)

// ListRuns answers GET /api/runs.
func (a *API) ListRuns(ctx context.Context, r api.ListRunsRequestObject) (api.ListRunsResponseObject, error) {
	m, err := a.place(ctx, "", "")
	if err != nil {
		return nil, err
	}
	key, given, err := decodeCursor(r.Params.Cursor, "runs")
	if err != nil {
		return nil, err
	}
	limit := pageSize(r.Params.Limit)
	q := events.Query{
		Source: a.source, Types: []events.Type{events.TypeDiscoveryRunStarted},
		Before: m.sequence + 1, Desc: true, Limit: limit + 1,
	}
	if given {
		before, err := parseDecimal(key)
		if err != nil || before < 1 {
			return nil, refuse(codeInvalidCursor, "this is no next_cursor of ours")
		}
		q.Before = events.Sequence(before)
	}
	started, err := a.lastStart(ctx)
	if err != nil {
		return nil, err
	}
	page := api.RunList{Items: []api.Run{}}
	var last events.Sequence
	for e, err := range a.log.Read(ctx, q) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == limit {
			page.NextCursor = cursor{List: "runs", Key: strconv.FormatInt(int64(last), 10)}.encode()
			break
		}
		run, err := a.runOf(ctx, e.RunID, started, m)
		if err != nil {
			return nil, err
		}
		last = e.Sequence
		page.Items = append(page.Items, run)
	}
	return api.ListRuns200JSONResponse{
		Body: page, Headers: api.ListRuns200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// GetRun answers GET /api/runs/{run_id}.
func (a *API) GetRun(ctx context.Context, r api.GetRunRequestObject) (api.GetRunResponseObject, error) {
	m, err := a.place(ctx, "", "")
	if err != nil {
		return nil, err
	}
	started, err := a.lastStart(ctx)
	if err != nil {
		return nil, err
	}
	run, err := a.runOf(ctx, r.RunId, started, m)
	if err != nil {
		return nil, err
	}
	return api.GetRun200JSONResponse{
		Body: run, Headers: api.GetRun200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// lastStart returns where the service last took hold of the log, 0 if it never did.
func (a *API) lastStart(ctx context.Context) (events.Sequence, error) {
	q := events.Query{Source: a.source, Types: []events.Type{events.TypeServiceStarted}, Desc: true, Limit: 1}
	for e, err := range a.log.Read(ctx, q) {
		return e.Sequence, err
	}
	return 0, nil
}

// runOf tells a run from its events. A run that began before the service's last
// start and was not completed was interrupted.
func (a *API) runOf(ctx context.Context, id string, started events.Sequence, m moment) (api.Run, error) {
	run := api.Run{RunId: id, Servers: []api.RunServer{}}
	begun := false
	for e, err := range a.log.Read(ctx, events.Query{Source: a.source, RunID: id, Before: m.sequence + 1}) {
		if err != nil {
			return run, err
		}
		switch d := e.Data.(type) {
		case events.DiscoveryRunStarted:
			begun = true
			run.Trigger, run.Actor, run.Reason = d.Trigger, e.Actor, d.Reason
			run.Status, run.StartedAt, run.Planned = api.RunStatusRunning, api.Timestamp(e.HappenedAt()), len(d.Servers)
			if e.Sequence < started {
				run.Status = api.RunStatusInterrupted
			}
			for _, name := range d.Servers {
				run.Servers = append(run.Servers, api.RunServer{Server: name, Status: api.RunServerStatusPlanned})
			}
		case events.DiscoveryRunCompleted:
			run.Status, run.EndedAt = api.RunStatusCompleted, api.NewTimestamp(e.HappenedAt())
			run.DurationMs = d.ElapsedMS
			if run.DurationMs == 0 {
				run.DurationMs = time.Time(*run.EndedAt).Sub(run.StartedAt.Time()).Milliseconds()
			}
		default:
			for i := range run.Servers {
				if run.Servers[i].Server == e.Subject {
					run.Servers[i] = attempted(run.Servers[i], e, m.set)
				}
			}
		}
	}
	if !begun {
		return run, refuse(codeRunNotFound, "the log holds no run with the id %q", id)
	}
	for _, s := range run.Servers {
		if s.Status != api.RunServerStatusPlanned && s.Status != api.RunServerStatusRunning {
			run.Finished++
		}
	}
	return run, nil
}

// attempted returns how a server of a run is after one more of the run's events.
func attempted(s api.RunServer, e events.Event, set *rules.Set) api.RunServer {
	switch d := e.Data.(type) {
	case events.DiscoveryStarted:
		return api.RunServer{Server: s.Server, Status: api.RunServerStatusRunning, Attempts: s.Attempts + 1}
	case events.DiscoverySucceeded:
		s.Status = api.RunServerStatusSucceeded
	case events.DiscoveryFailed:
		v := set.Classify(d.Evidence)
		s.Status, s.Class, s.Error = api.RunServerStatusFailed, v.Class, v.Text
	case events.DiscoveryCancelled:
		s.Status = api.RunServerStatusCancelled
	case events.DiscoveryAbandoned:
		s.Status = api.RunServerStatusAbandoned
	default:
		return s
	}
	s.EventId = e.ID
	return s
}
