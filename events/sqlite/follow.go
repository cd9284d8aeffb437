package sqlite

import (
	"context"
	"errors"
	"iter"
	"time"

	"mcpledger/events"
)

// pollEvery is how often a log opened for reading looks for what another process
// has written.
const pollEvery = 100 * time.Millisecond

// Follow yields every event after the given sequence, then waits for new ones. It
// ends without an error when ctx ends or the log closes.
func (l *Log) Follow(ctx context.Context, after events.Sequence) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for {
			// Taken before reading, so that a commit after the read still wakes.
			var committed <-chan struct{}
			q := events.Query{After: after}
			if l.writer != nil {
				committed = l.writer.committed.wait()
				q.Before = events.Sequence(l.writer.announced.Load() + 1)
			}
			for e, err := range l.Read(ctx, q) {
				if err != nil {
					if ctx.Err() == nil && !errors.Is(err, events.ErrClosed) {
						yield(events.Event{}, err)
					}
					return
				}
				if !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			if ctx.Err() != nil || l.isClosed() {
				return
			}
			l.await(ctx, committed)
		}
	}
}

// await returns when there may be new events, or when ctx or the log ends.
func (l *Log) await(ctx context.Context, committed <-chan struct{}) {
	var poll <-chan time.Time
	if l.writer == nil {
		timer := time.NewTimer(pollEvery)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-committed:
	case <-poll:
	case <-ctx.Done():
	case <-l.closing:
	}
}
