package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// fleet is how the servers stand, looked at anew when something was recorded that
// may have changed it, or a skip has run out. Calls that end well change nothing here,
// so the fleet costs them nothing.
type fleet struct {
	gateway *Gateway
	changes atomic.Int64 // counts what may have changed the fleet

	mu      sync.Mutex
	seen    int64 // changes when servers was read
	current *standing
	waiting chan struct{} // closed at the next change
}

// standing is the fleet at one moment. It does not change.
type standing struct {
	servers []projections.Server // sorted by name
	named   map[string]route     // tools whose name holds a hash
	until   time.Time            // when the first skip in it runs out; zero: none does
}

// past reports whether the fleet may stand otherwise by now with nothing recorded.
func (s *standing) past(now time.Time) bool { return !s.until.IsZero() && !now.Before(s.until) }

// server returns one server; false when none of that name is configured.
func (s *standing) server(name events.ServerName) (projections.Server, bool) {
	i, found := slices.BinarySearchFunc(s.servers, name, func(v projections.Server, name events.ServerName) int {
		return cmp.Compare(v.Name, name)
	})
	if !found {
		return projections.Server{}, false
	}
	return s.servers[i], true
}

// route is where a name leads.
type route struct {
	server events.ServerName
	name   string // the server's own
}

func newFleet(g *Gateway) *fleet {
	return &fleet{gateway: g, seen: -1, waiting: make(chan struct{})}
}

// committed looks at what was recorded. The log calls it.
func (f *fleet) committed(batch []events.Event) {
	touched := false
	for _, e := range batch {
		switch e.Type {
		case events.TypeSessionOpened:
			opened, _ := e.Data.(events.SessionOpened)
			f.gateway.levels.forget(e.Subject, opened.Client)
			f.gateway.subscriptions.renew(e.Subject)
		case events.TypeSessionDiscarded:
			f.gateway.subscriptions.renew(e.Subject)
		case events.TypeToolCallStarted, events.TypeToolCallSucceeded, events.TypeToolCallRefused, events.TypeToolCallAbandoned:
		default:
			touched = true
		}
	}
	if touched {
		f.touch()
	}
}

// touch notes that the fleet may have changed.
func (f *fleet) touch() {
	f.changes.Add(1)
	f.wake()
}

// wake has those look who wait for a change: of the fleet, or of something that its
// servers list.
func (f *fleet) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.waiting)
	f.waiting = make(chan struct{})
}

// changed returns a channel that is closed at the next change.
func (f *fleet) changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// now returns how the servers stand. The error is that of folds which have not
// caught up.
func (f *fleet) now() (*standing, error) {
	changes, now := f.changes.Load(), f.gateway.now()
	f.mu.Lock()
	if f.seen == changes && !f.current.past(now) {
		defer f.mu.Unlock()
		return f.current, nil
	}
	f.mu.Unlock()
	s := &standing{named: map[string]route{}}
	if err := f.gateway.state(func(st *projections.State) { s.servers = st.Servers(now) }); err != nil {
		return nil, err
	}
	for _, v := range s.servers {
		if v.Skip != nil && v.Skip.Until.After(now) && (s.until.IsZero() || v.Skip.Until.Before(s.until)) {
			s.until = v.Skip.Until
		}
		if v.Catalogue == nil {
			continue
		}
		for _, tool := range v.Catalogue.Names {
			if name, plain := f.gateway.namer.name(v.Name, tool); !plain {
				s.named[name] = route{v.Name, tool}
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if changes >= f.seen {
		f.seen, f.current = changes, s
	}
	return s, nil
}

// contentKey is equal for lists of tools that look the same to clients.
func contentKey(v projections.Server) string {
	sum := sha256.New()
	sum.Write([]byte(v.Name))
	sum.Write([]byte{0})
	sum.Write([]byte(v.Catalogue.Content))
	for _, patterns := range [][]string{v.Entry.Settings.Tools.Allow, v.Entry.Settings.Tools.Deny} {
		sum.Write([]byte{1})
		for _, p := range patterns {
			sum.Write([]byte(p))
			sum.Write([]byte{0})
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
