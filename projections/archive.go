package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

const (
	// markEvery is how many events lie between two marks, at least and at first.
	markEvery = 2048
	// markBytes is how many bytes of a mark, before compression, are worth an event
	// of the interval: making a large mark takes longer than folding a few events.
	markBytes = 256
	// maxStoredBytes bounds the marks of one set.
	maxStoredBytes = 32 << 20
	// maxUnstoredBytes bounds the marks of all sets that are only in memory.
	maxUnstoredBytes = 8 << 20
	// gatheredBytes is how many bytes of marks a long fold keeps in memory before it
	// stores them.
	gatheredBytes = 2 << 20
	// maxTracks bounds for how many rule sets it is known where marks are.
	maxTracks = 4
)

// archive knows where snapshots of folds were kept along the log, so that any past
// moment is a short fold away. The snapshots are in a store but for those made lately.
// When they outgrow their bounds, the one that is missed least goes. Losing any of them
// costs time and nothing else.
type archive struct {
	store                    SnapshotStore // nil: all marks stay in memory
	mostStored, mostUnstored int           // bytes
	gathered                 int           // bytes in memory that a long fold stores

	mu       sync.Mutex
	every    events.Sequence // how far apart marks are made
	crowded  events.Sequence // the same while those in memory are many; 0: they are not
	tracks   []*track        // the least recently used first
	unstored int             // bytes of the marks that have a body here

	listing sync.Mutex // held while the store is asked for its marks
}

// track is where the marks under one rule set are, in order of sequence.
type track struct {
	rules  string // the set's hash
	marks  []mark
	listed bool // what the store has is among them
}

func newArchive(store SnapshotStore) *archive {
	return &archive{
		store: store, mostStored: maxStoredBytes, mostUnstored: maxUnstoredBytes, gathered: gatheredBytes, every: markEvery,
	}
}

// due reports whether no mark lies within the interval up to a place.
func (a *archive) due(hash string, at events.Sequence) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return at >= a.last(hash, at).at+max(a.every, a.crowded)
}

// last returns the last mark up to a place, the zero mark if there is none. It is
// called with mu held.
func (a *archive) last(hash string, upTo events.Sequence) mark {
	if t := a.find(hash); t != nil {
		n, found := t.search(upTo)
		if found {
			n++
		}
		if n > 0 {
			return t.marks[n-1]
		}
	}
	return mark{}
}

// find returns the track of a set, nil if there is none. It is called with mu held.
func (a *archive) find(hash string) *track {
	for _, t := range a.tracks {
		if t.rules == hash {
			return t
		}
	}
	return nil
}

// search returns where in the track a place is, or belongs.
func (t *track) search(at events.Sequence) (int, bool) {
	return slices.BinarySearchFunc(t.marks, at, func(m mark, at events.Sequence) int { return int(m.at - at) })
}

// before returns the last mark under set up to a place, the zero mark if there is none.
func (a *archive) before(set *rules.Set, upTo events.Sequence) mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last(set.Hash(), upTo)
}

// body returns what a mark under set was packed into. The error is errMarkLost when the
// store does not have it any more.
func (a *archive) body(ctx context.Context, set *rules.Set, m mark) ([]byte, error) {
	if m.body != nil {
		return m.body, nil
	}
	body, err := a.store.LoadMark(ctx, marksVersion(set.Hash()), m.at)
	if errors.Is(err, events.ErrNotFound) {
		err = errMarkLost
	}
	return body, err
}

// forget drops a mark that was lost.
func (a *archive) forget(set *rules.Set, m mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.find(set.Hash()); t != nil {
		if n, found := t.search(m.at); found {
			a.remove(t, n)
		}
	}
}

// add keeps a mark of a snapshot under the set with that hash.
func (a *archive) add(hash string, at events.Sequence, snapshot []byte) error {
	packed, err := packMark(snapshot)
	if err != nil {
		return fmt.Errorf("mark at %d: %w", at, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.every = max(a.every, events.Sequence(len(snapshot)/markBytes))
	t := a.track(hash)
	if n, found := t.search(at); !found {
		t.marks = slices.Insert(t.marks, n, mark{at: at, size: len(packed), body: packed})
		a.unstored += len(packed)
	}
	for a.unstored > a.mostUnstored {
		_, gap, ok := a.thin(a.tracks, mark.unstored)
		if !ok {
			break
		}
		a.crowded = max(a.crowded, gap)
	}
	return nil
}

// track returns the track of a set as the one used last, and lets the one used least
// recently go when there are too many. It is called with mu held.
func (a *archive) track(hash string) *track {
	t := a.find(hash)
	if t == nil {
		t = &track{rules: hash, listed: a.store == nil}
	}
	a.tracks = slices.DeleteFunc(a.tracks, func(one *track) bool { return one == t })
	if len(a.tracks) == maxTracks {
		for _, m := range a.tracks[0].marks {
			a.unstored -= len(m.body)
		}
		a.tracks = slices.Delete(a.tracks, 0, 1)
	}
	a.tracks = append(a.tracks, t)
	return t
}

// thin drops the mark, of those that may go, without which the gap between the marks
// beside it is the smallest, the first of those alike; the last mark of a track stays.
// New marks are to leave no smaller gap, which it returns too. It returns false when
// there is none to drop. It is called with mu held.
func (a *archive) thin(tracks []*track, may func(mark) bool) (mark, events.Sequence, bool) {
	var from *track
	var at int
	gap := events.Sequence(math.MaxInt64)
	for _, t := range tracks {
		var before events.Sequence
		for n := range len(t.marks) - 1 {
			if g := t.marks[n+1].at - before; g < gap && may(t.marks[n]) {
				from, at, gap = t, n, g
			}
			before = t.marks[n].at
		}
	}
	if from == nil {
		return mark{}, 0, false
	}
	return a.remove(from, at), gap, true
}

// remove takes a mark off its track. It is called with mu held.
func (a *archive) remove(t *track, n int) mark {
	m := t.marks[n]
	t.marks = slices.Delete(t.marks, n, n+1)
	a.unstored -= len(m.body)
	return m
}

// list takes up where the store has marks under a set, once; who comes meanwhile
// waits. What it cannot learn costs time.
func (a *archive) list(ctx context.Context, hash string) {
	a.listing.Lock()
	defer a.listing.Unlock()
	a.mu.Lock()
	t := a.track(hash)
	listed := t.listed
	a.mu.Unlock()
	if listed {
		return
	}
	sizes, err := a.store.Marks(ctx, marksVersion(hash))
	a.mu.Lock()
	defer a.mu.Unlock()
	t.listed = ctx.Err() == nil
	if err != nil {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(sizes)) {
		if n, found := t.search(at); !found {
			t.marks = slices.Insert(t.marks, n, mark{at: at, size: sizes[at]})
		}
	}
}

// save stores the marks that were made since the last time, once they come to so many
// bytes.
func (a *archive) save(ctx context.Context, least int) error {
	if a.store == nil {
		return nil
	}
	a.mu.Lock()
	var hashes []string
	if a.unstored > 0 && a.unstored >= least {
		for _, t := range a.tracks {
			if slices.ContainsFunc(t.marks, mark.unstored) {
				hashes = append(hashes, t.rules)
			}
		}
	}
	a.mu.Unlock()
	for _, hash := range hashes {
		a.list(ctx, hash) // else what is stored would be out of its bound
		bodies, dropped := a.unsaved(hash)
		if err := a.store.SaveMarks(ctx, marksVersion(hash), bodies, dropped); err != nil {
			return err
		}
		a.saved(hash, bodies)
	}
	return nil
}

// unsaved brings the marks of a set within their bound and returns which the store
// lacks, and which it is to drop.
func (a *archive) unsaved(hash string) (bodies map[events.Sequence][]byte, dropped []events.Sequence) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.track(hash)
	size := 0
	for _, m := range t.marks {
		size += m.size
	}
	for size > a.mostStored {
		m, gap, ok := a.thin([]*track{t}, func(mark) bool { return true })
		if !ok {
			break
		}
		a.every = max(a.every, gap)
		if size -= m.size; !m.unstored() {
			dropped = append(dropped, m.at)
		}
	}
	bodies = map[events.Sequence][]byte{}
	for _, m := range t.marks {
		if m.unstored() {
			bodies[m.at] = m.body
		}
	}
	return bodies, dropped
}

// saved lets go of bodies that the store has now.
func (a *archive) saved(hash string, bodies map[events.Sequence][]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crowded = 0
	t := a.find(hash)
	if t == nil {
		return
	}
	for i := range t.marks {
		if m := &t.marks[i]; m.unstored() && bodies[m.at] != nil {
			a.unstored -= len(m.body)
			m.body = nil
		}
	}
}
