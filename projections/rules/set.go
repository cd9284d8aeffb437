package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Set is a rule set as Parse made it. It never changes, and any number of goroutines
// may use it.
type Set struct {
	name string
	text string
	hash string
	// nameLine and nameColumn are where the text has the name.
	nameLine, nameColumn int

	rules     []rule
	gates     []gateRule
	abandoned rule
	policies  map[Disposition]SkipPolicy
	any       SkipPolicy
	brake     Brake
	filter    *filter
	cache     *cache
}

// rule is one compiled rule.
type rule struct {
	id          string
	line        int // in the set's text
	match       matcher
	unless      *matcher // nil when the rule has none
	weak        bool
	class       Class
	disposition Disposition
	policy      SkipPolicy
	retry       bool
	hint        template
	own         struct { // what the rule says itself; nil where the set decides
		policy *SkipPolicy
		retry  *bool
	}
}

// gateRule sets a gate, whatever rule gave the class.
type gateRule struct {
	id           string
	line, column int // in the set's text
	match        matcher
	unless       *matcher
	classes      []Class // empty: every class
	gate         Gate
}

// Brake says when one tool, called again and again with the same arguments by the
// same caller, is refused for a while. Failures 0 turns it off.
type Brake struct {
	Failures int           // in a row
	Within   time.Duration // from the first to the last of them
	For      time.Duration // how long it is refused
}

// Rule is a rule as it is shown to people.
type Rule struct {
	ID          string
	Line        int // in the set's text, from 1
	Class       Class
	Disposition Disposition
	Policy      SkipPolicy
	Retry       bool
	// Weak marks a rule that says how a failure ended and not why; it gives way to
	// a rule above it that matches another block of text.
	Weak bool
	Hint string // with its {names} unfilled
}

// GateRule is a rule that sets a gate, as it is shown to people.
type GateRule struct {
	ID           string
	Line, Column int // in the set's text, from 1
	Gate         Gate
}

// Name returns the set's name as its text gives it.
func (s *Set) Name() string { return s.name }

// NamePlace returns where in its text the set has its name, from 1.
func (s *Set) NamePlace() (line, column int) { return s.nameLine, s.nameColumn }

// Text returns the YAML the set was parsed from.
func (s *Set) Text() string { return s.text }

// Hash returns the hex SHA-256 of Text.
func (s *Set) Hash() string { return s.hash }

// leastHash is how many digits of a hash stand for a set, at least.
const leastHash = 12

// Answers reports whether ref stands for the set: its name, or the beginning of its hash,
// by which sets of one name are told apart.
func (s *Set) Answers(ref string) bool { return Answers(s.name, s.hash, ref) }

// Answers is Set.Answers for a set that is known by name and hash alone.
func Answers(name, hash, ref string) bool {
	return name == ref || len(ref) >= leastHash && strings.HasPrefix(hash, ref)
}

// Policy returns the policy of rules of that disposition that have none of their own,
// nor one by their class. A disposition that the set says nothing of never skips.
func (s *Set) Policy(d Disposition) SkipPolicy { return s.policies[d] }

// AnyFailures returns the policy for runs that all failed, with whatever signatures.
func (s *Set) AnyFailures() SkipPolicy { return s.any }

// Brake returns when a call that keeps failing is refused.
func (s *Set) Brake() Brake { return s.brake }

// Rules lists the rules in the order they are tried.
func (s *Set) Rules() []Rule {
	out := make([]Rule, len(s.rules))
	for i := range s.rules {
		out[i] = s.rules[i].shown()
	}
	return out
}

// Rule returns the rule that a verdict names, also the one on attempts found unfinished,
// which is not among Rules. It returns false for an id that no rule has.
func (s *Set) Rule(id string) (Rule, bool) {
	if id == abandonedID {
		return s.abandoned.shown(), true
	}
	for i := range s.rules {
		if r := &s.rules[i]; r.id == id {
			return r.shown(), true
		}
	}
	return Rule{}, false
}

func (r *rule) shown() Rule {
	return Rule{
		ID: r.id, Line: r.line, Class: r.class, Disposition: r.disposition,
		Policy: r.policy, Retry: r.retry, Weak: r.weak, Hint: r.hint.source,
	}
}

// Gates lists the rules that set gates in the order they are tried.
func (s *Set) Gates() []GateRule {
	out := make([]GateRule, len(s.gates))
	for i := range s.gates {
		out[i] = s.gates[i].shown()
	}
	return out
}

func (g *gateRule) shown() GateRule {
	return GateRule{ID: g.id, Line: g.line, Column: g.column, Gate: g.gate}
}

// Abandoned returns the verdict for attempts that were found unfinished when the
// service started, twice in a row: a server that takes the service down.
func (s *Set) Abandoned() Verdict {
	r := &s.abandoned
	return Verdict{
		Class: r.class, Disposition: r.disposition, Rule: r.id,
		Signature: signatureOf(r, &reading{}, block{best: -1}),
		Text:      "the service ended while it was trying this server",
		Hint:      r.hint.source, Policy: r.policy, Retry: r.retry,
	}
}

// GatesBeyondLaw3 lists the rules that gate a connection on anything other than a
// status of 401 or 403, an insufficient scope among those, or credentials that are
// missing before anything was sent. A set with such a rule may be replayed and
// shadowed, not activated.
func (s *Set) GatesBeyondLaw3() []GateRule {
	var beyond []GateRule
	for i := range s.gates {
		if !s.gates[i].withinLaw3() {
			beyond = append(beyond, s.gates[i].shown())
		}
	}
	return beyond
}

func (g *gateRule) withinLaw3() bool {
	if g.gate == GateCredentialsMissing {
		return slices.Equal(g.classes, []Class{ClassCredentialsMissing}) && g.match.only(enumPhase, "config")
	}
	for _, c := range g.match.numbers {
		if c.field == numberHTTPStatus && !c.absent && within(c.ranges, 401, 403) {
			return true
		}
	}
	return false
}

// within reports whether the ranges hold no number but the given ones.
func within(ranges []numberRange, allowed ...int64) bool {
	for _, r := range ranges {
		if r.from != r.to || !slices.Contains(allowed, r.from) {
			return false
		}
	}
	return true
}

// only reports whether the matcher holds for no other value of the field.
func (m *matcher) only(field enumField, value string) bool {
	for _, c := range m.enums {
		if c.field == field {
			return slices.Equal(c.values, []string{value})
		}
	}
	return false
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
