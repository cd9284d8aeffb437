package rules

import (
	"fmt"
	"slices"

	"mcpledger/events"
)

// Warning is something in a set that is allowed and probably no intention.
type Warning struct {
	Rule   string // its id
	Line   int    // in the set's text, from 1
	Detail string
}

// Check returns warnings about rules that can never match, because an earlier rule takes
// all they could or because what they ask for cannot be; about patterns that match every
// text; and about hints that may be shown with a gap in them. A set without warnings may
// still have rules that never match; only plain cases are seen.
func (s *Set) Check() []Warning {
	var out []Warning
	warn := func(id string, line int, detail string) {
		if detail != "" {
			out = append(out, Warning{Rule: id, Line: line, Detail: detail})
		}
	}
	for i := range s.rules {
		r := &s.rules[i]
		warn(r.id, r.line, r.hint.fault(&r.match))
		warn(r.id, r.line, idlePattern(&r.match, r.unless))
		warn(r.id, r.line, s.neverMatches(i))
	}
	for i := range s.gates {
		g := &s.gates[i]
		warn(g.id, g.line, idlePattern(&g.match, g.unless))
	}
	warn(s.abandoned.id, s.abandoned.line, s.abandoned.hint.fault(&s.abandoned.match))
	return out
}

// idlePattern names a pattern that matches every text; empty when there is none. unless
// may be nil.
func idlePattern(match, unless *matcher) string {
	for _, p := range append(match.patterns(), unless.patterns()...) {
		if p.everywhere {
			return fmt.Sprintf("the pattern %q matches every text", p.source)
		}
	}
	return ""
}

// neverMatches says why the i-th rule can never match; empty when it may.
func (s *Set) neverMatches(i int) string {
	r := &s.rules[i]
	if fault := r.match.contradiction(r.unless); fault != "" {
		return "can never match: " + fault
	}
	for j := range s.rules[:i] {
		if above := &s.rules[j]; above.takesAll(r) {
			return fmt.Sprintf("can never match: rule %s above it takes everything it could", above.id)
		}
	}
	return ""
}

// takesAll reports whether the rule matches whatever the other one does.
func (r *rule) takesAll(other *rule) bool {
	return !r.weak && r.unless == nil && r.match.covers(&other.match)
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
	for _, r := range other.ranges {
		if !slices.ContainsFunc(c.ranges, func(mine numberRange) bool { return mine.from <= r.from && r.to <= mine.to }) {
			return false
		}
	}
	return true
}

func (c *textCondition) covers(other *textCondition) bool {
	if c.field != other.field {
		return false
	}
	for _, p := range other.patterns {
		if !slices.ContainsFunc(c.patterns, func(mine *pattern) bool { return mine.source == p.source }) {
			return false
		}
	}
	return true
}

func subset[T comparable](part, whole []T) bool {
	for _, v := range part {
		if !slices.Contains(whole, v) {
			return false
		}
	}
	return true
}

// contradiction says why the conditions cannot all hold, with unless, which may be
// nil; empty when nothing speaks against it.
func (m *matcher) contradiction(unless *matcher) string {
	if unless != nil && unless.heldBy(m) {
		return "unless holds whenever match does"
	}
	var stdio bool
	for _, c := range m.enums {
		stdio = stdio || c.field == enumTransport && slices.Equal(c.values, []string{string(events.TransportStdio)})
	}
	for _, c := range m.numbers {
		if stdio && c.field == numberHTTPStatus && !c.absent {
			return "a server over stdio has no HTTP status"
		}
	}
	return ""
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

// fault says why the hint may be shown with a gap or a brace in it; empty when it is
// always whole.
func (t *template) fault(m *matcher) string {
	if t.unclosed != "" {
		return fmt.Sprintf("the hint has a brace that is not closed: %q", t.unclosed)
	}
	for _, blank := range t.blanks {
		if blank.otherwise != ellipsis {
			continue
		}
		if p := m.without(blank.group); p != nil {
			return fmt.Sprintf("the hint names {%[1]s}, which the pattern %[2]q may not catch; {%[1]s|other words} says what to show then", blank.group, p.source)
		}
	}
	return ""
}

// without returns a pattern that may be the one to match and not fill the group; nil
// when each condition of some text fills it.
func (m *matcher) without(group string) *pattern {
	var missing *pattern
	for i := range m.texts {
		patterns := m.texts[i].patterns
		at := slices.IndexFunc(patterns, func(p *pattern) bool { return !slices.Contains(p.fills, group) })
		if at < 0 {
			return nil
		}
		missing = patterns[at]
	}
	return missing
}
