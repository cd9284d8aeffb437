package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Errors of the Engine, for errors.Is.
var (
	// ErrCatchingUp reports that the folds have not reached the head of the log yet.
	ErrCatchingUp = errors.New("catching up with the log")
	// ErrInFuture reports a moment beyond the head of the log.
	ErrInFuture = errors.New("moment beyond the head of the log")
)

// SnapshotStore keeps the latest snapshot of a fold, by version. Losing one costs
// time and nothing else. LoadSnapshot returns events.ErrNotFound when there is none.
type SnapshotStore interface {
	LoadSnapshot(ctx context.Context, version string) (events.Sequence, []byte, error)
	SaveSnapshot(ctx context.Context, version string, at events.Sequence, body []byte) error
}

// snapshotEvery is how many events may be folded before a new snapshot is due.
const snapshotEvery = 10_000

// Engine keeps a State current with a log, under the active rule set. It is safe
// for concurrent use.
type Engine struct {
	log   events.Log
	store SnapshotStore // nil: no snapshots

	mu      sync.RWMutex
	state   *State
	ready   bool
	pending []events.Event  // committed while catching up
	saved   events.Sequence // of the last snapshot
}

// NewEngine returns an engine that has folded nothing yet; CatchUp brings it to the
// head. store may be nil.
func NewEngine(log events.Log, set *rules.Set, store SnapshotStore) *Engine {
	e := &Engine{log: log, store: store, state: New(set)}
	log.OnCommit(e.committed)
	return e
}

// CatchUp folds from the latest usable snapshot to the head of the log. From then
// on the state is current whenever an append has returned.
func (e *Engine) CatchUp(ctx context.Context) error {
	state := e.restore(ctx)
	from := state.Sequence()
	for event, err := range e.log.Read(ctx, events.Query{After: from}) {
		if err != nil {
			return fmt.Errorf("catch up after %d: %w", state.Sequence(), err)
		}
		state.Apply(event)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.pending {
		if event.Sequence > state.Sequence() {
			state.Apply(event)
		}
	}
	e.state, e.pending, e.ready, e.saved = state, nil, true, from
	return nil
}

// restore returns the state of the latest snapshot, or the empty one.
func (e *Engine) restore(ctx context.Context) *State {
	set := e.state.rules
	if e.store == nil {
		return New(set)
	}
	at, body, err := e.store.LoadSnapshot(ctx, snapshotVersion(set))
	if err != nil {
		return New(set)
	}
	state, err := Restore(set, body)
	if err != nil || state.Sequence() != at {
		return New(set)
	}
	return state
}

func snapshotVersion(set *rules.Set) string { return FoldVersion + "/" + set.Hash() }

// committed folds what the log just stored. The log calls it in order.
func (e *Engine) committed(batch []events.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ready {
		e.pending = append(e.pending, batch...)
		return
	}
	for _, event := range batch {
		e.state.Apply(event)
	}
}

// SaveSnapshot stores the present state, if a store is there and force is set or
// enough was folded since the last one.
func (e *Engine) SaveSnapshot(ctx context.Context, force bool) error {
	e.mu.Lock()
	if !e.ready || e.store == nil || (!force && e.state.Sequence() < e.saved+snapshotEvery) {
		e.mu.Unlock()
		return nil
	}
	at, version := e.state.Sequence(), snapshotVersion(e.state.rules)
	body, err := e.state.Snapshot()
	e.saved = at
	e.mu.Unlock()
	if err != nil {
		return fmt.Errorf("snapshot at %d: %w", at, err)
	}
	return e.store.SaveSnapshot(ctx, version, at, body)
}

// Ready reports whether the folds have caught up.
func (e *Engine) Ready() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.ready
}

// View calls fn with the present state, which fn must not keep nor change. It
// returns ErrCatchingUp before the first catch-up is done.
func (e *Engine) View(fn func(*State)) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.ready {
		return ErrCatchingUp
	}
	fn(e.state)
	return nil
}

// Rules returns the active rule set.
func (e *Engine) Rules() *rules.Set {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.rules
}

// Moment is a past moment to ask about: a place in the log, or a time. The zero
// Moment is the present.
type Moment struct {
	Sequence events.Sequence
	Time     time.Time
}

// IsZero reports whether m is the present.
func (m Moment) IsZero() bool { return m == Moment{} }

// At returns the state at a moment, folded under set, and the now to ask it with.
// With a nil set it is the one that was active then. It returns ErrInFuture for a
// place beyond the head or a time after now.
func (e *Engine) At(ctx context.Context, m Moment, set *rules.Set, now time.Time) (*State, time.Time, error) {
	head, err := e.log.Head(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	upTo := head.Sequence
	switch {
	case m.Sequence > head.Sequence, m.Time.After(now):
		return nil, time.Time{}, ErrInFuture
	case m.Sequence > 0:
		upTo = m.Sequence
	case !m.Time.IsZero():
		if upTo, err = e.log.SequenceAt(ctx, m.Time); err != nil {
			return nil, time.Time{}, err
		}
		now = m.Time
	}
	under := set
	if under == nil {
		under = e.Rules()
	}
	state, err := e.foldTo(ctx, upTo, under)
	if err != nil {
		return nil, time.Time{}, err
	}
	if active := state.Active(); set == nil && active.Hash != "" && active.Hash != under.Hash() {
		if under, err = rules.Parse(active.Set, []byte(active.Text)); err != nil {
			return nil, time.Time{}, fmt.Errorf("rules active at %d: %w", upTo, err)
		}
		if state, err = e.foldTo(ctx, upTo, under); err != nil {
			return nil, time.Time{}, err
		}
	}
	if m.Sequence > 0 {
		now = state.RecordedAt()
	}
	return state, now, nil
}

// foldTo folds the events up to and including a place.
func (e *Engine) foldTo(ctx context.Context, upTo events.Sequence, set *rules.Set) (*State, error) {
	state := New(set)
	if upTo == 0 {
		return state, nil
	}
	for event, err := range e.log.Read(ctx, events.Query{Before: upTo + 1}) {
		if err != nil {
			return nil, fmt.Errorf("fold to %d: %w", upTo, err)
		}
		state.Apply(event)
	}
	return state, nil
}
