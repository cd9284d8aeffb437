package eventstest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"mcpledger/events"
)

// Head returns the last event's place and hash.
func (l *Log) Head(ctx context.Context) (events.Head, error) {
	all, err := l.view(ctx)
	if err != nil || len(all) == 0 {
		return events.Head{}, err
	}
	last := all[len(all)-1]
	return events.Head{Sequence: last.Sequence, Hash: last.Hash}, nil
}

// view returns the events there are.
func (l *Log) view(ctx context.Context) ([]events.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, events.ErrClosed
	}
	return l.all, nil
}

// viewShown returns the events that were shown, and a channel that tells of more.
func (l *Log) viewShown(ctx context.Context) ([]events.Event, <-chan struct{}, error) {
	if _, err := l.view(ctx); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[:l.shown], l.changed, nil
}

// Read yields the events that match q.
func (l *Log) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		all, err := l.view(ctx)
		if err != nil {
			yield(events.Event{}, err)
			return
		}
		n := 0
		for i := range all {
			e := all[i]
			if q.Desc {
				e = all[len(all)-1-i]
			}
			if !matches(q, e) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(events.Event{}, err)
				return
			}
			if q.Bare {
				e.Raw, e.Hash = nil, ""
			}
			if !yield(e, nil) {
				return
			}
			if n++; n == q.Limit {
				return
			}
		}
	}
}

func matches(q events.Query, e events.Event) bool {
	switch {
	case e.Sequence <= q.After, q.Before > 0 && e.Sequence >= q.Before,
		q.ID != "" && e.ID != q.ID,
		q.Subject != "" && e.Subject != q.Subject,
		len(q.Types) > 0 && !slices.Contains(q.Types, e.Type),
		slices.Contains(q.Without, e.Type),
		q.Source != "" && e.Source != q.Source,
		q.ConfigKey != "" && e.ConfigKey != q.ConfigKey,
		q.RunID != "" && e.RunID != q.RunID,
		q.AttemptID != "" && e.AttemptID != q.AttemptID,
		q.CallID != "" && e.CallID != q.CallID,
		!q.Since.IsZero() && (e.Time.IsZero() || e.Time.Before(q.Since)),
		!q.Until.IsZero() && (e.Time.IsZero() || !e.Time.Before(q.Until)):
		return false
	}
	return true
}

// Follow yields every event after the given sequence, then waits for new ones.
func (l *Log) Follow(ctx context.Context, after events.Sequence) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for {
			shown, changed, err := l.viewShown(ctx)
			if err != nil {
				return // ctx or the log has ended
			}
			for _, e := range shown[min(int(after), len(shown)):] {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Content returns a long text or document by its hash.
func (l *Log) Content(ctx context.Context, hash string) ([]byte, error) {
	if _, err := l.view(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	body, ok := l.contents[hash]
	if !ok {
		return nil, fmt.Errorf("content %q: %w", hash, events.ErrNotFound)
	}
	return body, nil
}

// SequenceAt returns the largest sequence recorded at or before t, 0 if none.
func (l *Log) SequenceAt(ctx context.Context, t time.Time) (events.Sequence, error) {
	all, err := l.view(ctx)
	for _, e := range slices.Backward(all) {
		if !e.RecordedAt.After(t) {
			return e.Sequence, nil
		}
	}
	return 0, err
}
