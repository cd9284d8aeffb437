package rules

import (
	"math"
	"slices"
	"strings"

	"mcpledger/events"
)

// taker is a matcher that takes for the rule or gate of that id whatever it matches.
type taker struct {
	id    string
	match *matcher
}

// takenBy returns the ids of takers that together match whatever m does: one that alone
// does, or one for each value, range or pattern of one of m's conditions. It returns nil
// when none are seen to.
func (m *matcher) takenBy(takers []taker) []string {
	if id := m.takenByOne(takers); id != "" {
		return []string{id}
	}
	for _, parts := range m.split() {
		var ids []string
		for i := range parts {
			id := parts[i].takenByOne(takers)
			if id == "" {
				ids = nil
				break
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if ids != nil {
			return ids
		}
	}
	return nil
}

func (m *matcher) takenByOne(takers []taker) string {
	for _, t := range takers {
		if t.match.covers(m) {
			return t.id
		}
	}
	return ""
}

// split returns, for each condition with several alternatives, the matchers that have one
// of them each in its place.
func (m *matcher) split() [][]matcher {
	var all [][]matcher
	for i, c := range m.enums {
		var parts []matcher
		for _, value := range c.values {
			part := *m
			part.enums = replaced(m.enums, i, enumCondition{c.field, []string{value}})
			parts = append(parts, part)
		}
		all = append(all, parts)
	}
	for i, c := range m.numbers {
		var parts []matcher
		for _, one := range c.alternatives() {
			part := *m
			part.numbers = replaced(m.numbers, i, one)
			parts = append(parts, part)
		}
		all = append(all, parts)
	}
	for i, c := range m.texts {
		var parts []matcher
		for _, p := range c.patterns {
			part := *m
			part.texts = replaced(m.texts, i, textCondition{field: c.field, patterns: []*pattern{p}})
			parts = append(parts, part)
		}
		all = append(all, parts)
	}
	return all
}

// replaced returns a copy of list with another element at i.
func replaced[T any](list []T, i int, with T) []T {
	list = slices.Clone(list)
	list[i] = with
	return list
}

// alternatives returns a condition for each range, and one for a number not seen.
func (c *numberCondition) alternatives() []numberCondition {
	var all []numberCondition
	for _, r := range c.ranges {
		all = append(all, numberCondition{field: c.field, ranges: []numberRange{r}})
	}
	if c.absent {
		all = append(all, numberCondition{field: c.field, absent: true})
	}
	return all
}

// covers reports whether each condition of m holds wherever those of other do.
func (m *matcher) covers(other *matcher) bool {
	for i := range m.enums {
		if !slices.ContainsFunc(other.enums, func(c enumCondition) bool { return m.enums[i].covers(&c) }) {
			return false
		}
	}
	for i := range m.numbers {
		if !slices.ContainsFunc(other.numbers, func(c numberCondition) bool { return m.numbers[i].covers(&c) }) {
			return false
		}
	}
	for _, c := range m.flags {
		if !slices.Contains(other.flags, c) {
			return false
		}
	}
	for i := range m.texts {
		if !slices.ContainsFunc(other.texts, func(c textCondition) bool { return m.texts[i].covers(&c) }) {
			return false
		}
	}
	return true
}

func (c *enumCondition) covers(other *enumCondition) bool {
	return c.field == other.field && subset(other.values, c.values)
}

func (c *numberCondition) covers(other *numberCondition) bool {
	if c.field != other.field || other.absent && !c.absent {
		return false
	}
	return !slices.ContainsFunc(other.ranges, func(r numberRange) bool { return !c.holdsAll(r) })
}

// holdsAll reports whether the ranges of the condition hold every number of r.
func (c *numberCondition) holdsAll(r numberRange) bool {
	for next := r.from; ; {
		i := slices.IndexFunc(c.ranges, func(mine numberRange) bool { return mine.from <= next && next <= mine.to })
		switch {
		case i < 0:
			return false
		case c.ranges[i].to >= r.to:
			return true
		}
		next = c.ranges[i].to + 1
	}
}

func (c *textCondition) covers(other *textCondition) bool {
	for _, p := range other.patterns {
		if !slices.ContainsFunc(c.patterns, func(mine *pattern) bool {
			return c.field == other.field && mine.source == p.source || c.field.holds(other.field) && mine.foundIn(p)
		}) {
			return false
		}
	}
	return true
}

// holds reports whether whatever is in a text's field other is in f as well.
func (f textField) holds(other textField) bool {
	return f == other || f == textAny && other == textDecisive
}

// maxWords bounds the literals of a pattern that is looked for in others, so that a check
// of the largest set takes a moment.
const maxWords = 8

// foundIn reports whether whatever other matches has a match of p in it: p is a few
// literals, of which each that other needs holds one.
func (p *pattern) foundIn(other *pattern) bool {
	if !p.whole || len(p.literals.literals) > maxWords || len(other.literals.literals) == 0 {
		return false
	}
	return !slices.ContainsFunc(other.literals.literals, func(needed string) bool {
		return !slices.ContainsFunc(p.literals.literals, func(mine string) bool { return strings.Contains(needed, mine) })
	})
}

func subset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(v T) bool { return !slices.Contains(whole, v) })
}

// contradiction says why the conditions cannot all hold, with unless, which may be
// nil; empty when nothing speaks against it.
func (m *matcher) contradiction(unless *matcher) string {
	if unless != nil && unless.heldBy(m) {
		return "unless holds whenever match does"
	}
	for i := range m.numbers {
		if c := &m.numbers[i]; c.impossible() {
			return "no " + c.field.key() + " is such a number"
		}
	}
	status := slices.ContainsFunc(m.numbers, func(c numberCondition) bool { return c.field == numberHTTPStatus && !c.absent })
	if status && m.only(enumTransport, string(events.TransportStdio)) {
		return "a server over stdio has no HTTP status"
	}
	return ""
}

// key returns the field's key of match.
func (f numberField) key() string {
	for key, field := range numberFields {
		if field == f {
			return key
		}
	}
	return ""
}

// impossible reports whether the field never has a number that the condition holds for.
func (c *numberCondition) impossible() bool {
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	switch c.field {
	case numberExitCode, numberJSONRPCCode:
	case numberHTTPStatus:
		least, most = 100, 999
	case numberElapsedMS, numberLimitMS, numberRetryAfterMS: // 0 is one that was not seen
		least = 1
	default:
		least = 0
	}
	return !c.absent && !slices.ContainsFunc(c.ranges, func(r numberRange) bool { return r.to >= least && r.from <= most })
}

// heldBy reports whether some single condition of m holds wherever those of match do.
func (m *matcher) heldBy(match *matcher) bool {
	var singles []matcher
	for i := range m.enums {
		singles = append(singles, matcher{enums: m.enums[i : i+1]})
	}
	for i := range m.numbers {
		singles = append(singles, matcher{numbers: m.numbers[i : i+1]})
	}
	for i := range m.flags {
		singles = append(singles, matcher{flags: m.flags[i : i+1]})
	}
	for i := range m.texts {
		singles = append(singles, matcher{texts: m.texts[i : i+1]})
	}
	return slices.ContainsFunc(singles, func(one matcher) bool { return one.covers(match) })
}
