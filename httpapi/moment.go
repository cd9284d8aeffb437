package httpapi

import (
	"context"
	"strconv"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// maxRefolds bounds how many past moments, or present ones under other rules, are
// folded at the same time, since each reads the log from the last mark before it on, and
// all of it where there is none.
const maxRefolds = 2

// moment is where a read answers from.
type moment struct {
	sequence events.Sequence // of the last event looked at
	now      time.Time
	set      *rules.Set
	past     bool // it was asked for, by at
}

// tense returns the verb for how things are at the moment, and what goes with it at the
// end of a sentence.
func (m moment) tense() (is, then string) {
	if m.past {
		return "was", " then"
	}
	return "is", ""
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

// ask calls fn with the state that a read with these parameters is about, which fn
// must not keep.
func (a *API) ask(ctx context.Context, at, setName string, fn func(*projections.State, time.Time)) (moment, error) {
	when, err := parseMoment(at)
	if err != nil {
		return moment{}, err
	}
	set, err := a.ruleSet(ctx, setName)
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
	return moment{sequence: s.Sequence(), now: now, set: s.Rules(), past: !when.IsZero()}, nil
}

// place is ask for reads of the log itself: where in the log they end, and the set to
// judge by. For the present, nothing needs to be folded for that.
func (a *API) place(ctx context.Context, at, setName string) (moment, error) {
	if at != "" {
		return a.ask(ctx, at, setName, func(*projections.State, time.Time) {})
	}
	m, err := a.ask(ctx, "", "", func(*projections.State, time.Time) {})
	if err != nil || setName == "" {
		return m, err
	}
	m.set, err = a.ruleSet(ctx, setName)
	return m, err
}
