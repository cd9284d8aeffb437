package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Moment is a past moment to ask about: a place in the log, or a time. The zero
// Moment is the present.
type Moment struct {
	Sequence events.Sequence
	Time     time.Time
}

// IsZero reports whether m is the present.
func (m Moment) IsZero() bool { return m == Moment{} }

// At returns the state at a moment, folded under set, and the now to ask it with.
// With a nil set it is the one that was active then. Nobody may change the state; it
// is shared between callers. At returns ErrInFuture for a place beyond the head or a
// time after now, and ErrUnreadableRules when the set that was active then is one.
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
	if set == nil {
		if set, err = e.activeAt(ctx, upTo); err != nil {
			return nil, time.Time{}, err
		}
	}
	state, err := e.foldTo(ctx, upTo, set)
	if err != nil {
		return nil, time.Time{}, err
	}
	if m.Sequence > 0 {
		now = state.RecordedAt()
	}
	return state, now, nil
}

// activeAt returns the set that was active at a place. Before the first activation
// it is the one the engine began with.
func (e *Engine) activeAt(ctx context.Context, upTo events.Sequence) (*rules.Set, error) {
	last, err := e.activations.upTo(ctx, e.log, upTo)
	switch live := e.Rules(); {
	case err != nil:
		return nil, fmt.Errorf("rules active at %d: %w", upTo, err)
	case last == activation{}:
		return e.first, nil
	case last.hash == live.Hash():
		return live, nil
	}
	set, err := e.recent.set(last.hash, func() (*rules.Set, error) { return activated(ctx, e.log, last.at) })
	if err != nil {
		return nil, fmt.Errorf("rules active at %d: %w", upTo, err)
	}
	return set, nil
}

// activated reads the set whose activation has a place.
func activated(ctx context.Context, log events.Log, at events.Sequence) (*rules.Set, error) {
	for event, err := range log.Read(ctx, events.Query{After: at - 1, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		if d, ok := event.Data.(events.RulesActivated); ok {
			return setOf(d)
		}
	}
	return nil, fmt.Errorf("event %d is no activation: %w", at, events.ErrNotFound)
}

// activation is where a set was activated. The zero one is none.
type activation struct {
	at   events.Sequence
	hash string
}

// activations are where the log has activations, as far as it was looked through.
// They are few, and finding them may take a pass over the log.
type activations struct {
	mu     sync.Mutex // held over a pass: who else asks meanwhile needs what it finds
	all    []activation
	looked events.Sequence
}

// upTo returns the last activation up to a place.
func (a *activations) upTo(ctx context.Context, log events.Log, place events.Sequence) (activation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if place > a.looked {
		unseen := events.Query{Types: []events.Type{events.TypeRulesActivated}, After: a.looked, Before: place + 1}
		for event, err := range log.Read(ctx, unseen) {
			if err != nil {
				return activation{}, err
			}
			if d, ok := event.Data.(events.RulesActivated); ok {
				a.all = append(a.all, activation{event.Sequence, d.Hash})
				a.looked = event.Sequence
			}
		}
		a.looked = place
	}
	for _, one := range slices.Backward(a.all) {
		if one.at <= place {
			return one, nil
		}
	}
	return activation{}, nil
}

// foldTo returns the fold of the events up to and including a place.
func (e *Engine) foldTo(ctx context.Context, upTo events.Sequence, set *rules.Set) (*State, error) {
	if state := e.recent.state(set, upTo); state != nil {
		return state, nil
	}
	state, err := e.foldFromMark(ctx, upTo, set)
	if err != nil {
		return nil, err
	}
	e.recent.keep(state)
	return state, nil
}

// foldFromMark returns a state of the caller's own, folded up to a place from the last
// mark before it that is left.
func (e *Engine) foldFromMark(ctx context.Context, upTo events.Sequence, set *rules.Set) (*State, error) {
	e.archive.list(ctx, set.Hash())
	for {
		m := e.archive.before(set, upTo)
		state, err := e.foldFrom(ctx, m, upTo, set)
		if !errors.Is(err, errMarkLost) {
			return state, err
		}
		e.archive.forget(set, m)
	}
}

// foldFrom returns a state of the caller's own, folded up to a place from a mark, or
// from the first event for the zero mark. The events are read while the mark is
// restored.
func (e *Engine) foldFrom(ctx context.Context, m mark, upTo events.Sequence, set *rules.Set) (*State, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unfolded := e.unfolded(ctx, m.at, upTo)
	state := New(set)
	if m.at > 0 {
		body, err := e.archive.body(ctx, set, m)
		if err != nil {
			return nil, fmt.Errorf("mark at %d: %w", m.at, err)
		}
		if state, err = unpackMark(set, body); err != nil {
			return nil, fmt.Errorf("%w: mark at %d: %w", errMarkLost, m.at, err)
		}
	}
	return state, e.advance(ctx, state, upTo, unfolded, func() {})
}

// recentStates keeps the past states and sets asked for last, since the questions
// about one moment come together.
type recentStates struct {
	mu     sync.Mutex
	states []*State // the newest last
	sets   []*rules.Set
}

// maxRecent is how many states, and how many sets, are kept.
const maxRecent = 2

func newRecentStates() *recentStates { return &recentStates{} }

// state returns the state at a place under a set, nil if it is not kept.
func (r *recentStates) state(set *rules.Set, at events.Sequence) *State {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if s.Sequence() == at && s.rules.Hash() == set.Hash() {
			return s
		}
	}
	return nil
}

func (r *recentStates) keep(s *State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = appendBounded(r.states, s, maxRecent)
}

// set returns the set with that hash, parsed once while it is asked for: the lock is
// held meanwhile.
func (r *recentStates) set(hash string, parse func() (*rules.Set, error)) (*rules.Set, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sets {
		if s.Hash() == hash {
			return s, nil
		}
	}
	s, err := parse()
	if err != nil {
		return nil, err
	}
	r.sets = appendBounded(r.sets, s, maxRecent)
	return s, nil
}
