package discovery

import (
	"context"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
)

// recorder makes events of this service and appends them.
type recorder struct {
	log    events.Log
	source string
	now    func() time.Time
}

// about is what an event is about, besides its payload. Empty fields stay empty in
// the event.
type about struct {
	server    events.ServerName
	key       events.ConfigKey
	runID     string
	attemptID string
	callID    string
	actor     string
}

// newID returns a fresh UUIDv7: ids of later events sort later.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (r recorder) event(a about, d events.Data) events.Event {
	return events.Event{
		ID: newID(), Source: r.source, Type: d.EventType(), Subject: a.server, Time: r.now().UTC(),
		DataVersion: 1, Data: d, ConfigKey: a.key, RunID: a.runID, AttemptID: a.attemptID,
		CallID: a.callID, Actor: a.actor,
	}
}

// append makes one batch of the payloads, all about the same thing, and returns the
// id of the first event.
func (r recorder) append(ctx context.Context, a about, data ...events.Data) (id string, err error) {
	batch := make([]events.Event, len(data))
	for i, d := range data {
		batch[i] = r.event(a, d)
	}
	if _, err := r.log.Append(ctx, batch); err != nil {
		return "", err
	}
	return batch[0].ID, nil
}
