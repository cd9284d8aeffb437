package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Warning is something in a set that is allowed and probably no intention.
type Warning struct {
	Rule   string // its id
	Line   int    // in the set's text, from 1
	Detail string
}

// Check returns warnings about rules and gates that can never match, because earlier ones
// take all they could or because what they ask for cannot be; about patterns that match
// every text; and about hints that may be shown with a gap in them. A set without
// warnings may still have rules that never match; only plain cases are seen.
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
		warn(g.id, g.line, s.neverGates(i))
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

// neverMatches says why the i-th rule can never match; empty when it may. A rule that is
// weak gives way, and one with unless lets something through, so neither takes all.
func (s *Set) neverMatches(i int) string {
	r := &s.rules[i]
	if fault := r.match.contradiction(r.unless); fault != "" {
		return "can never match: " + fault
	}
	var above []taker
	for j := range s.rules[:i] {
		if rule := &s.rules[j]; !rule.weak && rule.unless == nil {
			above = append(above, taker{rule.id, &rule.match})
		}
	}
	return takenInWords("rule", r.match.takenBy(above))
}

// neverGates is neverMatches for the i-th gate.
func (s *Set) neverGates(i int) string {
	g := &s.gates[i]
	if fault := g.match.contradiction(g.unless); fault != "" {
		return "can never match: " + fault
	}
	given := slices.ContainsFunc(s.rules, func(r rule) bool { return slices.Contains(g.classes, r.class) })
	if len(g.classes) > 0 && !given {
		return "can never match: no rule gives its class"
	}
	var above []taker
	for j := range s.gates[:i] {
		gate := &s.gates[j]
		wider := len(gate.classes) == 0 || len(g.classes) > 0 && subset(g.classes, gate.classes)
		if gate.unless == nil && wider {
			above = append(above, taker{gate.id, &gate.match})
		}
	}
	return takenInWords("gate", g.match.takenBy(above))
}

func takenInWords(what string, takers []string) string {
	switch len(takers) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("can never match: %s %s above it takes everything it could", what, takers[0])
	}
	return fmt.Sprintf("can never match: %ss %s above it take everything it could", what, strings.Join(takers, ", "))
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
