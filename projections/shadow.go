package projections

import (
	"context"
	"fmt"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Difference is a server that two states see differently at the same moment. A side
// that does not know the server has its zero value.
type Difference struct {
	Server   events.ServerName
	Was, Now Server
}

// Differences returns the configured servers whose state, skip, gate or decision at
// now differ between two states, by name.
func Differences(was, now *State, at time.Time) []Difference {
	var all []Difference
	before := map[events.ServerName]Server{}
	for _, v := range was.Servers(at) {
		before[v.Name] = v
	}
	after := map[events.ServerName]Server{}
	for _, v := range now.Servers(at) {
		after[v.Name] = v
		if old, known := before[v.Name]; !known || !alike(old, v) {
			before[v.Name] = old
			continue
		}
		delete(before, v.Name)
	}
	for _, name := range sortedKeys(before) {
		all = append(all, Difference{Server: name, Was: before[name], Now: after[name]})
	}
	return all
}

// alike reports whether a server stands the same on two sides.
func alike(a, b Server) bool {
	return a.State == b.State && a.Decision == b.Decision && alikeSkips(a.Skip, b.Skip) && alikeGates(a.Gate, b.Gate)
}

func alikeSkips(a, b *Skip) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Cause.Class == b.Cause.Class && a.Since.Equal(b.Since) && a.Until.Equal(b.Until)
}

func alikeGates(a, b *Gate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.EventID == b.EventID
}

// Shadow has a set run beside the active one, in the place of any other, until it is
// activated or dropped. It sees what happens and decides nothing; no start of the
// service brings it back. Any set may be shadowed, even one that may not be
// activated. It returns ErrCatchingUp before the first catch-up is done.
func (e *Engine) Shadow(ctx context.Context, set *rules.Set) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	if err := e.beside(ctx, &e.shadow, set); err != nil {
		return fmt.Errorf("shadow %s: %w", set.Name(), err)
	}
	return nil
}

// DropShadow ends the shadow, if there is one.
func (e *Engine) DropShadow() { e.drop(&e.shadow) }

// Shadowed returns the set that runs beside the active one and what it sees
// differently at now; a nil set when none does.
func (e *Engine) Shadowed(now time.Time) (*rules.Set, []Difference) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.shadow == nil || !e.shadow.current {
		return nil, nil
	}
	return e.shadow.state.rules, Differences(e.live.state, e.shadow.state, now)
}
