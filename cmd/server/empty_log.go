package main

import (
	"context"
	"iter"
	"time"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

// emptyLog is the log of a folder that has none yet: nothing is in it and nothing is
// written to it.
type emptyLog struct{}

var _ events.Log = emptyLog{}

func (emptyLog) Append(context.Context, []events.Event) (events.Receipt, error) {
	return events.Receipt{}, sqlite.ErrReadOnly
}

func (emptyLog) OnCommit(func([]events.Event)) {}

func (emptyLog) Head(context.Context) (events.Head, error) { return events.Head{}, nil }

func (emptyLog) Read(context.Context, events.Query) iter.Seq2[events.Event, error] {
	return func(func(events.Event, error) bool) {}
}

func (emptyLog) Follow(ctx context.Context, _ events.Sequence) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		<-ctx.Done()
		yield(events.Event{}, context.Cause(ctx))
	}
}

func (emptyLog) Content(context.Context, string) ([]byte, error) { return nil, events.ErrNotFound }

func (emptyLog) SequenceAt(context.Context, time.Time) (events.Sequence, error) { return 0, nil }

func (emptyLog) Close() error { return nil }
