package projections

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/gob"
	"fmt"
	"io"
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
	// maxArchiveBytes bounds the marks of all sets together.
	maxArchiveBytes = 12 << 20
	// maxTracks bounds for how many rule sets marks are kept.
	maxTracks = 4
)

// archive keeps snapshots of folds at intervals, so that any past moment is a short
// fold away. When they outgrow their bound, the one that is missed least goes. Losing
// the archive costs time and nothing else.
type archive struct {
	most int // bytes of all marks

	mu    sync.Mutex
	marks marks
	size  int
	fresh int // marks that were not stored yet

	loading sync.Mutex // held while the store is asked
	loaded  bool       // what the store has
}

// marks is what of an archive is stored.
type marks struct {
	Every  events.Sequence
	Tracks []track // the least recently used first
}

// track is the marks under one rule set, in order of sequence.
type track struct {
	Rules string // the set's hash
	Marks []mark
}

// mark is a compressed snapshot and its place.
type mark struct {
	At   events.Sequence
	Body []byte
}

func newArchive() *archive { return &archive{most: maxArchiveBytes, marks: marks{Every: markEvery}} }

// due reports whether no mark lies within the interval up to a place.
func (a *archive) due(hash string, at events.Sequence) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return at >= a.last(hash, at).At+a.marks.Every
}

// last returns the last mark up to a place, the zero mark if there is none. It is
// called with mu held.
func (a *archive) last(hash string, upTo events.Sequence) mark {
	for i := range a.marks.Tracks {
		if t := &a.marks.Tracks[i]; t.Rules == hash {
			n, found := t.search(upTo)
			if found {
				n++
			}
			if n > 0 {
				return t.Marks[n-1]
			}
		}
	}
	return mark{}
}

// search returns where in the track a place is, or belongs.
func (t *track) search(at events.Sequence) (int, bool) {
	return slices.BinarySearchFunc(t.Marks, at, func(m mark, at events.Sequence) int { return int(m.At - at) })
}

// before returns the last mark under set up to a place, the zero mark if there is none.
func (a *archive) before(set *rules.Set, upTo events.Sequence) mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last(set.Hash(), upTo)
}

// restore returns the state at the mark under its set, the empty one for the zero mark.
func (m mark) restore(set *rules.Set) (*State, error) {
	if m.At == 0 {
		return New(set), nil
	}
	body, err := inflate(m.Body)
	if err != nil {
		return nil, fmt.Errorf("mark at %d: %w", m.At, err)
	}
	return Restore(set, body)
}

// add keeps a mark of the state.
func (a *archive) add(s *State) error {
	body, err := s.Snapshot()
	if err != nil {
		return fmt.Errorf("mark at %d: %w", s.Sequence(), err)
	}
	packed, err := deflate(body)
	if err != nil {
		return fmt.Errorf("mark at %d: %w", s.Sequence(), err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks.Every = max(a.marks.Every, events.Sequence(len(body)/markBytes))
	if a.insert(s.rules.Hash(), mark{At: s.Sequence(), Body: packed}) {
		a.fresh++
	}
	return nil
}

// deflaters keeps compressors between marks, since a new one costs a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // of a constant level
	}
	return w
}}

func deflate(body []byte) ([]byte, error) {
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var packed bytes.Buffer
	w.Reset(&packed)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(packed.Bytes()), nil
}

func inflate(packed []byte) ([]byte, error) {
	return io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
}

// insert reports whether a mark was not there already. It is called with mu held.
func (a *archive) insert(hash string, m mark) bool {
	t := a.track(hash)
	n, found := t.search(m.At)
	if found {
		return false
	}
	t.Marks = slices.Insert(t.Marks, n, m)
	a.size += len(m.Body)
	for a.size > a.most && a.thin() {
	}
	return true
}

// track returns the track of a set as the one used last, and lets the one used
// least recently go when there are too many.
func (a *archive) track(hash string) *track {
	tracks := a.marks.Tracks
	i := slices.IndexFunc(tracks, func(t track) bool { return t.Rules == hash })
	t := track{Rules: hash}
	if i >= 0 {
		t = tracks[i]
		tracks = slices.Delete(tracks, i, i+1)
	}
	if len(tracks) == maxTracks {
		a.size -= tracks[0].bytes()
		tracks = slices.Delete(tracks, 0, 1)
	}
	a.marks.Tracks = append(tracks, t)
	return &a.marks.Tracks[len(a.marks.Tracks)-1]
}

func (t *track) bytes() int {
	n := 0
	for _, m := range t.Marks {
		n += len(m.Body)
	}
	return n
}

// thin drops the mark without which the gap between the marks beside it is the
// smallest, the first of those alike; the last mark of a track stays. New marks are to
// leave no smaller gap. It returns false when there is none to drop.
func (a *archive) thin() bool {
	var from *track
	var at int
	gap := events.Sequence(math.MaxInt64)
	for i := range a.marks.Tracks {
		t := &a.marks.Tracks[i]
		var before events.Sequence
		for n := range len(t.Marks) - 1 {
			if g := t.Marks[n+1].At - before; g < gap {
				from, at, gap = t, n, g
			}
			before = t.Marks[n].At
		}
	}
	if from == nil {
		return false
	}
	a.size -= len(from.Marks[at].Body)
	from.Marks = slices.Delete(from.Marks, at, at+1)
	a.marks.Every = max(a.marks.Every, gap)
	return true
}

// archiveVersion names the stored form of an archive.
const archiveVersion = "moments/" + FoldVersion

// loadArchive takes up the marks that are stored, once; who comes meanwhile waits.
func (e *Engine) loadArchive(ctx context.Context) {
	a := e.archive
	a.loading.Lock()
	defer a.loading.Unlock()
	if a.loaded || e.store == nil {
		return
	}
	_, body, err := e.store.LoadSnapshot(ctx, archiveVersion)
	a.loaded = ctx.Err() == nil
	if err != nil {
		return
	}
	var stored marks
	if gob.NewDecoder(bytes.NewReader(body)).Decode(&stored) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks.Every = max(a.marks.Every, stored.Every)
	for _, t := range stored.Tracks {
		for _, m := range t.Marks {
			a.insert(t.Rules, m)
		}
	}
}

// saveArchive stores the marks when a good part of them is new, or force is set.
func (e *Engine) saveArchive(ctx context.Context, at events.Sequence, force bool) error {
	e.loadArchive(ctx) // else what is stored would be lost
	a := e.archive
	a.mu.Lock()
	total := 0
	for i := range a.marks.Tracks {
		total += len(a.marks.Tracks[i].Marks)
	}
	due := a.fresh > 0 && (force || a.fresh >= max(8, total/8))
	var body bytes.Buffer
	var err error
	if due {
		err = gob.NewEncoder(&body).Encode(a.marks)
		a.fresh = 0
	}
	a.mu.Unlock()
	if err != nil || !due {
		return err
	}
	return e.store.SaveSnapshot(ctx, archiveVersion, at, body.Bytes())
}
