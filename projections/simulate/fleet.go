package simulate

import (
	"sort"
	"time"

	"mcpledger/events"
)

// Fleet is a service with its servers over a span of time.
type Fleet struct {
	Name    string
	Seed    uint64
	Start   time.Time
	Span    time.Duration
	Servers []Server
	// Restarts are when the service is stopped and started again, in order.
	Restarts []time.Time
}

// Server is one synthetic server.
type Server struct {
	Name      events.ServerName
	Kind      Kind
	Transport events.Transport
	// Broken are the spans in which it cannot be discovered, in order, none over
	// another.
	Broken []Breakage
	// CalledEvery is how often its tool is called while it works; 0: never. CallsBroken
	// are the spans in which the calls fail, in order, none over another.
	CalledEvery time.Duration
	CallsBroken []Breakage
	// SlowStarts is how many first starts use up a package runner's whole budget.
	SlowStarts int
	// Rotated are when the values of its variables change, in order.
	Rotated []time.Time
	// Released are when its list of tools changes, in order.
	Released []time.Time
}

// Breakage is a span in which a server fails, from From until before To.
type Breakage struct {
	From, To time.Time
	Failure  Failure
}

// Kind is what befalls a server.
type Kind string

// The kinds.
const (
	Healthy     Kind = "healthy"
	Dead        Kind = "dead"             // for ever
	Fixed       Kind = "fixed"            // broken from the first start, then repaired
	Flapping    Kind = "flapping"         // works and fails in turns, with changing errors
	Networked   Kind = "shared network"   // healthy, behind a network that goes down for all
	Unanswering Kind = "never answered"   // behind a network, and never reached
	SlowStart   Kind = "slow first start" // a package runner that downloads for long
	Expiring    Kind = "expiring token"   // until somebody writes a new one
	Released    Kind = "weekly release"   // a release now and then does not start
	Maintained  Kind = "maintenance"      // down for a while every day
	Called      Kind = "called"           // whose calls fail now and then, though it works
)

// Failure is one way to fail.
type Failure struct {
	Evidence events.Evidence
	Took     time.Duration
}

// breakageAt returns the span that covers t, nil if none does.
func breakageAt(spans []Breakage, t time.Time) *Breakage {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].To.After(t) })
	if i < len(spans) && !spans[i].From.After(t) {
		return &spans[i]
	}
	return nil
}

// passed returns how many of the times are not after t.
func passed(times []time.Time, t time.Time) int {
	return sort.Search(len(times), func(i int) bool { return times[i].After(t) })
}
