package httpapi

import (
	"context"
	"mime"
	"slices"
	"strconv"
	"strings"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections/rules"
)

// maxScanned bounds how many events one page of a list filtered by class looks at;
// a page that found too few by then is short, and the next one goes on from there.
const maxScanned = 5000

// selection says which events a list shows.
type selection struct {
	query events.Query // without After, Before, Limit and Desc
	class rules.Class  // of the evidence; "" for any
	none  bool         // the filters exclude each other
	desc  bool
	after events.Sequence // only later ones
}

// list names the list and its order, for the cursor.
func (s selection) list() string {
	if s.desc {
		return "events/desc"
	}
	return "events/asc"
}

// restrict narrows the selection to types of event. Several restrictions hold
// together.
func (s *selection) restrict(types []events.Type) {
	if s.query.Types != nil {
		types = slices.DeleteFunc(slices.Clone(types), func(t events.Type) bool { return !slices.Contains(s.query.Types, t) })
	}
	s.query.Types, s.none = types, len(types) == 0
}

// outcomes has the types of event that end an attempt or a call in some way.
var outcomes = map[string][]events.Type{
	"succeeded": {events.TypeDiscoverySucceeded, events.TypeToolCallSucceeded},
	"failed":    {events.TypeDiscoveryFailed, events.TypeToolCallFailed},
	"skipped":   {events.TypeDiscoverySkipped},
	"cancelled": {events.TypeDiscoveryCancelled},
	"abandoned": {events.TypeDiscoveryAbandoned, events.TypeToolCallAbandoned},
	"refused":   {events.TypeToolCallRefused},
}

// GetServerHistory answers GET /api/servers/{name}/history.
func (a *API) GetServerHistory(ctx context.Context, r api.GetServerHistoryRequestObject) (api.GetServerHistoryResponseObject, error) {
	p := r.Params
	m, err := a.place(ctx, p.At, p.Rules)
	if err != nil {
		return nil, err
	}
	name := events.ServerName(r.Name)
	s := selection{
		query: events.Query{Subject: name, Since: p.Since, Until: p.Until},
		class: p.Class, desc: p.Order != api.GetServerHistoryParamsOrderAsc,
	}
	if p.Type != "" {
		s.restrict([]events.Type{events.Type(p.Type)})
	}
	if p.Outcome != "" {
		s.restrict(outcomes[string(p.Outcome)])
	}
	page, err := a.eventPage(ctx, s, m, p.Cursor, p.Limit)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		if err := a.mustKnow(ctx, name, m); err != nil {
			return nil, err
		}
	}
	return api.GetServerHistory200JSONResponse{
		Body: page, Headers: api.GetServerHistory200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// mustKnow returns a problem when the log holds nothing of a server up to a moment.
func (a *API) mustKnow(ctx context.Context, name events.ServerName, at moment) error {
	for _, err := range a.log.Read(ctx, events.Query{Subject: name, Before: at.sequence + 1, Limit: 1}) {
		return err
	}
	return noSuchServer(name, at)
}

// selectEvents makes the selection of GET /api/events.
func selectEvents(p api.ListEventsParams) selection {
	s := selection{
		query: events.Query{
			Subject: events.ServerName(p.Server), ConfigKey: events.ConfigKey(p.ConfigKey), RunID: p.RunId,
			CallID: p.CallId, Source: p.Source, Since: p.Since, Until: p.Until,
		},
		class: p.Class, desc: p.Order == api.ListEventsParamsOrderDesc, after: events.Sequence(p.After),
	}
	if p.Type != "" {
		s.restrict([]events.Type{events.Type(p.Type)})
	}
	return s
}

// The media types of the three forms of GET /api/events.
const (
	mediaPage  = "application/json"
	mediaBatch = "application/cloudevents-batch+json"
	mediaLines = "application/x-ndjson"
)

// formOf returns which of the forms an Accept header prefers, of equals the first. A
// header that names none of them gets the page.
func formOf(accept string) string {
	form, most := mediaPage, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || !slices.Contains([]string{mediaPage, mediaBatch, mediaLines}, media) {
			continue
		}
		weight := 1.0
		if q, given := params["q"]; given {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		if weight > most {
			form, most = media, weight
		}
	}
	return form
}

// ListEvents answers GET /api/events in one of its three forms.
func (a *API) ListEvents(ctx context.Context, r api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	m, err := a.place(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	s := selectEvents(r.Params)
	form := formOf(callerOf(ctx).accept)
	if form == mediaLines {
		return a.streamLines(ctx, s, m, r.Params)
	}
	page, err := a.eventPage(ctx, s, m, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	if form == mediaBatch {
		return cloudEventsAnswer{events: page.Items, next: nextLink(ctx, page.NextCursor), sequence: m.sequence}, nil
	}
	return api.ListEvents200JSONResponse{
		Body: page, Headers: api.ListEvents200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// eventPage reads one page of events up to the place m.
func (a *API) eventPage(ctx context.Context, s selection, m moment, text string, limit int) (api.EventList, error) {
	page := api.EventList{Items: []api.Event{}}
	key, given, err := decodeCursor(text, s.list())
	if err != nil {
		return page, err
	}
	q := s.bounded(m)
	if given {
		from, err := parseDecimal(key)
		if err != nil || from < 1 {
			return page, refuse(codeInvalidCursor, "this is no next_cursor of ours")
		}
		if s.desc {
			q.Before = min(q.Before, events.Sequence(from))
		} else {
			q.After = max(q.After, events.Sequence(from))
		}
	}
	if s.none {
		return page, nil
	}
	limit = pageSize(limit)
	q.Limit = limit + 1
	if s.class != "" {
		q.Limit = maxScanned + 1
	}
	scanned, last := 0, events.Sequence(0)
	for e, err := range a.log.Read(ctx, q) {
		if err != nil {
			return page, err
		}
		if len(page.Items) == limit || scanned == q.Limit-1 {
			page.NextCursor = cursor{List: s.list(), Key: strconv.FormatInt(int64(last), 10)}.encode()
			return page, nil
		}
		scanned, last = scanned+1, e.Sequence
		shown, err := showEvent(e, m.set)
		if err != nil {
			return page, err
		}
		if s.class == "" || (shown.Classification != nil && shown.Classification.Class == s.class) {
			page.Items = append(page.Items, shown)
		}
	}
	return page, nil
}

// bounded returns the query for the selected events up to the place m.
func (s selection) bounded(m moment) events.Query {
	q := s.query
	q.After, q.Before, q.Desc = s.after, m.sequence+1, s.desc
	if s.class != "" && q.Types == nil {
		q.Types = events.EvidenceTypes
	}
	return q
}

// GetEvent answers GET /api/events/{id}.
func (a *API) GetEvent(ctx context.Context, r api.GetEventRequestObject) (api.GetEventResponseObject, error) {
	m, err := a.place(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	q := events.Query{ID: r.Id, Source: r.Params.Source, Before: m.sequence + 1, Limit: 1}
	for e, err := range a.log.Read(ctx, q) {
		if err != nil {
			return nil, err
		}
		shown, err := showEvent(e, m.set)
		if err != nil {
			return nil, err
		}
		return api.GetEvent200JSONResponse{
			Body: shown, Headers: api.GetEvent200ResponseHeaders{LedgerSequence: int64(m.sequence)},
		}, nil
	}
	return nil, refuse(codeEventNotFound, "the log holds no event with the id %q", r.Id)
}
