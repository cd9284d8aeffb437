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
// them are being tried. They have the whole time that a start may take.
func (w *world) hanging(servers int) *running {
	w.t.Helper()
	for i := range servers {
		w.program(fmt.Sprintf("hangs-%d", i), mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
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
