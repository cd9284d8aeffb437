package discovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// lateDisk is a log that stores the first event of a type and says that it ran out of
// time over it.
type lateDisk struct {
	events.Log
	once sync.Once
	late events.Type
	then chan<- events.Event // gets the next event of the same call; may be nil

	call atomic.Value // id of the call that was late
}

// Append implements events.Log.
func (l *lateDisk) Append(ctx context.Context, batch []events.Event) (receipt events.Receipt, err error) {
	receipt, err = l.Log.Append(ctx, batch)
	if err == nil && batch[0].Type == l.late {
		l.once.Do(func() { receipt, err = events.Receipt{}, context.DeadlineExceeded })
	}
	if e := batch[len(batch)-1]; l.then != nil && e.CallID != "" {
		if err != nil {
			l.call.Store(e.CallID)
		} else if e.CallID == l.call.Load() {
			l.then <- e
		}
	}
	return receipt, err
}

func TestAnOutcomeStoredLateIsRecordedOnce(t *testing.T) {
	w := newWorld(t)
	launches := w.program("healthy", mcptest.Fake{})
	w.through = func(log events.Log) events.Log { return &lateDisk{Log: log, late: events.TypeDiscoverySucceeded} }
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	r.await("healthy", "the end of the run", func(projections.Server) bool {
		return len(r.recorded("", events.TypeDiscoveryRunCompleted)) == 1
	})
	if got := r.recorded("healthy", events.TypeDiscoverySucceeded); len(got) != 1 {
		t.Errorf("recorded %d successes of one attempt", len(got))
	}
	wantLaunches(t, launches, 1, "an outcome that was stored late")
}

func TestAStartStoredLateGetsAnEnd(t *testing.T) {
	w := newWorld(t)
	launches := w.program("healthy", mcptest.Fake{})
	w.through = func(log events.Log) events.Log { return &lateDisk{Log: log, late: events.TypeDiscoveryStarted} }
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	wantLaunches(t, launches, 1, "the first start stored late, the second in time")
	r.stop()
	r = w.start()
	if got := r.recorded("healthy", events.TypeDiscoveryAbandoned); len(got) != 0 {
		t.Errorf("%d attempts found unfinished at the next start", len(got))
	}
	if got := r.recorded("healthy", events.TypeDiscoveryCancelled); len(got) != 1 {
		t.Errorf("%d cancellations recorded, want that of the start stored late", len(got))
	}
}

// briefly is a log that cannot be written when it is given the first events of a type.
type briefly struct {
	events.Log
	full  events.Type
	times int32 // how many of them

	seen atomic.Int32
}

// Append implements events.Log.
func (l *briefly) Append(ctx context.Context, batch []events.Event) (receipt events.Receipt, err error) {
	if batch[0].Type == l.full && l.seen.Add(1) <= l.times {
		return events.Receipt{}, events.ErrUnavailable
	}
	return l.Log.Append(ctx, batch)
}

func TestServersAreVerifiedThoughTheLogWasFullAtFirst(t *testing.T) {
	w := newWorld(t)
	launches := w.program("healthy", mcptest.Fake{})
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	r.stop()
	w.verify = true
	w.through = func(log events.Log) events.Log {
		return &briefly{Log: log, full: events.TypeDiscoveryRunStarted, times: 1}
	}
	w.start().await("healthy", "its verification", func(v projections.Server) bool {
		return v.Last != nil && v.Last.Trigger == events.TriggerVerify && v.Last.Outcome == projections.OutcomeSucceeded
	})
	wantLaunches(t, launches, 2, "verified once")
}

func TestADiskThatStaysFullIsToldOfOnce(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	w.look = time.Millisecond
	w.through = func(log events.Log) events.Log {
		return &briefly{Log: log, full: events.TypeDiscoveryRunStarted, times: 20}
	}
	w.start().awaitState("healthy", projections.StateReady)
	told := strings.Count(w.logged.String(), events.ErrUnavailable.Error())
	if told != 1 {
		t.Errorf("told %d times that no run could be started, want once:\n%s", told, w.logged)
	}
}

// fullStore has no room for marks at first.
type fullStore struct {
	projections.SnapshotStore
	times int // how often it has none

	seen int
	kept func() // called when there is room
}

// SaveMarks implements projections.SnapshotStore. The schedule alone calls it.
func (s *fullStore) SaveMarks(ctx context.Context, version string, bodies map[events.Sequence][]byte, drop []events.Sequence) error {
	if s.seen++; s.seen <= s.times {
		return events.ErrUnavailable
	}
	defer s.kept()
	return s.SnapshotStore.SaveMarks(ctx, version, bodies, drop)
}

func TestASnapshotThatFindsNoRoomIsToldOfOnce(t *testing.T) {
	w := newWorld(t)
	w.look = time.Millisecond
	kept := make(chan struct{})
	w.storing = func(store projections.SnapshotStore) projections.SnapshotStore {
		return &fullStore{SnapshotStore: store, times: 20, kept: sync.OnceFunc(func() { close(kept) })}
	}
	r := w.start()
	enough := make([]events.Event, 2100) // for a mark
	for i := range enough {
		d := events.SkipCleared{Reason: "looked at"}
		enough[i] = events.Event{ID: fmt.Sprint(i), Source: "mcpledger/test", Type: d.EventType(), Subject: "any", Time: w.now().UTC(), DataVersion: 1, Data: d}
	}
	if _, err := r.log.Append(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
	select {
	case <-kept:
	case <-time.After(patience):
		t.Fatal("no mark was stored")
	}
	if told := strings.Count(w.logged.String(), "snapshot not saved"); told != 1 {
		t.Errorf("told %d times that no snapshot could be saved, want once:\n%s", told, w.logged)
	}
}
