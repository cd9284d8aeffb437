package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// ListServers answers GET /api/servers.
func (a *API) ListServers(ctx context.Context, r api.ListServersRequestObject) (api.ListServersResponseObject, error) {
	f, err := a.fleetAt(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	var found []projections.Server
	for _, v := range f.servers {
		if matchesFilter(v, r.Params) {
			found = append(found, v)
		}
	}
	sort := cmp.Or(r.Params.Sort, api.ListServersParamsSortName)
	by, descending := strings.CutPrefix(string(sort), "-")
	page, next, err := pageOf(found, "servers/"+string(sort), sortKey(by), descending, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	shown := api.ServerList{Items: []api.Server{}, NextCursor: next}
	for _, v := range page {
		shown.Items = append(shown.Items, showServer(v))
	}
	body, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
	if matchesETag(r.Params.IfNoneMatch, tag) {
		return api.ListServers304Response{Headers: api.ListServers304ResponseHeaders{
			ETag: tag, LedgerSequence: int64(f.sequence),
		}}, nil
	}
	return serversAnswer{body: body, etag: tag, sequence: f.sequence}, nil
}

// serversAnswer is a page that was encoded before, for its ETag.
type serversAnswer struct {
	body     []byte
	etag     string
	sequence events.Sequence
}

// VisitListServersResponse writes the answer.
func (s serversAnswer) VisitListServersResponse(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Ledger-Sequence", strconv.FormatInt(int64(s.sequence), 10))
	h.Set("ETag", s.etag)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(s.body)
	return err
}

func matchesFilter(v projections.Server, p api.ListServersParams) bool {
	cause := projections.Cause{}
	if v.Cause != nil {
		cause = *v.Cause
	}
	switch {
	case p.State != "" && v.State != p.State,
		p.Needs != "" && v.Needs != p.Needs,
		p.Class != "" && cause.Class != p.Class,
		p.Signature != "" && cause.Signature != p.Signature,
		p.Transport != "" && v.Entry.Transport != p.Transport,
		p.Source != "" && !seenBy(v, p.Source):
		return false
	}
	q := strings.ToLower(p.Q)
	for _, text := range []string{string(v.Name), v.Entry.Description, v.Reason} {
		if strings.Contains(strings.ToLower(text), q) {
			return true
		}
	}
	return false
}

// seenBy reports whether the source has a view of the server.
func seenBy(v projections.Server, source string) bool {
	if v.Source == source {
		return true
	}
	for _, r := range v.Reported {
		if r.Source == source {
			return true
		}
	}
	return false
}

// sortKey returns what servers are compared by, as text. The name comes last, so
// that keys differ. A server that will not be attempted comes after all that will.
func sortKey(by string) func(projections.Server) string {
	stamp := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000") }
	return func(v projections.Server) string {
		name := "\x00" + string(v.Name)
		switch by {
		case "state":
			return string(v.State) + name
		case "next_attempt":
			if v.NextAttempt.IsZero() {
				return "never" + name // letters are greater than digits
			}
			return stamp(v.NextAttempt) + name
		case "last_attempt":
			if v.Last == nil {
				return stamp(time.Time{}) + name
			}
			return stamp(v.Last.At) + name
		case "failures":
			return fmt.Sprintf("%020d", v.Stats.Failures) + name
		}
		return string(v.Name)
	}
}

// GetServer answers GET /api/servers/{name}.
func (a *API) GetServer(ctx context.Context, r api.GetServerRequestObject) (api.GetServerResponseObject, error) {
	v, m, err := a.serverAt(ctx, r.Name, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	return api.GetServer200JSONResponse{
		Body:    showServer(v),
		Headers: api.GetServer200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// serverAt returns one server at the moment asked for, or a problem when no entry
// configured it then.
func (a *API) serverAt(ctx context.Context, name, at, setName string) (projections.Server, moment, error) {
	var v projections.Server
	var configured bool
	m, err := a.ask(ctx, at, setName, func(s *projections.State, now time.Time) {
		v, configured = s.Server(events.ServerName(name), now)
	})
	if err != nil {
		return v, m, err
	}
	if !configured {
		return v, m, a.notConfigured(ctx, events.ServerName(name), m)
	}
	return v, m, nil
}

// notConfigured returns the problem of a server without entry at a moment, as the log up to
// there tells it; the zero moment is the present. Of one that had an entry it says since
// when it had none, and of one that only hosts report where to ask.
func (a *API) notConfigured(ctx context.Context, name events.ServerName, at moment) error {
	if name == "" {
		return noSuchServer(name, at) // which the log would take for any
	}
	q := events.Query{Subject: name, Desc: true, Limit: 1}
	if at.past {
		q.Before = at.sequence + 1
	}
	is, then := at.tense()
	path := "/api/servers/" + url.PathEscape(string(name))
	entries := q
	entries.Types = []events.Type{events.TypeServerConfigured, events.TypeServerRemoved}
	for e, err := range a.log.Read(ctx, entries) {
		if err != nil || e.Type != events.TypeServerRemoved {
			return cmp.Or(err, noSuchServer(name, at))
		}
		return refuse(codeServerNotFound, "no server named %q %s configured any more, it was removed from the config at %s; %s/history has what was",
			name, is, e.HappenedAt().UTC().Format(time.RFC3339), path)
	}
	for e, err := range a.log.Read(ctx, q) {
		if err != nil {
			return err
		}
		asked := url.Values{"source": {e.Source}, "config_key": {string(e.ConfigKey)}}.Encode()
		return refuse(codeServerNotFound, "no server named %q %s configured%s; it is known from reports of %q, and %s/why, %s/history and %s/decision?%s answer for it",
			name, is, then, e.Source, path, path, path, asked)
	}
	return noSuchServer(name, at)
}

func noSuchServer(name events.ServerName, at moment) error {
	is, then := at.tense()
	listed := "/api/servers lists those that are"
	if at.past {
		listed = "/api/servers with the same at lists those that were"
	}
	return refuse(codeServerNotFound, "no server named %q %s configured%s; %s", name, is, then, listed)
}

// ListHealth answers GET /api/health.
func (a *API) ListHealth(ctx context.Context, r api.ListHealthRequestObject) (api.ListHealthResponseObject, error) {
	f, err := a.fleetAt(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(f.servers, "health", byName, false, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	shown := api.HealthList{Items: []api.Health{}, NextCursor: next}
	for _, v := range page {
		shown.Items = append(shown.Items, showHealth(v))
	}
	return api.ListHealth200JSONResponse{
		Body: shown, Headers: api.ListHealth200ResponseHeaders{LedgerSequence: int64(f.sequence)},
	}, nil
}

// ListSkips answers GET /api/skips.
func (a *API) ListSkips(ctx context.Context, r api.ListSkipsRequestObject) (api.ListSkipsResponseObject, error) {
	f, err := a.fleetAt(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	var skipped []projections.Server
	for _, v := range f.servers {
		if v.Skip != nil {
			skipped = append(skipped, v)
		}
	}
	page, next, err := pageOf(skipped, "skips", byName, false, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	shown := api.SkipList{Items: []api.SkippedServer{}, NextCursor: next}
	for _, v := range page {
		shown.Items = append(shown.Items, api.SkippedServer{Server: v.Name, ConfigKey: v.ConfigKey, Skip: *showSkip(v)})
	}
	return api.ListSkips200JSONResponse{
		Body: shown, Headers: api.ListSkips200ResponseHeaders{LedgerSequence: int64(f.sequence)},
	}, nil
}

func byName(v projections.Server) string { return string(v.Name) }
