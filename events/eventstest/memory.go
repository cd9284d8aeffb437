// Package eventstest has what tests of and against a log need: a log in memory, a
// few makers of events, and TestLog, the suite that every log passes.
package eventstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
