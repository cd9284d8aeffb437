package httpapi

import (
	"context"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// fleet is how all servers are at one moment.
type fleet struct {
	moment
	until   time.Time // when the next skip ends; zero when none holds
	servers []projections.Server
}

// holds reports whether the fleet is still true at now, with the log at that place:
// nothing was appended and no skip ended. What is shown of times that move with now
// has a resolution of seconds, so it is also bound to its second.
func (f *fleet) holds(at events.Sequence, now time.Time) bool {
	return f != nil && f.sequence == at && f.now.Truncate(time.Second).Equal(now.Truncate(time.Second)) &&
		!now.Before(f.now) && (f.until.IsZero() || now.Before(f.until))
}

// fleetCache holds the present fleet, since asking for a thousand servers takes
// longer than showing them.
type fleetCache struct {
	mu      sync.Mutex
	present *fleet
}

// fleetAt returns the servers at the moment asked for. The present ones are kept and
// shared between requests: nobody changes them.
func (a *API) fleetAt(ctx context.Context, at, setName string) (*fleet, error) {
	if at != "" || setName != "" {
		servers, m, err := a.serversOf(ctx, at, setName)
		return &fleet{moment: m, servers: servers}, err
	}
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	now := a.now()
	err := a.engine.View(func(s *projections.State) {
		if a.fleet.present.holds(s.Sequence(), now) {
			return
		}
		f := &fleet{
			moment:  moment{sequence: s.Sequence(), now: now, set: s.Rules()},
			servers: s.Servers(now),
		}
		f.until = firstEnd(f.servers)
		a.fleet.present = f
	})
	if err != nil {
		return nil, err
	}
	return a.fleet.present, nil
}

// firstEnd returns when the next of the servers' skips ends, zero when none does.
func firstEnd(servers []projections.Server) time.Time {
	var first time.Time
	for _, v := range servers {
		ends := []time.Time{firstEnd(v.Reported)}
		if v.Skip != nil {
			ends = append(ends, v.Skip.Until)
		}
		for _, end := range ends {
			if !end.IsZero() && (first.IsZero() || end.Before(first)) {
				first = end
			}
		}
	}
	return first
}
