package discovery_test

import (
	"fmt"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// hanging starts the service with servers that never answer, and returns it when all of
// them are being tried, for which they have longer than a test takes.
func (w *world) hanging(servers int) *running {
	w.t.Helper()
	for i := range servers {
		name := fmt.Sprintf("hangs-%d", i)
		w.program(name, mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
		w.entries[name]["mcpledger"] = map[string]any{"timeouts": map[string]any{"start": "1h"}}
	}
	r := w.start()
	for i := range servers {
		name := events.ServerName(fmt.Sprintf("hangs-%d", i))
		r.await(name, "its attempt", func(projections.Server) bool { return len(r.recorded(name, events.TypeDiscoveryStarted)) == 1 })
	}
	return r
}

func TestServersThatHangKeepNobodyFromTheirTurn(t *testing.T) {
	w := newWorld(t)
	w.parallel, w.giveWay = 2, time.Millisecond
	r := w.hanging(4)
	w.program("healthy", mcptest.Fake{})
	w.writeConfig()
	r.reload()
	r.awaitState("healthy", projections.StateReady)
	for i := range 4 {
		if v := r.server(events.ServerName(fmt.Sprintf("hangs-%d", i))); v.State != projections.StateDiscovering {
			t.Errorf("%s is %s meanwhile, want it to have the time that is its own", v.Name, v.State)
		}
	}
}

func TestAttemptsThatLastLongAreBoundedToo(t *testing.T) {
	w := newWorld(t)
	w.parallel, w.giveWay = 1, time.Millisecond
	r := w.hanging(4) // one has its turn, three gave it away
	w.program("waits", mcptest.Fake{})
	w.writeConfig()
	r.reload()
	r.await("waits", "its place in a run", func(projections.Server) bool {
		return len(r.recorded("", events.TypeDiscoveryRunStarted)) == 2
	})
	delete(w.entries, "hangs-0")
	w.writeConfig()
	r.reload()
	r.awaitState("waits", projections.StateReady)
	given := r.recorded("hangs-0", events.TypeDiscoveryCancelled)
	taken := r.recorded("waits", events.TypeDiscoveryStarted)
	if len(given) != 1 || len(taken) != 1 || taken[0].Sequence < given[0].Sequence {
		t.Errorf("a fifth attempt began while four hung, where one is made at a time: ended %v, begun %v", given, taken)
	}
}

// awaitStarts waits until so many attempts were begun in the whole life of the log.
func (r *running) awaitStarts(n int) {
	r.w.t.Helper()
	r.await("hangs-0", fmt.Sprintf("%d starts of all", n), func(projections.Server) bool {
		return len(r.recorded("", events.TypeDiscoveryStarted)) >= n
	})
}

func TestServersThatHungBeforeLeaveRoomForOthers(t *testing.T) {
	w := newWorld(t)
	w.parallel, w.giveWay = 1, time.Millisecond
	w.hanging(4).stop()
	r := w.start()
	r.awaitStarts(4 + 2)
	w.program("new", mcptest.Fake{})
	r.reload()
	r.awaitState("new", projections.StateReady)
	if n := len(r.recorded("", events.TypeDiscoveryStarted)); n != 4+2+1 {
		t.Errorf("%d attempts were begun since the start, want those on two that hung and on the new one", n-4)
	}
}

func TestAPersonNeedNotWaitForWhatHungBefore(t *testing.T) {
	w := newWorld(t)
	w.parallel, w.giveWay = 2, time.Millisecond
	w.hanging(6).stop()
	w.held = make(chan struct{})
	defer close(w.held)
	r := w.start()
	names := make([]events.ServerName, 6)
	for i := range names {
		names[i] = events.ServerName(fmt.Sprintf("hangs-%d", i))
	}
	for _, asked := range [][]events.ServerName{names[:5], names[5:]} {
		if _, err := r.Discover(t.Context(), asked, "", "tester"); err != nil {
			t.Fatal(err)
		}
	}
	r.await("hangs-5", "its second start", func(projections.Server) bool {
		return len(r.recorded("hangs-5", events.TypeDiscoveryStarted)) == 2
	})
}
