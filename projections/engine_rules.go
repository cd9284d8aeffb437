package projections

import (
	"context"
	"fmt"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Activate puts set in force. It folds the log under set beside the live state, and
// once it has caught up has the activation recorded by record, which appends the
// payload as one event to the log. The live state is swapped in the turn in which
// the log takes that event: no event is judged by a set that was not active at its
// place. Activating the active set does nothing.
//
// It returns ErrBreaksLaw3 for a set that may not be activated, ErrCatchingUp before
// the first catch-up is done, and record's error; then the old set stays. The
// context given to record does not end with ctx, so that an activation is either in
// the log or not.
func (e *Engine) Activate(ctx context.Context, set *rules.Set, record func(context.Context, events.RulesActivated) error) error {
	if beyond := set.GatesBeyondLaw3(); len(beyond) > 0 {
		return fmt.Errorf("activate %s: %w (rule %s)", set.Name(), ErrBreaksLaw3, beyond[0].ID)
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	if e.Rules().Hash() == set.Hash() {
		return nil
	}
	if err := e.beside(ctx, &e.candidate, set); err != nil {
		return fmt.Errorf("activate %s: %w", set.Name(), err)
	}
	defer e.drop(&e.candidate)
	activation := events.RulesActivated{Set: set.Name(), Hash: set.Hash(), Text: set.Text()}
	if err := record(context.WithoutCancel(ctx), activation); err != nil {
		return fmt.Errorf("activate %s: %w", set.Name(), err)
	}
	return nil
}

// swap puts the candidate in the place of the live state when its set is the one
// just activated. A shadow under that set has nothing left to show.
func (e *Engine) swap(hash string) {
	if e.candidate == nil || e.candidate.state.rules.Hash() != hash {
		return
	}
	e.live, e.candidate = e.candidate, nil
	e.saved = 0 // no snapshot under the new set is stored yet
	if e.shadow != nil && e.shadow.state.rules.Hash() == hash {
		e.shadow = nil
	}
}

// beside folds the log under a set into a follower of its own, which is in step with
// the live one when beside returns: the follower is there before the log is read, so
// an event it is not told of is one that the log shows. It is called with changing
// held.
func (e *Engine) beside(ctx context.Context, place **follower, set *rules.Set) error {
	if !e.Ready() {
		return ErrCatchingUp
	}
	f := follow(New(set))
	e.mu.Lock()
	*place = f
	e.mu.Unlock()
	state, err := e.foldToHead(ctx, set)
	if err != nil {
		e.drop(place)
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f.join(state)
	return nil
}

// drop lets go of a follower.
func (e *Engine) drop(place **follower) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*place = nil
}

// foldToHead returns a state of the caller's own, folded to the end that the log has
// now.
func (e *Engine) foldToHead(ctx context.Context, set *rules.Set) (*State, error) {
	head, err := e.log.Head(ctx)
	if err != nil {
		return nil, err
	}
	return e.foldFromMark(ctx, head.Sequence, set)
}

// Compare returns what would be different now if set were active: was is as it is,
// now as it would be, both after the same event. Nothing changes. It returns
// ErrCatchingUp before the first catch-up is done.
func (e *Engine) Compare(ctx context.Context, set *rules.Set, now time.Time) ([]Difference, error) {
	if !e.Ready() {
		return nil, ErrCatchingUp
	}
	under, err := e.foldToHead(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", set.Name(), err)
	}
	is, err := e.foldTo(ctx, under.Sequence(), e.Rules())
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", set.Name(), err)
	}
	return Differences(is.Servers(now), under.Servers(now)), nil
}
