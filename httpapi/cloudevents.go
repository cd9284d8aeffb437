package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"mcpledger/events"
	"mcpledger/httpapi/api"
)

// cloudEventsAnswer is a page of events as a batch of CloudEvents. A batch has no
// place for a cursor, so the next page is in the Link header.
type cloudEventsAnswer struct {
	events   []api.Event
	next     string // "" after the last page
	sequence events.Sequence
}

// VisitListEventsResponse writes the batch.
func (c cloudEventsAnswer) VisitListEventsResponse(w http.ResponseWriter) error {
	batch := make([]api.CloudEvent, len(c.events))
	for i, e := range c.events {
		batch[i] = toCloudEvent(e)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", mediaBatch)
	h.Set("Ledger-Sequence", strconv.FormatInt(int64(c.sequence), 10))
	if c.next != "" {
		h.Set("Link", c.next)
	}
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(body)
	return err
}

// toCloudEvent gives an event the names CloudEvents 1.0 wants: attributes of lower-case
// letters and digits. Its classification is a judgment and stays behind.
func toCloudEvent(e api.Event) api.CloudEvent {
	return api.CloudEvent{
		Specversion: api.CloudEventSpecversionN10, Id: e.Id, Source: e.Source, Type: e.Type, Subject: e.Subject,
		Time: e.Time, Datacontenttype: api.CloudEventDatacontenttypeApplicationjson, Dataversion: e.Dataversion,
		Sequence: strconv.FormatInt(int64(e.Sequence), 10), Recordedat: e.RecordedAt,
		Configkey: e.ConfigKey, Runid: e.RunId, Attemptid: e.AttemptId, Callid: e.CallId,
		Actor: e.Actor, Traceparent: e.Traceparent, Ledgerhash: e.Hash, Data: e.Data,
	}
}

// nextLink gives the Link header's value for the page after this request's, "" when
// there is none.
func nextLink(ctx context.Context, next *string) string {
	if next == nil {
		return ""
	}
	query := callerOf(ctx).query
	query.Set("cursor", *next)
	return `</api/events?` + query.Encode() + `>; rel="next"`
}
