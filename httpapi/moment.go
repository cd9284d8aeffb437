package httpapi

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// maxRefolds bounds how many past moments, or present ones under other rules, are
// folded at the same time, since each reads the log from its beginning.
const maxRefolds = 2

// moment is where a read answers from.
type moment struct {
	sequence events.Sequence // of the last event looked at
	now      time.Time
	set      *rules.Set
}

// parseMoment reads at, "" for the present.
func parseMoment(at string) (projections.Moment, error) {
	if at == "" {
		return projections.Moment{}, nil
	}
	if n, err := parseDecimal(at); err == nil {
		if n == 0 {
			return projections.Moment{}, refuse(codeInvalidAt, "the first event has sequence 1")
		}
		return projections.Moment{Sequence: events.Sequence(n)}, nil
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return projections.Moment{}, refuse(codeInvalidAt, "%q is neither a sequence nor an RFC 3339 time, such as 2026-01-02T15:04:05Z; a + in a time is %%2B in a URL", at)
	}
	return projections.Moment{Time: t}, nil
}

// parseDecimal reads a number of decimal digits alone.
func parseDecimal(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// ruleSet returns the set of that name, nil for "".
func (a *API) ruleSet(name string) (*rules.Set, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no name is no set
	}
	if active := a.engine.Rules(); active.Name() == name {
		return active, nil
	}
	set, err := rules.Builtin(name)
	if errors.Is(err, rules.ErrNoSuchSet) {
		return nil, refuse(codeUnknownRules, "%q is none; /api/rules/sets lists those there are", name)
	}
	return set, err
}

// ask calls fn with the state that a read with these parameters is about, which fn
// must not keep.
func (a *API) ask(ctx context.Context, at, setName string, fn func(*projections.State, time.Time)) (moment, error) {
	when, err := parseMoment(at)
	if err != nil {
		return moment{}, err
	}
	set, err := a.ruleSet(setName)
	if err != nil {
		return moment{}, err
	}
	if !when.IsZero() || (set != nil && set != a.engine.Rules()) {
		return a.askRefolded(ctx, when, set, fn)
	}
	m := moment{now: a.now()}
	err = a.engine.View(func(s *projections.State) {
		m.sequence, m.set = s.Sequence(), s.Rules()
		fn(s, m.now)
	})
	return m, err
}

func (a *API) askRefolded(ctx context.Context, when projections.Moment, set *rules.Set, fn func(*projections.State, time.Time)) (moment, error) {
	select {
	case a.refolds <- struct{}{}:
		defer func() { <-a.refolds }()
	case <-ctx.Done():
		return moment{}, ctx.Err()
	}
	s, now, err := a.engine.At(ctx, when, set, a.now())
	if err != nil {
		return moment{}, err
	}
	fn(s, now)
	return moment{sequence: s.Sequence(), now: now, set: s.Rules()}, nil
}

// place is ask for reads of the log itself, which need no state: where in the log
// they end, and the set to judge by.
func (a *API) place(ctx context.Context, at, setName string) (moment, error) {
	when, err := parseMoment(at)
	if err != nil {
		return moment{}, err
	}
	set, err := a.ruleSet(setName)
	if err != nil {
		return moment{}, err
	}
	m := moment{now: a.now()}
	if err := a.engine.View(func(s *projections.State) { m.sequence, m.set = s.Sequence(), s.Rules() }); err != nil {
		return moment{}, err
	}
	if set != nil {
		m.set = set
	}
	switch {
	case when.Sequence > m.sequence, when.Time.After(m.now):
		return moment{}, projections.ErrInFuture
	case when.Sequence > 0:
		m.sequence = when.Sequence
	case !when.Time.IsZero():
		m.now = when.Time
		m.sequence, err = a.log.SequenceAt(ctx, when.Time)
	}
	return m, err
}

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
		f := &fleet{}
		m, err := a.ask(ctx, at, setName, func(s *projections.State, now time.Time) { f.servers = s.Servers(now) })
		f.moment = m
		return f, err
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
		for _, v := range f.servers {
			if v.Skip != nil && !v.Skip.Until.IsZero() && (f.until.IsZero() || v.Skip.Until.Before(f.until)) {
				f.until = v.Skip.Until
			}
		}
		a.fleet.present = f
	})
	if err != nil {
		return nil, err
	}
	return a.fleet.present, nil
}
