package events

import (
	"encoding/json"
	"strings"
	"time"
)

// Sequence is an event's place in the log. The first event has sequence 1; 0 means
// "before the first event", where a new projection starts. The log assigns it and
// leaves no gap: an event appended twice keeps its first sequence.
type Sequence int64

// ServerName is the name of an MCP server as its config entry gives it, such as
// "weather". Names are compared byte for byte.
type ServerName string

// ConfigKey identifies a connection: one server under one config. For servers this
// service starts it is "k1_<entry>.<values>", where each part is 16 base32
// characters of a keyed hash; <entry> covers the entry as written and <values> what
// its variables and files expand to. A host that reports its own outcomes may use
// any stable string.
type ConfigKey string

// DefaultConfigKey stands in for the config key of a reporter that names none.
const DefaultConfigKey ConfigKey = "x_default"

// Entry returns the part of the key that covers the entry as written. Keys with
// the same entry share a catalogue. A key of another form is all entry.
func (k ConfigKey) Entry() string {
	if !strings.HasPrefix(string(k), "k1_") {
		return string(k)
	}
	entry, _, _ := strings.Cut(string(k), ".")
	return entry
}

// Type names what an event records, in the past tense.
type Type string

// Event is one recorded fact with its envelope, whose names are those of
// CloudEvents 1.0 where CloudEvents has one. An event is never edited.
type Event struct {
	// ID is unique within Source: a UUIDv7 for our own events, any string of 1 to
	// 128 bytes for reported ones.
	ID string
	// Source is who saw it: this service's instance, or the name of a reporter.
	Source string
	Type   Type
	// Subject is the server the event is about; empty when it is about none.
	Subject ServerName
	// Time is when it happened, by the clock of Source, in UTC.
	Time time.Time
	// DataVersion is the version of the shape of Data; 1 for every type so far.
	DataVersion int
	// Data is the payload; its dynamic type belongs to Type, or is Unknown.
	Data Data
	// Raw is the payload's JSON as recorded, with long texts inline and with fields
	// this version does not know. The log sets it on events it returns; for an
	// event to be appended it is empty, and Data counts.
	Raw json.RawMessage

	ConfigKey ConfigKey
	// RunID joins the attempts of one pass over due servers; AttemptID joins a
	// discovery.started with its outcome, CallID a toolcall.started with its own.
	RunID, AttemptID, CallID string
	// Actor is the person, token or client that caused the event, if one did.
	Actor       string
	TraceParent string // W3C trace context, if the caller sent one

	// Sequence, RecordedAt and Hash are assigned by the log. RecordedAt is its wall
	// clock at append; Hash is the hex SHA-256 that chains the event to the one
	// before it.
	Sequence   Sequence
	RecordedAt time.Time
	Hash       string
}

// HappenedAt returns the time folds use: the earlier of Time and RecordedAt, so
// that a reporter's clock that runs ahead cannot put an event into the future.
func (e Event) HappenedAt() time.Time {
	if !e.RecordedAt.IsZero() && e.RecordedAt.Before(e.Time) {
		return e.RecordedAt
	}
	return e.Time
}

// EvidenceTypes are the types of event that may hold evidence.
var EvidenceTypes = []Type{TypeDiscoveryFailed, TypeToolCallFailed, TypeToolCallRefused, TypeSessionDiscarded}

// Evidence returns the evidence that the event holds, nil if it holds none.
func (e Event) Evidence() *Evidence {
	switch d := e.Data.(type) {
	case DiscoveryFailed:
		return &d.Evidence
	case ToolCallFailed:
		return &d.Evidence
	case ToolCallRefused:
		return d.Evidence
	case SessionDiscarded:
		return d.Evidence
	}
	return nil
}

// envelope is Event's JSON, in the order it is shown.
type envelope struct {
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        Type            `json:"type"`
	Subject     ServerName      `json:"subject,omitempty"`
	Time        time.Time       `json:"time"`
	DataVersion int             `json:"dataversion"`
	Sequence    Sequence        `json:"sequence,omitempty"`
	RecordedAt  *time.Time      `json:"recorded_at,omitempty"`
	ConfigKey   ConfigKey       `json:"config_key,omitempty"`
	RunID       string          `json:"run_id,omitempty"`
	AttemptID   string          `json:"attempt_id,omitempty"`
	CallID      string          `json:"call_id,omitempty"`
	Actor       string          `json:"actor,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
	Hash        string          `json:"hash,omitempty"`
	Data        json.RawMessage `json:"data"`
}

// MarshalJSON gives the envelope with the payload under "data", long texts inline.
func (e Event) MarshalJSON() ([]byte, error) {
	raw := e.Raw
	if raw == nil {
		var err error
		if raw, err = EncodeData(e.Data); err != nil {
			return nil, err
		}
	}
	env := envelope{
		ID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject, Time: e.Time.UTC(),
		DataVersion: e.DataVersion, Sequence: e.Sequence, ConfigKey: e.ConfigKey,
		RunID: e.RunID, AttemptID: e.AttemptID, CallID: e.CallID,
		Actor: e.Actor, TraceParent: e.TraceParent, Hash: e.Hash, Data: raw,
	}
	if !e.RecordedAt.IsZero() {
		at := e.RecordedAt.UTC()
		env.RecordedAt = &at
	}
	return json.Marshal(env)
}

// UnmarshalJSON reads what MarshalJSON wrote. Unknown fields of the payload stay in
// Raw; a payload of an unknown type becomes Unknown.
func (e *Event) UnmarshalJSON(b []byte) error {
	var env envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return err
	}
	data, err := DecodeData(env.Type, env.Data)
	if err != nil {
		return err
	}
	*e = Event{
		ID: env.ID, Source: env.Source, Type: env.Type, Subject: env.Subject, Time: env.Time,
		DataVersion: env.DataVersion, Data: data, Raw: env.Data, ConfigKey: env.ConfigKey,
		RunID: env.RunID, AttemptID: env.AttemptID, CallID: env.CallID,
		Actor: env.Actor, TraceParent: env.TraceParent, Sequence: env.Sequence, Hash: env.Hash,
	}
	if env.RecordedAt != nil {
		e.RecordedAt = *env.RecordedAt
	}
	return nil
}
