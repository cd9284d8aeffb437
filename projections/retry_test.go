package projections_test

import (
	"testing"
	"time"

	"mcpledger/events"
)

// near reports whether a wait is the one that is wanted, but for its spread and the
// seconds since the last attempt.
func near(want, got time.Duration) bool { return got > want*8/10 && got < want*12/10 }

// Whoever mends a server and has it tried again and again does not push the service's
// own next attempt further and further away.
func TestOnlyTheServicesOwnAttemptsSpaceItsRetries(t *testing.T) {
	for _, asked := range []events.Trigger{events.TriggerManual, events.TriggerOnUse} {
		t.Run(string(asked), func(t *testing.T) {
			h := newHistory()
			h.attempt(events.TriggerStartup, refused)
			for range 4 {
				h.attempt(asked, refused)
			}
			if wait := h.server(t).NextAttempt.Sub(h.now); !near(time.Minute, wait) {
				t.Errorf("after one attempt of its own the service waits %s, want a minute", wait)
			}
			h.attempt(events.TriggerRetry, refused)
			if wait := h.server(t).NextAttempt.Sub(h.now); !near(5*time.Minute, wait) {
				t.Errorf("after two attempts of its own the service waits %s, want 5 minutes", wait)
			}
		})
	}
}

// A start that is stopped at once says nothing of how long a server hangs.
func TestHowLongAttemptsLastedInVain(t *testing.T) {
	timeout := func(ms int64) events.DiscoveryFailed {
		return events.DiscoveryFailed{Evidence: events.Evidence{Phase: events.PhaseHandshake, ErrorKind: events.KindTimeoutStart, ElapsedMS: ms}}
	}
	stopped := func(ms int64) events.DiscoveryCancelled { return events.DiscoveryCancelled{ElapsedMS: ms} }
	h := newHistory()
	for _, c := range []struct {
		outcome events.Data
		want    time.Duration
	}{
		{stopped(9_000), 9 * time.Second},
		{timeout(60_000), time.Minute},
		{stopped(100), time.Minute},
		{timeout(50), 50 * time.Millisecond},
		{stopped(7_000), 7 * time.Second},
		{succeeds, 0},
	} {
		h.attempt(events.TriggerRetry, c.outcome)
		if got := h.server(t).InVain; got != c.want {
			t.Errorf("after %+v it is %s, want %s", c.outcome, got, c.want)
		}
	}
}
