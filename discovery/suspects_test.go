package discovery_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// abandon records an attempt that the end of the service cut short.
func (r *running) abandon(name events.ServerName, n int) {
	r.w.t.Helper()
	var batch []events.Event
	for _, d := range []events.Data{events.DiscoveryStarted{Trigger: events.TriggerStartup}, events.DiscoveryAbandoned{}} {
		batch = append(batch, events.Event{
			ID: fmt.Sprintf("%s-%s-%d", name, d.EventType(), n), Source: "mcpledger/test", Type: d.EventType(), Subject: name, Time: r.w.now(),
			DataVersion: 1, ConfigKey: r.server(name).ConfigKey, RunID: fmt.Sprint("cut", n), AttemptID: fmt.Sprint(name, n), Data: d,
		})
	}
	if _, err := r.log.Append(context.Background(), batch); err != nil {
		r.w.t.Fatal(err)
	}
}

// The two are tried in the order of their names, and the first takes its time.
func TestServersThatTheServiceEndedWithAreTriedApart(t *testing.T) {
	for _, c := range []struct {
		ends  int
		waits bool // until the first is done with, however long that takes
	}{{0, false}, {1, false}, {2, true}} {
		t.Run(fmt.Sprintf("after %d ends of the service", c.ends), func(t *testing.T) {
			w := newWorld(t)
			w.clock = newTestClock()
			pipe, open := gate(t)
			w.program("a-slow", mcptest.Fake{Gate: pipe})
			w.program("b-quick", mcptest.Fake{})
			r := &life{running: w.start()}
			open()
			r.rest()
			for n := range c.ends {
				r.abandon("a-slow", n)
				r.abandon("b-quick", n)
			}

			begun, err := r.Discover(t.Context(), []events.ServerName{"a-slow", "b-quick"}, "", "tester")
			if err != nil {
				t.Fatal(err)
			}
			if c.ends > 0 {
				r.await("a-slow", "the start", func(projections.Server) bool {
					return len(r.recorded("a-slow", events.TypeDiscoveryStarted)) == 2+c.ends
				})
				if !c.waits {
					w.clock.awaitWaiting(t, 1, 10*time.Second)
				}
				if got := len(r.recorded("b-quick", events.TypeDiscoveryStarted)); got != 1+c.ends {
					t.Errorf("the second was started beside the first: %d starts", got)
				}
				w.clock.advance(10 * time.Second)
			}
			succeeded := func(name events.ServerName) []events.Event { return r.recorded(name, events.TypeDiscoverySucceeded) }
			if !c.waits {
				r.await("b-quick", "an answer while the first is silent", func(projections.Server) bool { return len(succeeded("b-quick")) == 2 })
			}
			open()
			<-begun.Done
			slow, quick := succeeded("a-slow"), r.recorded("b-quick", events.TypeDiscoveryStarted)
			if after := quick[len(quick)-1].Sequence > slow[len(slow)-1].Sequence; after != c.waits {
				t.Errorf("the second was started after the first had answered: %v, want %v", after, c.waits)
			}
		})
	}
}
