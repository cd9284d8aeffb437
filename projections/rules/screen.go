package rules

import (
	"math"
	"slices"
)

// screen tells which rules of a set can match by what is not text: for each field and
// each value of it, it knows the rules whose conditions on that field hold.
type screen struct {
	enums   []enumScreen
	numbers []numberScreen
	flags   []flagScreen
}

type enumScreen struct {
	field  enumField
	values []string
	rules  []bitset // by value, and at the end for any other
}

type numberScreen struct {
	field  numberField
	bounds []int64  // in ascending order
	rules  []bitset // by how many bounds are not greater than the number
	absent bitset   // for a number that was not seen
}

type flagScreen struct {
	field   flagField
	yes, no bitset
}

// newScreen builds the screen of rules. It has no enumeration and no number that none of
// them asks for.
func newScreen(rules []rule) screen {
	var s screen
	for f := range enumFieldCount {
		if e := newEnumScreen(rules, f); len(e.values) > 0 {
			s.enums = append(s.enums, e)
		}
	}
	for f := range numberFieldCount {
		if n := newNumberScreen(rules, f); len(n.bounds) > 0 {
			s.numbers = append(s.numbers, n)
		}
	}
	for f := range flagFieldCount {
		s.flags = append(s.flags, flagScreen{
			field: f,
			yes:   rulesWhere(rules, func(m *matcher) bool { return m.flagHolds(f, true) }),
			no:    rulesWhere(rules, func(m *matcher) bool { return m.flagHolds(f, false) }),
		})
	}
	return s
}

func newEnumScreen(rules []rule, f enumField) enumScreen {
	s := enumScreen{field: f}
	for i := range rules {
		for _, c := range rules[i].match.enums {
			if c.field == f {
				s.values = append(s.values, c.values...)
			}
		}
	}
	slices.Sort(s.values)
	s.values = slices.Compact(s.values)
	for _, v := range slices.Concat(s.values, []string{otherValue}) {
		s.rules = append(s.rules, rulesWhere(rules, func(m *matcher) bool { return m.enumHolds(f, v) }))
	}
	return s
}

// otherValue stands for a value that no rule names.
const otherValue = "\x00"

func newNumberScreen(rules []rule, f numberField) numberScreen {
	s := numberScreen{field: f}
	for i := range rules {
		for _, c := range rules[i].match.numbers {
			for _, r := range c.ranges {
				if c.field != f {
					continue
				}
				s.bounds = append(s.bounds, r.from)
				if r.to < math.MaxInt64 {
					s.bounds = append(s.bounds, r.to+1)
				}
			}
		}
	}
	slices.Sort(s.bounds)
	s.bounds = slices.Compact(s.bounds)
	for _, from := range slices.Concat([]int64{math.MinInt64}, s.bounds) {
		n := max(number(from), unseen+1)
		s.rules = append(s.rules, rulesWhere(rules, func(m *matcher) bool { return m.numberHolds(f, n) }))
	}
	s.absent = rulesWhere(rules, func(m *matcher) bool { return m.numberHolds(f, unseen) })
	return s
}

// rulesWhere returns the rules whose match holds.
func rulesWhere(rules []rule, holds func(*matcher) bool) bitset {
	out := newBitset(len(rules))
	for i := range rules {
		if holds(&rules[i].match) {
			out.set(i)
		}
	}
	return out
}

// apply leaves those of some rules that can match.
func (s *screen) apply(some bitset, r *reading) {
	for i := range s.enums {
		e := &s.enums[i]
		some.and(e.rules[e.index(r.enums[e.field])])
	}
	for i := range s.numbers {
		n := &s.numbers[i]
		some.and(n.of(r.numbers[n.field]))
	}
	for i := range s.flags {
		if f := &s.flags[i]; r.flags[f.field] {
			some.and(f.yes)
		} else {
			some.and(f.no)
		}
	}
}

// index returns which of the values a value is.
func (s *enumScreen) index(value string) int {
	for i, v := range s.values { // by far most are not as long
		if v == value {
			return i
		}
	}
	return len(s.values)
}

func (s *numberScreen) of(n number) bitset {
	if !n.seen() {
		return s.absent
	}
	i := 0
	for i < len(s.bounds) && s.bounds[i] <= int64(n) {
		i++
	}
	return s.rules[i]
}

// enumHolds reports whether the conditions on the field hold for a value of it.
func (m *matcher) enumHolds(f enumField, value string) bool {
	return !slices.ContainsFunc(m.enums, func(c enumCondition) bool {
		return c.field == f && !slices.Contains(c.values, value)
	})
}

// numberHolds is enumHolds for a number, or for one that was not seen.
func (m *matcher) numberHolds(f numberField, n number) bool {
	return !slices.ContainsFunc(m.numbers, func(c numberCondition) bool {
		return c.field == f && !c.has(n)
	})
}

// flagHolds is enumHolds for a flag.
func (m *matcher) flagHolds(f flagField, value bool) bool {
	return !slices.ContainsFunc(m.flags, func(c flagCondition) bool {
		return c.field == f && c.want != value
	})
}
