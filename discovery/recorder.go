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

// recordAgain is how long the service waits before it tries again to record what the log
// did not take.
const recordAgain = time.Second

// recordTimeout bounds how long a batch may take that is recorded whoever has gone.
const recordTimeout = 5 * time.Second

// store appends a batch even when whoever caused it has gone, within recordTimeout.
// If that ends first, the batch may have been stored; storing it again does no harm.
func (r recorder) store(batch ...events.Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	_, err := r.log.Append(ctx, batch)
	return err
}

// append records one fact.
func (r recorder) append(ctx context.Context, a about, d events.Data) error {
	_, err := r.log.Append(ctx, []events.Event{r.event(a, d)})
	return err
}
