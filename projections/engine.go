package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Errors of the Engine, for errors.Is.
var (
	// ErrCatchingUp reports that the folds have not reached the head of the log yet.
	ErrCatchingUp = errors.New("catching up with the log")
	// ErrInFuture reports a moment beyond the head of the log.
	ErrInFuture = errors.New("moment beyond the head of the log")
	// ErrBreaksLaw3 reports a rule set that gates connections on more than 401, 403,
	// scope and missing credentials. It may be replayed and shadowed, not activated.
	ErrBreaksLaw3 = errors.New("rule set gates on more than 401, 403, scope and missing credentials")
)

// SnapshotStore keeps the latest snapshot of a fold, by version, and beside it marks:
// snapshots along the log, by version and place. Losing one costs time and nothing
// else. LoadSnapshot and LoadMark return events.ErrNotFound when there is none. Marks
// returns the size of each mark of a version, in bytes; SaveMarks keeps the bodies and
// drops the marks at other places.
type SnapshotStore interface {
	LoadSnapshot(ctx context.Context, version string) (events.Sequence, []byte, error)
	SaveSnapshot(ctx context.Context, version string, at events.Sequence, body []byte) error

	Marks(ctx context.Context, version string) (map[events.Sequence]int, error)
	LoadMark(ctx context.Context, version string, at events.Sequence) ([]byte, error)
	SaveMarks(ctx context.Context, version string, bodies map[events.Sequence][]byte, drop []events.Sequence) error
}

// snapshotEvery is how many events may be folded before a new snapshot is due.
const snapshotEvery = 10_000

// Engine keeps a State current with a log, under the active rule set, and answers
// for any past moment. It is safe for concurrent use.
type Engine struct {
	log      events.Log
	store    SnapshotStore // nil: no snapshots
	first    *rules.Set    // in force until the log has another activated
	archive  *archive
	recent   *recentStates
	changing sync.Mutex // one change of the folds at a time

	activations activations

	mu        sync.RWMutex
	live      *follower
	shadow    *follower       // of the set that runs beside the active one; nil: none does
	candidate *follower       // of the set that is being activated; nil: none is
	saved     events.Sequence // of the last snapshot
}

// NewEngine returns an engine that has folded nothing yet; CatchUp brings it to the
// head. set is the one in force: the last activated, if the log has an activation.
// store may be nil.
func NewEngine(log events.Log, set *rules.Set, store SnapshotStore) *Engine {
	e := &Engine{
		log: log, store: store, first: set, archive: newArchive(store), recent: newRecentStates(), live: follow(New(set)),
	}
	log.OnCommit(e.committed)
	return e
}

// CatchUp folds from the latest usable snapshot to the head of the log. From then
// on the state is current whenever an append has returned.
func (e *Engine) CatchUp(ctx context.Context) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	head, err := e.log.Head(ctx) // what comes after it, committed is told of
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	set := e.Rules()
	e.archive.list(ctx, set.Hash())
	state, err := e.restore(ctx, set)
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	from := state.Sequence()
	// A fold from far back leaves more marks than memory is meant for. One that cannot
	// be stored costs time later.
	stored := func() { _ = e.archive.save(ctx, e.archive.gathered) }
	if err := e.advance(ctx, state, head.Sequence, e.unfolded(ctx, from, head.Sequence), stored); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.saved = from
	e.live.join(state)
	return nil
}

// restore returns the state of the latest snapshot, or the empty one. The snapshot is
// a mark too, where one is due.
func (e *Engine) restore(ctx context.Context, set *rules.Set) (*State, error) {
	if e.store == nil {
		return New(set), nil
	}
	at, body, err := e.store.LoadSnapshot(ctx, snapshotVersion(set))
	if err != nil {
		return New(set), nil
	}
	state, err := Restore(set, body)
	if err != nil || state.Sequence() != at {
		return New(set), nil
	}
	if !e.archive.due(set.Hash(), at) {
		return state, nil
	}
	return state, e.archive.add(set.Hash(), at, body)
}

func snapshotVersion(set *rules.Set) string { return FoldVersion + "/" + set.Hash() }

// pieceEvents is how many events are read ahead at a time.
const pieceEvents = 256

// unfolded begins to read the events after a place, up to another one, that a state
// rests on.
func (e *Engine) unfolded(ctx context.Context, after, upTo events.Sequence) iter.Seq2[[]events.Event, error] {
	return events.Ahead(ctx, e.log, events.Query{After: after, Before: upTo + 1, Without: restsOnNone, Bare: true}, pieceEvents)
}

// advance folds what is unfolded of the events that follow state's place, so that the
// state is the one at upTo, and leaves marks on the way. After each piece it calls
// between.
func (e *Engine) advance(
	ctx context.Context, state *State, upTo events.Sequence, unfolded iter.Seq2[[]events.Event, error], between func(),
) error {
	for piece, err := range unfolded {
		if err != nil {
			return fmt.Errorf("fold after %d: %w", state.Sequence(), err)
		}
		for i := range piece {
			state.Apply(piece[i])
			if err := e.mark(state); err != nil {
				return err
			}
		}
		between()
	}
	if state.Sequence() >= upTo {
		return nil
	}
	for event, err := range e.log.Read(ctx, events.Query{After: upTo - 1, Limit: 1, Bare: true}) {
		if err != nil {
			return fmt.Errorf("fold event %d: %w", upTo, err)
		}
		state.Apply(event)
	}
	return nil
}

// mark keeps the state in the archive if the last one kept lies far enough back.
func (e *Engine) mark(state *State) error {
	hash, at := state.rules.Hash(), state.Sequence()
	if !e.archive.due(hash, at) {
		return nil
	}
	snapshot, err := state.Snapshot()
	if err != nil {
		return fmt.Errorf("mark at %d: %w", at, err)
	}
	return e.archive.add(hash, at, snapshot)
}

// committed folds what the log just stored. The log calls it in order, in its
// writer's turn, so a set that was activated judges everything after its event.
func (e *Engine) committed(batch []events.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range batch {
		for _, f := range []*follower{e.live, e.shadow, e.candidate} {
			f.take(event)
		}
		if activated, ok := event.Data.(events.RulesActivated); ok {
			e.swap(activated.Hash)
		}
	}
	if e.live.current {
		// A mark that is not made costs time later, and nothing else.
		_ = e.mark(e.live.state)
	}
}

// SaveSnapshot stores the present state, if force is set or enough was folded since the
// last time, and the marks of past ones that were made since. Without a store it does
// nothing.
func (e *Engine) SaveSnapshot(ctx context.Context, force bool) error {
	if e.store == nil {
		return nil
	}
	at, body, set, err := e.takeSnapshot(force)
	if err != nil {
		return err
	}
	if set != nil {
		if err := e.store.SaveSnapshot(ctx, snapshotVersion(set), at, body); err != nil {
			return err
		}
	}
	return e.archive.save(ctx, 0)
}

// takeSnapshot returns the present state's snapshot; no set when none is due.
func (e *Engine) takeSnapshot(force bool) (events.Sequence, []byte, *rules.Set, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	state := e.live.state
	if !e.live.current || (!force && state.Sequence() < e.saved+snapshotEvery) {
		return 0, nil, nil, nil
	}
	body, err := state.Snapshot()
	if err != nil {
		return 0, nil, nil, fmt.Errorf("snapshot at %d: %w", state.Sequence(), err)
	}
	e.saved = state.Sequence()
	return e.saved, body, state.rules, nil
}

// Ready reports whether the folds have caught up.
func (e *Engine) Ready() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.live.current
}

// View calls fn with the present state, which fn must not keep nor change. It
// returns ErrCatchingUp before the first catch-up is done.
func (e *Engine) View(fn func(*State)) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.live.current {
		return ErrCatchingUp
	}
	fn(e.live.state)
	return nil
}

// Rules returns the active rule set.
func (e *Engine) Rules() *rules.Set {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.live.state.rules
}

// follower is a State that the log's commits reach. While the state is folded from
// the log's past elsewhere, what is committed waits.
type follower struct {
	state   *State
	current bool
	waiting []events.Event
}

// follow returns a follower that is not current yet.
func follow(s *State) *follower { return &follower{state: s} }

// take folds an event that was committed. A nil follower takes nothing.
func (f *follower) take(e events.Event) {
	switch {
	case f == nil:
	case !f.current:
		f.waiting = append(f.waiting, e)
	case e.Sequence > f.state.Sequence():
		f.state.Apply(e)
	}
}

// join makes f current with a state that was folded from the log since f follows,
// up to any place, and what was committed meanwhile.
func (f *follower) join(s *State) {
	waiting := f.waiting
	f.state, f.current, f.waiting = s, true, nil
	for _, e := range waiting {
		f.take(e)
	}
}
