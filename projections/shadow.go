package projections

import (
	"context"
	"fmt"
	"time"

	"mcpledger/projections/rules"
)

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

// ShadowRules returns the set that runs beside the active one; nil when none does.
func (e *Engine) ShadowRules() *rules.Set {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.shadow == nil || !e.shadow.current {
		return nil
	}
	return e.shadow.state.rules
}

// Shadowed returns the set that runs beside the active one and what it sees
// differently at now; a nil set when none does.
func (e *Engine) Shadowed(now time.Time) (*rules.Set, []Difference) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.shadow == nil || !e.shadow.current {
		return nil, nil
	}
	return e.shadow.state.rules, Differences(e.live.state.Servers(now), e.shadow.state.Servers(now))
}
