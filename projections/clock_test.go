package projections_test

import (
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// setBack is how far a clock goes back that stood wrong for a day.
const setBack = 24 * time.Hour

// Whatever was recorded while the clock was ahead, once it is right again a server waits
// no longer than it would have waited then, and its attempts stay as far apart.
func TestAClockThatIsSetBackKeepsNoServerAway(t *testing.T) {
	failedCheck := events.DiscoveryFailed{Evidence: unauthorized.Evidence}
	for _, c := range []struct {
		story   string
		ahead   func() *history
		trigger events.Trigger
		outcome []events.Data
		next    time.Duration // from that outcome on
	}{
		{"one that failed", func() *history {
			h := newHistory()
			h.attempt(events.TriggerStartup, refused)
			return h
		}, events.TriggerRetry, []events.Data{refused}, 5 * time.Minute},
		{"one whose tools stay offered", func() *history {
			h := remote()
			h.attempt(events.TriggerCheck, refused)
			return h
		}, events.TriggerCheck, []events.Data{refused}, 20 * time.Second},
		{"one that is gated", func() *history {
			h := remote()
			h.call(unauthorized)
			return h
		}, events.TriggerCheck, []events.Data{failedCheck}, 2 * time.Minute},
		{"one that is ready", remote, events.TriggerCheck, []events.Data{succeeds}, 15 * time.Minute},
		{"one that is skipped", func() *history {
			h := newHistory()
			h.attempt(events.TriggerStartup, notFound)
			return h
		}, events.TriggerSkipExpired, []events.Data{notFound}, time.Hour},
		{"one whose list came empty", func() *history {
			h := remote()
			h.attempt(events.TriggerCheck, events.DiscoverySucceeded{CatalogueHash: "h0"})
			return h
		}, events.TriggerCheck, []events.Data{succeeds}, 15 * time.Minute},
	} {
		t.Run(c.story, func(t *testing.T) {
			h := c.ahead()
			h.wait(-setBack)
			due, ok := h.fold().Due(server, h.now)
			if !ok || due.At.After(h.now) || due.Trigger != c.trigger {
				t.Fatalf("due %v at %v, %s; it is %v, and %s would do", ok, due.At, due.Trigger, h.now, c.trigger)
			}
			h.attempt(c.trigger, c.outcome...)
			if wait := h.server(t).NextAttempt.Sub(h.now); !near(c.next, wait) {
				t.Errorf("the attempt after that comes in %s, want %s", wait, c.next)
			}
		})
	}
}

func TestAServiceThatStartedWithAClockAheadTriesWhatFailedBefore(t *testing.T) {
	h := newHistory()
	h.attempt(events.TriggerStartup, refused)
	h.wait(setBack)
	h.restart()
	h.wait(-setBack)
	if due, ok := h.fold().Due(server, h.now); !ok || due.At.After(h.now) || due.Trigger != events.TriggerStartup {
		t.Errorf("due %v at %v, %s; it is %v", ok, due.At, due.Trigger, h.now)
	}
}

// What a person set aside stays so, whatever the clock said when that was done.
func TestAPinHoldsWhenTheClockIsSetBack(t *testing.T) {
	h := remote()
	until := h.now.Add(time.Hour)
	h.about(events.SkipPinned{Reason: "moving", Until: until})
	h.wait(-setBack)
	if v := h.server(t); v.State != projections.StateSkipped || !v.NextAttempt.Equal(until) {
		t.Errorf("%s, next attempt at %v: %s", v.State, v.NextAttempt, v.Reason)
	}
}

func TestABrakeLetsGoWhenTheClockIsSetBack(t *testing.T) {
	h := remote()
	for range 10 {
		h.call(noSuchCity)
	}
	if !h.braked() {
		t.Fatal("ten failures in a row brake nothing")
	}
	h.wait(-setBack)
	if h.braked() {
		t.Error("calls stay refused until the clock is where it was")
	}
	h.call(noSuchCity)
	if !h.braked() {
		t.Error("one more failure is not enough")
	}
}

// The outage was while the clock was ahead; what fails after that fails by itself.
func TestAnOutageEndsWhenTheClockIsSetBack(t *testing.T) {
	h := newHistory()
	for _, other := range []events.ServerName{"mail", "maps", "news"} {
		h.attemptOn(other, refused)
	}
	h.attemptOn(server, succeeds)
	h.wait(-setBack)
	h.attemptOn(server, refused)
	if v := h.server(t); v.Streak == nil || v.Streak.Count != 1 {
		t.Errorf("the failure is not counted: %+v", v.Chain)
	}
}
