package sqlite_test

import (
	"testing"

	"mcpledger/events"
	"mcpledger/events/eventstest"
)

func TestLogPassesTheSuite(t *testing.T) {
	eventstest.TestLog(t, func(t *testing.T) events.Log { return open(t, t.TempDir()) })
}
