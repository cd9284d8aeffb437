package eventstest

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"mcpledger/events"
)

// Source is the source of the events made here.
const Source = "eventstest"

var ids atomic.Int64

// NewID returns an id in the form of a UUID, another one at each call.
func NewID() string { return fmt.Sprintf("00000000-0000-7000-8000-%012x", ids.Add(1)) }

// Moment makes events that happened at one time.
type Moment struct{ at time.Time }

// At returns the maker of events that happened at t.
func At(t time.Time) Moment { return Moment{t} }

// Event returns an event with that payload, about a server under a config key.
func (m Moment) Event(server events.ServerName, key events.ConfigKey, data events.Data) events.Event {
	return events.Event{
		ID: NewID(), Source: Source, Type: data.EventType(), Subject: server, ConfigKey: key,
		Time: m.at, DataVersion: 1, Data: data,
	}
}

// Started returns the start of an attempt, in a run of its own.
func (m Moment) Started(server events.ServerName, key events.ConfigKey, trigger events.Trigger) events.Event {
	e := m.Event(server, key, events.DiscoveryStarted{Attempt: 1, Trigger: trigger, LimitMS: 60_000})
	e.RunID, e.AttemptID = NewID(), NewID()
	return e
}

// Failed returns an attempt that failed.
func (m Moment) Failed(server events.ServerName, key events.ConfigKey, evidence events.Evidence) events.Event {
	return m.Event(server, key, events.DiscoveryFailed{Evidence: evidence})
}

// Succeeded returns an attempt that listed so many tools.
func (m Moment) Succeeded(server events.ServerName, key events.ConfigKey, tools int) events.Event {
	return m.Event(server, key, events.DiscoverySucceeded{
		ProtocolVersion: "2025-11-25", ServerInfo: events.ServerInfo{Name: string(server), Version: "1.0.0"},
		CatalogueHash: fmt.Sprintf("tools-%d", tools), ToolCount: tools, ElapsedMS: 120,
	})
}

// Unknown returns an event of a type, or with fields, that this version may not
// know. It panics if payload is no JSON.
func (m Moment) Unknown(t events.Type, payload string) events.Event {
	if !json.Valid([]byte(payload)) {
		panic("eventstest: payload is no JSON: " + payload)
	}
	return m.Event("", "", events.Unknown{Type: t, JSON: json.RawMessage(payload)})
}
