package projections_test

import (
	"testing"
	"time"

	"mcpledger/events"
)

func (h *history) braked() bool {
	_, held := h.fold().Braked(server, "anna", "now", "a", h.now)
	return held
}

func TestTheBrake(t *testing.T) {
	fails := func(n int, pause time.Duration) func(*history) {
		return func(h *history) {
			for range n {
				h.call(noSuchCity)
				h.wait(pause)
			}
		}
	}
	answers := func(h *history) { h.call(events.ToolCallSucceeded{Tool: "now"}) }
	breaks := func(h *history) {
		h.call(events.ToolCallFailed{Tool: "now", Evidence: events.Evidence{ErrorKind: events.KindReset}})
	}
	waits := func(d time.Duration) func(*history) { return func(h *history) { h.wait(d) } }
	for name, c := range map[string]struct {
		steps []func(*history)
		held  bool
	}{
		"nine failures are not enough":               {[]func(*history){fails(9, 0)}, false},
		"ten in a row are":                           {[]func(*history){fails(10, 0)}, true},
		"an answer in between starts at zero":        {[]func(*history){fails(9, 0), answers, fails(9, 0)}, false},
		"a broken connection does not count":         {[]func(*history){fails(9, 0), breaks}, false},
		"it lets go after a minute":                  {[]func(*history){fails(10, 0), waits(time.Minute)}, false},
		"then one more failure is enough":            {[]func(*history){fails(10, 0), waits(time.Minute), fails(1, 0)}, true},
		"but not an hour later":                      {[]func(*history){fails(10, 0), waits(time.Hour), fails(1, 0)}, false},
		"ten over more than ten minutes are patient": {[]func(*history){fails(10, 90*time.Second)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := remote()
			for _, step := range c.steps {
				step(h)
			}
			if got := h.braked(); got != c.held {
				t.Errorf("braked %v, want %v", got, c.held)
			}
		})
	}
}
