package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"mcpledger/events"
	"mcpledger/httpapi/api"
)

// Bounds on a report.
const (
	maxReported = 1000
	maxAhead    = 5 * time.Minute    // a reporter's clock may run ahead
	maxOld      = 7 * 24 * time.Hour // later reports say nothing of the present
)

// reportable are the types of event a host may report: what it saw. Decisions and
// what people do are recorded by the service alone.
var reportable = []events.Type{
	events.TypeDiscoveryRunStarted, events.TypeDiscoveryRunCompleted, events.TypeDiscoveryStarted,
	events.TypeDiscoverySucceeded, events.TypeDiscoveryFailed, events.TypeDiscoveryCancelled,
	events.TypeDiscoveryAbandoned, events.TypeToolCallStarted, events.TypeToolCallSucceeded,
	events.TypeToolCallFailed, events.TypeToolCallAbandoned, events.TypeToolCallRefused,
}

// ReportEvents answers POST /api/events.
func (a *API) ReportEvents(ctx context.Context, r api.ReportEventsRequestObject) (api.ReportEventsResponseObject, error) {
	source := callerOf(ctx).identity.Name
	if source == a.source {
		return nil, refuse(codeForbidden, "the service itself goes by the name of this token; make another one to report with")
	}
	body := cmp.Or(r.JSONBody, r.ApplicationCloudeventsPlusJSONBody, r.ApplicationCloudeventsBatchPlusJSONBody)
	if body == nil {
		return nil, refuse(codeBadBody, "a body is needed")
	}
	items, err := splitReport(*body)
	if err != nil {
		return nil, err
	}
	reporter := reporter{api: a, source: source, now: a.now(), cloudEvents: r.JSONBody == nil}
	batch := make([]events.Event, len(items))
	var wrong []api.ItemProblem
	for i, item := range items {
		if batch[i], err = reporter.event(ctx, item); err == nil {
			continue
		}
		p := (*problem)(nil)
		if !errors.As(err, &p) {
			return nil, err
		}
		wrong = append(wrong, api.ItemProblem{Index: new(i), Detail: p.detail})
	}
	if len(wrong) > 0 {
		p := refuse(codeInvalidEvent, "nothing was written, since event %d is wrong: %s", *wrong[0].Index, wrong[0].Detail)
		p.also.Errors = wrong
		return nil, p
	}
	receipt, err := a.log.Append(ctx, batch)
	if err != nil {
		return nil, err
	}
	return api.ReportEvents202JSONResponse{
		Accepted: len(batch) - receipt.Duplicates, Duplicates: receipt.Duplicates, LastSequence: receipt.Last(),
	}, nil
}

// splitReport returns the events of a report, one or an array of them.
func splitReport(body json.RawMessage) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		return []json.RawMessage{body}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, badBody(err)
	}
	if len(items) == 0 || len(items) > maxReported {
		return nil, refuse(codeInvalidEvent, "a report has 1 to %d events, not %d", maxReported, len(items))
	}
	return items, nil
}

// reporter turns what one source reports into events.
type reporter struct {
	api    *API
	source string
	now    time.Time
	// cloudEvents is set for a report of a CloudEvents media type, whose events may
	// have extension attributes that mean nothing to us.
	cloudEvents bool
}

// event checks one reported event and makes it fit for the log. Its problem says
// what is wrong with it.
func (r reporter) event(ctx context.Context, item json.RawMessage) (events.Event, error) {
	if r.cloudEvents {
		item = withoutExtensions(item)
	}
	var e api.ReportedEvent
	if err := decodeStrict(bytes.NewReader(item), &e); err != nil {
		return events.Event{}, err
	}
	if !slices.Contains(reportable, e.Type) {
		return events.Event{}, refuse(codeInvalidEvent, "type %q is not for reporters: discovery.* and toolcall.* outcomes are, decisions are not", e.Type)
	}
	made := events.Event{
		ID: e.Id, Source: r.source, Type: e.Type, Subject: e.Subject, Time: e.Time.UTC(), DataVersion: 1,
		ConfigKey: cmp.Or(e.ConfigKey, e.Configkey, events.DefaultConfigKey),
		RunID:     cmp.Or(e.RunId, e.Runid), AttemptID: cmp.Or(e.AttemptId, e.Attemptid), CallID: cmp.Or(e.CallId, e.Callid),
		Actor: r.source, TraceParent: e.Traceparent,
	}
	if err := r.checkEnvelope(e, made); err != nil {
		return events.Event{}, err
	}
	var err error
	if made.Time, err = r.time(ctx, e); err != nil {
		return events.Event{}, err
	}
	made.Data, err = r.data(e.Type, e.Data)
	return made, err
}

// extension is the form of a CloudEvents attribute's name.
var extension = regexp.MustCompile(`^[a-z0-9]+$`)

// withoutExtensions returns a CloudEvent without the attributes that reports do not
// have, such as dataschema or the ledgerhash of an event that was read here. What is
// no attribute stays, to be refused.
func withoutExtensions(item json.RawMessage) json.RawMessage {
	var attributes map[string]json.RawMessage
	if json.Unmarshal(item, &attributes) != nil {
		return item
	}
	ours := fieldsOf(reflect.TypeFor[api.ReportedEvent]())
	maps.DeleteFunc(attributes, func(name string, _ json.RawMessage) bool {
		return ours[name] == nil && extension.MatchString(name)
	})
	kept, err := json.Marshal(attributes)
	if err != nil {
		return item
	}
	return kept
}

func (r reporter) checkEnvelope(e api.ReportedEvent, made events.Event) error {
	switch {
	case e.Specversion != "" && !e.Specversion.Valid():
		return refuse(codeInvalidEvent, "specversion must be 1.0")
	case e.Datacontenttype != "" && !e.Datacontenttype.Valid():
		return refuse(codeInvalidEvent, "datacontenttype must be application/json")
	case e.Dataversion != 0 && e.Dataversion != 1:
		return refuse(codeInvalidEvent, "dataversion must be 1")
	case made.ID == "":
		return refuse(codeInvalidEvent, "id is needed")
	case made.Subject == "" && !strings.HasPrefix(string(made.Type), "discovery.run_"):
		return refuse(codeInvalidEvent, "subject is needed: the server's name")
	}
	for _, a := range []struct{ name, value string }{
		{"id", made.ID}, {"subject", string(made.Subject)}, {"config_key", string(made.ConfigKey)}, {"run_id", made.RunID},
		{"attempt_id", made.AttemptID}, {"call_id", made.CallID}, {"traceparent", made.TraceParent},
	} {
		if len(a.value) > events.MaxIDBytes {
			return refuse(codeInvalidEvent, "%s has %d bytes, at most %d are taken", a.name, len(a.value), events.MaxIDBytes)
		}
		if strings.ContainsFunc(a.value, unicode.IsControl) || r.api.redactor().Text(a.value, events.MaxIDBytes) != a.value {
			return refuse(codeInvalidEvent, "%s holds control characters or what looks like a secret", a.name)
		}
	}
	return nil
}

// time returns when a reported event happened. One reported without a time happened
// now; reported again, it keeps the time it got first.
func (r reporter) time(ctx context.Context, e api.ReportedEvent) (time.Time, error) {
	at := e.Time.UTC()
	if at.IsZero() {
		for known, err := range r.api.log.Read(ctx, events.Query{ID: e.Id, Source: r.source, Bare: true}) {
			return known.Time, err
		}
		return r.now.UTC(), nil
	}
	if ahead := at.Sub(r.now); ahead > maxAhead {
		return time.Time{}, refuse(codeInvalidEvent, "time is %s ahead, at most %s are taken", ahead.Round(time.Second), maxAhead)
	}
	if old := r.now.Sub(at); old > maxOld {
		return time.Time{}, refuse(codeInvalidEvent, "time is more than %d days ago", int(maxOld.Hours())/24)
	}
	return at, nil
}
