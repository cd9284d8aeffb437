package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// DiscoverServer answers POST /api/servers/{name}/discover.
func (a *API) DiscoverServer(ctx context.Context, r api.DiscoverServerRequestObject) (api.DiscoverServerResponseObject, error) {
	v, _, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	if v.Entry.Disabled {
		return nil, refuse(codeServerDisabled, "%q is disabled; enable it in the config first", v.Name)
	}
	if v.Entry.Problem != nil {
		return nil, refuse(codeServerBlocked, "%s", v.Reason)
	}
	reason := ""
	if r.Body != nil {
		reason = r.Body.Reason
	}
	if err := a.checkReason(reason); err != nil {
		return nil, err
	}
	begun, err := a.discovery.Discover(ctx, []events.ServerName{v.Name}, reason, callerOf(ctx).actor())
	if err != nil {
		return nil, err
	}
	if !r.Params.Wait {
		return api.DiscoverServer202JSONResponse{RunId: begun.RunID}, nil
	}
	select {
	case <-begun.Done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v, m, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	run, err := a.runOf(ctx, begun.RunID, 0, m)
	if err != nil {
		return nil, err
	}
	for _, s := range run.Servers {
		if s.Server == v.Name && s.EventId != "" {
			return api.DiscoverServer200JSONResponse{
				RunId: begun.RunID, Outcome: projections.Outcome(s.Status), EventId: s.EventId,
				Class: s.Class, Error: s.Error, State: v.State,
			}, nil
		}
	}
	return nil, refuse(codeLogUnavailable, "the attempt has no outcome in the log; /api/runs/%s shows one once it could be written", begun.RunID)
}

// DiscoverServers answers POST /api/discover.
func (a *API) DiscoverServers(ctx context.Context, r api.DiscoverServersRequestObject) (api.DiscoverServersResponseObject, error) {
	var want api.DiscoverSelection
	if r.Body != nil {
		want = *r.Body
	}
	if err := a.checkSelection(want); err != nil {
		return nil, err
	}
	f, err := a.fleetAt(ctx, "", "")
	if err != nil {
		return nil, err
	}
	for _, name := range want.Servers {
		if !slices.ContainsFunc(f.servers, func(v projections.Server) bool { return v.Name == name }) {
			return nil, a.notConfigured(ctx, name, moment{})
		}
	}
	answer := api.DiscoverServers202JSONResponse{Joined: []api.JoinedServer{}}
	var queued []events.ServerName
	for _, v := range f.servers {
		if !wanted(v, want) {
			continue
		}
		answer.Matched++
		if v.Entry.Disabled || v.Entry.Problem != nil || (v.Skip != nil && !want.Force) {
			continue
		}
		queued = append(queued, v.Name)
	}
	if answer.Queued = len(queued); answer.Queued == 0 {
		return answer, nil
	}
	begun, err := a.discovery.Discover(ctx, queued, want.Reason, callerOf(ctx).actor())
	if err != nil {
		return nil, err
	}
	answer.RunId = begun.RunID
	for _, name := range queued {
		if run, joined := begun.Joined[name]; joined {
			answer.Joined = append(answer.Joined, api.JoinedServer{Server: name, RunId: run})
		}
	}
	return answer, nil
}

// checkSelection refuses words that no server can fit. Empty ones are not given.
func (a *API) checkSelection(s api.DiscoverSelection) error {
	for _, f := range []struct{ field, schema, value string }{
		{"class", "Class", string(s.Class)}, {"state", "ServerState", string(s.State)},
	} {
		if wrong := a.contract.schemas[f.schema].check(f.value); f.value != "" && wrong != "" {
			return refuse(codeBadBody, "%s %s", f.field, wrong)
		}
	}
	return a.checkReason(s.Reason)
}

// checkReason refuses a person's reason that is longer than the contract allows.
func (a *API) checkReason(reason string) error {
	if wrong := a.contract.schemas["Reasoned"].Properties["reason"].check(reason); wrong != "" {
		return refuse(codeBadBody, "reason %s", wrong)
	}
	return nil
}

// wanted reports whether a server fits every field of the selection that is given.
func wanted(v projections.Server, s api.DiscoverSelection) bool {
	cause := projections.Cause{}
	if v.Cause != nil {
		cause = *v.Cause
	}
	return (len(s.Servers) == 0 || slices.Contains(s.Servers, v.Name)) &&
		(s.State == "" || v.State == s.State) &&
		(s.Class == "" || cause.Class == s.Class) &&
		(s.Signature == "" || cause.Signature == s.Signature)
}

// PinServer answers PUT /api/servers/{name}/skip.
func (a *API) PinServer(ctx context.Context, r api.PinServerRequestObject) (api.PinServerResponseObject, error) {
	v, _, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	if err := a.checkReason(r.Body.Reason); err != nil {
		return nil, err
	}
	var until time.Time
	if r.Body.Until != "" {
		if until, err = time.Parse(time.RFC3339, r.Body.Until); err != nil {
			return nil, refuse(codeBadBody, "until: %q is no RFC 3339 time", r.Body.Until)
		}
		if !until.After(a.now()) {
			return nil, refuse(codeBadBody, "until: %s has passed", r.Body.Until)
		}
	}
	if err := a.discovery.Pin(ctx, v.Name, until.UTC(), r.Body.Reason, callerOf(ctx).actor()); err != nil {
		return nil, err
	}
	v, m, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	return api.PinServer200JSONResponse{
		Body: showServer(v), Headers: api.PinServer200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// clearReason is recorded for skips that are cleared without a reason given.
const clearReason = "by request"

// ClearServer answers DELETE /api/servers/{name}/skip.
func (a *API) ClearServer(ctx context.Context, r api.ClearServerRequestObject) (api.ClearServerResponseObject, error) {
	v, _, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	if v.Skip != nil || v.Streak != nil { // else there is nothing to record
		if err := a.discovery.Clear(ctx, []events.ServerName{v.Name}, cmp.Or(r.Params.Reason, clearReason), callerOf(ctx).actor()); err != nil {
			return nil, err
		}
	}
	v, m, err := a.serverAt(ctx, r.Name, "", "")
	if err != nil {
		return nil, err
	}
	return api.ClearServer200JSONResponse{
		Body: showServer(v), Headers: api.ClearServer200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// ClearSkips answers DELETE /api/skips.
func (a *API) ClearSkips(ctx context.Context, r api.ClearSkipsRequestObject) (api.ClearSkipsResponseObject, error) {
	f, err := a.fleetAt(ctx, "", "")
	if err != nil {
		return nil, err
	}
	cleared := []events.ServerName{}
	for _, v := range f.servers {
		if v.Skip != nil && (r.Params.Class == "" || v.Skip.Cause.Class == r.Params.Class) &&
			(r.Params.Signature == "" || v.Skip.Cause.Signature == r.Params.Signature) {
			cleared = append(cleared, v.Name)
		}
	}
	if len(cleared) > 0 {
		if err := a.discovery.Clear(ctx, cleared, cmp.Or(r.Params.Reason, clearReason), callerOf(ctx).actor()); err != nil {
			return nil, err
		}
	}
	return api.ClearSkips200JSONResponse{Cleared: cleared}, nil
}
