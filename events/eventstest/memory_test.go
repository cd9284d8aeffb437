package eventstest_test

import (
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/events/eventstest"
)

func TestMemoryLogPassesTheSuite(t *testing.T) {
	eventstest.TestLog(t, func(*testing.T) events.Log { return eventstest.NewLog(time.Now) })
}
