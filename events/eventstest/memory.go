// Package eventstest has what tests of and against a log need: a log in memory, a
// few makers of events, and TestLog, the suite that every log passes.
package eventstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"mcpledger/events"
)

// Log is an events.Log in memory, for tests. It forgets all when it goes.
type Log struct {
	now func() time.Time

	appending sync.Mutex // held while a batch is stored and shown

	mu          sync.Mutex
	changed     chan struct{} // closed and replaced at every change
	closed      bool
	all         []events.Event
	shown       int // how many of them OnCommit's functions were called with
	places      map[identity]events.Sequence
	contents    map[string][]byte
	subscribers []func([]events.Event)
}

var _ events.Log = (*Log)(nil)

type identity struct{ source, id string }

// NewLog returns an empty log that dates what is appended by now.
func NewLog(now func() time.Time) *Log {
	return &Log{
		now: now, changed: make(chan struct{}),
		places: map[identity]events.Sequence{}, contents: map[string][]byte{},
	}
}

// Append stores a batch, all or nothing.
func (l *Log) Append(ctx context.Context, batch []events.Event) (events.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return events.Receipt{}, err
	}
	l.appending.Lock()
	defer l.appending.Unlock()
	receipt, stored, err := l.store(batch)
	if err == nil && len(stored) > 0 {
		l.show(stored)
	}
	return receipt, err
}

// store adds the events of a batch that are new, and returns them.
func (l *Log) store(batch []events.Event) (receipt events.Receipt, stored []events.Event, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return events.Receipt{}, nil, events.ErrClosed
	}
	at := func(place events.Sequence) events.Event {
		if place == 0 {
			return events.Event{}
		}
		if n := events.Sequence(len(l.all)); place > n {
			return stored[place-n-1]
		}
		return l.all[place-1]
	}
	contents := map[string][]byte{}
	places := map[identity]events.Sequence{}
	for i, e := range batch {
		e, long, err := asRead(e)
		if err != nil {
			return events.Receipt{}, nil, err
		}
		who := identity{e.Source, e.ID}
		first, known := l.places[who]
		if !known {
			first, known = places[who]
		}
		if known {
			if !same(at(first), e) {
				return events.Receipt{}, nil, &events.ConflictError{Index: i, ID: e.ID, Source: e.Source}
			}
			receipt.Duplicates++
			receipt.Sequences = append(receipt.Sequences, first)
			continue
		}
		e.Sequence = events.Sequence(len(l.all) + len(stored) + 1)
		e.RecordedAt = l.now().Round(0).UTC()
		e.Hash = chain(at(e.Sequence-1), e)
		stored = append(stored, e)
		places[who] = e.Sequence
		receipt.Sequences = append(receipt.Sequences, e.Sequence)
		for _, c := range long {
			contents[c.Hash] = c.Body
		}
	}
	l.all = append(l.all, stored...)
	for _, e := range stored {
		l.places[identity{e.Source, e.ID}] = e.Sequence
	}
	for hash, body := range contents {
		l.contents[hash] = body
	}
	return receipt, stored, nil
}

// show calls those registered with OnCommit, then wakes those who follow.
func (l *Log) show(stored []events.Event) {
	l.mu.Lock()
	subscribers := l.subscribers
	l.mu.Unlock()
	for _, fn := range subscribers {
		fn(stored)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown += len(stored)
	l.wake()
}

func (l *Log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// asRead returns an event as a reader will see it, and its long texts.
func asRead(e events.Event) (events.Event, []events.Content, error) {
	if err := events.Validate(e); err != nil {
		return e, nil, err
	}
	raw, err := events.EncodeData(e.Data)
	if err != nil {
		return e, nil, fmt.Errorf("%w: %w", events.ErrInvalid, err)
	}
	if e.Data, err = events.DecodeData(e.Type, raw); err != nil {
		return e, nil, fmt.Errorf("%w: %w", events.ErrInvalid, err)
	}
	_, long, err := events.Externalize(e.Type, raw)
	if err != nil {
		return e, nil, fmt.Errorf("%w: %w", events.ErrInvalid, err)
	}
	e.Raw, e.Time = raw, e.Time.Round(0).UTC()
	return e, long, nil
}

// same reports whether two events with one identity record the same.
func same(a, b events.Event) bool {
	if !bytes.Equal(a.Raw, b.Raw) || !a.Time.Equal(b.Time) {
		return false
	}
	return a.Type == b.Type && a.Subject == b.Subject && a.DataVersion == b.DataVersion &&
		a.ConfigKey == b.ConfigKey && a.RunID == b.RunID && a.AttemptID == b.AttemptID &&
		a.CallID == b.CallID && a.Actor == b.Actor && a.TraceParent == b.TraceParent
}

func chain(before, e events.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %q %q %s", before.Hash, e.Sequence, e.ID, e.Source, e.Type, e.Raw))
	return hex.EncodeToString(sum[:])
}

// OnCommit registers fn to be called with the events of each commit.
func (l *Log) OnCommit(fn func(committed []events.Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers = append(l.subscribers, fn)
}

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

// Close ends the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.wake()
	}
	return nil
}
