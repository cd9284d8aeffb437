package rules

import (
	"slices"
	"sync"

	"mcpledger/events"
)

// Classify returns what the set makes of one failure.
func (s *Set) Classify(e events.Evidence) Verdict {
	return s.cache.verdict(&e, func() Verdict { return s.judge(&e, s.filter) })
}

// readings keeps the buffers of readings between classifications.
var readings = sync.Pool{New: func() any { return new(reading) }}

// judge classifies without the cache. Without a filter every rule is tried.
func (s *Set) judge(e *events.Evidence, f *filter) Verdict {
	r := readings.Get().(*reading)
	defer readings.Put(r)
	r.read(e)
	if f != nil {
		r.candidates = f.candidates(r.low, r.candidates)
	} else {
		r.candidates = everyRule(len(s.rules), r.candidates)
	}
	won, at := s.winner(r)
	rule := &s.rules[won]
	v := Verdict{
		Class: rule.class, Disposition: rule.disposition, Rule: rule.id,
		Policy: rule.policy, Retry: rule.retry,
		Hint: rule.hint.fill(func(name string) []byte { return rule.match.group(r, at, name) }),
	}
	v.Gate = s.gate(r, v.Class)
	d := r.decisiveFor(rule, at)
	v.Signature = signatureOf(rule, r, d)
	v.Text = r.headline(d)
	return v
}

// winner returns the index of the first rule that matches. When that rule is weak,
// the rules above it are asked a second time with every block of text in place of
// the decisive one.
func (s *Set) winner(r *reading) (won int, at look) {
	last := len(s.rules) - 1 // it matches everything
	won = s.first(r, lookDecisive, last)
	if s.rules[won].weak {
		if second := s.first(r, lookAll, won); second < won {
			return second, lookAll
		}
	}
	return won, lookDecisive
}

// first returns the index of the first candidate below limit that matches, or limit.
func (s *Set) first(r *reading, at look, limit int) int {
	for i := next(r.candidates, 0, limit); i < limit; i = next(r.candidates, i+1, limit) {
		rule := &s.rules[i]
		if rule.match.matches(r, at) && (rule.unless == nil || !rule.unless.matches(r, at)) {
			return i
		}
	}
	return limit
}

func (s *Set) gate(r *reading, class Class) Gate {
	for i := range s.gates {
		g := &s.gates[i]
		if len(g.classes) > 0 && !slices.Contains(g.classes, class) {
			continue
		}
		if g.match.matches(r, lookAll) && (g.unless == nil || !g.unless.matches(r, lookAll)) {
			return g.gate
		}
	}
	return GateNone
}

func everyRule(n int, into []uint64) []uint64 {
	into = into[:0]
	for range (n + 63) / 64 {
		into = append(into, ^uint64(0))
	}
	return into
}

// decisiveFor returns the block that a failure judged by the rule is about: the one
// the rule matched, when that is not the decisive one.
func (r *reading) decisiveFor(rule *rule, at look) block {
	for i := range rule.match.texts {
		c := &rule.match.texts[i]
		field := c.field
		if field == textDecisive && at == lookAll {
			field = textAny
		}
		var best int
		switch field {
		case textAny, textError, textStderr, textMessage:
			found := c.first(r.text(field, at)).find(r.text(field, at))
			best = r.lineAt(field, found[0])
		default:
			continue
		}
		if best >= 0 && r.lines[best].says() && (best < r.decisive.from || best >= r.decisive.to) {
			return r.blockAt(best)
		}
	}
	return r.decisive
}

// lineAt returns the line at an offset of a field's text, or -1.
func (r *reading) lineAt(f textField, offset int) int {
	if f == textAny {
		for i := range r.lines {
			if l := &r.lines[i]; l.inBlock() {
				if offset -= l.end - l.content + 1; offset < 0 {
					return i
				}
			}
		}
		return -1
	}
	at := r.fields[f].start + offset
	for i := range r.lines {
		if l := &r.lines[i]; l.start <= at && at <= l.end {
			return i
		}
	}
	return -1
}
