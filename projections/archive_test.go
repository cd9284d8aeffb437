package projections_test

import (
	"context"
	"maps"
	"testing"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// snapshots is a store in memory that counts what is done with its marks.
type snapshots struct {
	at    map[string]events.Sequence
	body  map[string][]byte
	marks map[string]map[events.Sequence][]byte

	loaded, saved int // marks
}

func newSnapshots() *snapshots {
	return &snapshots{at: map[string]events.Sequence{}, body: map[string][]byte{}, marks: map[string]map[events.Sequence][]byte{}}
}

func (s *snapshots) LoadSnapshot(_ context.Context, version string) (events.Sequence, []byte, error) {
	body, ok := s.body[version]
	if !ok {
		return 0, nil, events.ErrNotFound
	}
	return s.at[version], body, nil
}

func (s *snapshots) SaveSnapshot(_ context.Context, version string, at events.Sequence, body []byte) error {
	s.at[version], s.body[version] = at, body
	return nil
}

func (s *snapshots) Marks(_ context.Context, version string) (map[events.Sequence]int, error) {
	sizes := map[events.Sequence]int{}
	for at, body := range s.marks[version] {
		sizes[at] = len(body)
	}
	return sizes, nil
}

func (s *snapshots) LoadMark(_ context.Context, version string, at events.Sequence) ([]byte, error) {
	body, ok := s.marks[version][at]
	if !ok {
		return nil, events.ErrNotFound
	}
	s.loaded++
	return body, nil
}

func (s *snapshots) SaveMarks(_ context.Context, version string, bodies map[events.Sequence][]byte, drop []events.Sequence) error {
	if s.marks[version] == nil {
		s.marks[version] = map[events.Sequence][]byte{}
	}
	maps.Copy(s.marks[version], bodies)
	for _, at := range drop {
		delete(s.marks[version], at)
	}
	s.saved += len(bodies)
	return nil
}

// size returns how many bytes all marks have.
func (s *snapshots) size() (n int) {
	for _, marks := range s.marks {
		for _, body := range marks {
			n += len(body)
		}
	}
	return n
}

// lose drops the marks at the places that it is told.
func (s *snapshots) lose(lost func(at events.Sequence) bool) {
	for _, marks := range s.marks {
		maps.DeleteFunc(marks, func(at events.Sequence, _ []byte) bool { return lost(at) })
	}
}

// marking returns an engine over a log that has folded nothing yet and makes marks
// after so many events.
func marking(log events.Log, store projections.SnapshotStore, every events.Sequence, most int) *projections.Engine {
	e := projections.NewEngine(log, rules.Default(), store)
	e.Keep(every, most)
	return e
}

// wantFolds fails unless the state at each place is the fold of the log up to it.
func wantFolds(t *testing.T, e *projections.Engine, log *memory, places ...events.Sequence) {
	t.Helper()
	for _, at := range places {
		s, _, err := e.At(t.Context(), projections.Moment{Sequence: at}, nil, log.now)
		if err != nil {
			t.Fatal(err)
		}
		if want := refold(t, log, rules.Default(), at); snapshot(t, s) != want {
			t.Errorf("the fold to %d differs", at)
		}
	}
}

// What is kept of the past stays within its bound, stored or not, and still answers
// rightly.
func TestManyMomentsStayBounded(t *testing.T) {
	const most = 20_000
	log := fleet(t, 20, 250)
	places := []events.Sequence{1, 2047, 2048, 2049, 9000}
	t.Run("in a store", func(t *testing.T) {
		store := newSnapshots()
		e := marking(log, store, 64, most)
		if err := e.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.SaveSnapshot(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if kept := store.size(); kept < most/2 || kept > most {
			t.Errorf("the marks take %d bytes, want some and %d at most", kept, most)
		}
		wantFolds(t, e, log, places...)
	})
	t.Run("without one", func(t *testing.T) {
		e := marking(log, nil, 64, most)
		if err := e.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept := e.Unstored(); kept < most/2 || kept > most {
			t.Errorf("the marks take %d bytes, want some and %d at most", kept, most)
		}
		wantFolds(t, e, log, places...)
	})
}

func TestALongCatchUpStoresItsMarksOnTheWay(t *testing.T) {
	const most = 40_000
	log := fleet(t, 20, 50)
	store := newSnapshots()
	e := marking(log, store, 64, most)
	if err := e.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if store.saved == 0 || e.Unstored() > most/2 {
		t.Errorf("%d marks are stored and %d bytes of them are not, want hardly more than %d", store.saved, e.Unstored(), most/4)
	}
}

// A question about the past reads the one mark before it, and writes nothing: what it
// leaves is stored with the next snapshot, once.
func TestAQuestionReadsOneMark(t *testing.T) {
	log := fleet(t, 5, 40)
	store := newSnapshots()
	e := marking(log, store, 10, 1<<20)
	if err := e.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.SaveSnapshot(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	store.lose(func(at events.Sequence) bool { return at > 100 && at < 300 })
	saved := store.saved

	e = marking(log, store, 10, 1<<20)
	if err := e.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if store.loaded != 0 {
		t.Errorf("catching up read %d marks", store.loaded)
	}
	wantFolds(t, e, log, 299)
	if store.loaded != 1 {
		t.Errorf("a question read %d marks, want 1", store.loaded)
	}
	if store.saved != saved {
		t.Errorf("a question stored %d marks", store.saved-saved)
	}
	if err := e.SaveSnapshot(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if store.saved == saved {
		t.Error("the marks that a question left are not stored")
	}
	saved = store.saved
	if err := e.SaveSnapshot(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if store.saved != saved || e.Unstored() != 0 {
		t.Errorf("%d marks are stored again, %d bytes wait", store.saved-saved, e.Unstored())
	}
}

// Losing marks costs time and nothing else, also under an engine that knew of them.
func TestLostMarksChangeNoAnswer(t *testing.T) {
	for name, lose := range map[string]func(*snapshots){
		"the last ones": func(s *snapshots) { s.lose(func(at events.Sequence) bool { return at > 200 }) },
		"all":           func(s *snapshots) { s.lose(func(events.Sequence) bool { return true }) },
		"damaged": func(s *snapshots) {
			for _, marks := range s.marks {
				for at, body := range marks {
					marks[at] = body[:len(body)/2]
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := fleet(t, 5, 40)
			store := newSnapshots()
			e := marking(log, store, 10, 1<<20)
			if err := e.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := e.SaveSnapshot(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			lose(store)
			clear(store.body)
			wantFolds(t, e, log, 399, 250, 199, 7)
			e = marking(log, store, 10, 1<<20)
			if err := e.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantFolds(t, e, log, 399, 250, 199, 7)
		})
	}
}
