package rules

import (
	"slices"
	"sync"

	"mcpledger/events"
)

// Classify returns what the set makes of one failure. It never fails: what no rule
// knows the last one takes. The verdict depends on the evidence and the set alone;
// those of the latest failures are remembered. The policy's ladder is shared: callers
// do not change it.
func (s *Set) Classify(e events.Evidence) Verdict {
	return s.cache.verdict(&e, func() Verdict { return s.judge(&e, s.filter) })
}

// readings keeps the buffers of readings between classifications.
var readings = sync.Pool{New: func() any { return new(reading) }}

// judge classifies without the cache. Without a filter every rule is tried.
func (s *Set) judge(e *events.Evidence, f *filter) Verdict {
	r := readings.Get().(*reading)
	defer readings.Put(r)
	v := noRules
	if f != nil {
		v = f.vocabulary
	}
	r.read(e, v)
	r.hits.find(f, r, len(s.rules))
	won, at := s.winner(r)
	rule := &s.rules[won]
	verdict := Verdict{
		Class: rule.class, Disposition: rule.disposition, Rule: rule.id,
		Policy: rule.policy, Retry: rule.retry,
		Hint: rule.hint.fill(r.group),
	}
	d := r.decisiveFor(rule, at)
	verdict.Signature = signatureOf(rule, r, d)
	verdict.Text = withEnding(e, r.headline(d), r.chatty(d))
	verdict.Gate = s.gate(r, verdict.Class)
	return verdict
}

// winner returns the index of the first rule that matches; r.found says where. When that
// rule is weak, the rules above it are asked again: with every block of text in place of
// the decisive one, if there are others, then with the codes of errors, spelled out, in
// place of all text.
func (s *Set) winner(r *reading) (won int, at look) {
	last := len(s.rules) - 1 // it matches everything
	if won = s.first(r, lookDecisive, last); won == last {
		r.found = r.found[:0]
	}
	if s.rules[won].weak && r.fields[textBlocks] != r.fields[textDecisive] {
		if again := s.firstAgain(r, lookAll, won); again < won {
			won, at = again, lookAll
		}
	}
	if s.rules[won].weak && r.spellCodes() {
		r.hits.findIn(r, r.fields[textSpelled])
		if again := s.firstAgain(r, lookCodes, won); again < won {
			r.found = r.found[:0] // a hint shows no word that nobody wrote
			return again, lookCodes
		}
	}
	return won, at
}

// firstAgain is first for a second look. When no rule matches, r.found stays as it was.
func (s *Set) firstAgain(r *reading, at look, limit int) int {
	r.found, r.foundBefore = r.foundBefore, r.found
	won := s.first(r, at, limit)
	if won == limit {
		r.found, r.foundBefore = r.foundBefore, r.found
	}
	return won
}

// first returns the index of the first candidate below limit that matches, or limit.
func (s *Set) first(r *reading, at look, limit int) int {
	for i := r.hits.rules.next(0, limit); i < limit; i = r.hits.rules.next(i+1, limit) {
		rule := &s.rules[i]
		if rule.match.matches(r, at) && (rule.unless == nil || !rule.unless.matchesAny(r, min(at, lookAll))) {
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
		if g.match.matches(r, lookAll) && (g.unless == nil || !g.unless.matchesAny(r, lookAll)) {
			return g.gate
		}
	}
	return GateNone
}

// decisiveFor returns the block that a failure judged by the rule is about: the one
// the rule matched, when that is not the decisive one.
func (r *reading) decisiveFor(rule *rule, at look) block {
	if at == lookCodes {
		return r.decisive
	}
	for i := range rule.match.texts {
		c := &rule.match.texts[i]
		field := c.field
		if field == textDecisive && at == lookAll {
			field = textBlocks
		}
		var best int
		switch field {
		case textAny, textBlocks, textError, textStderr, textMessage:
			best = r.lineAt(field, r.found[i].place(r)-r.fields[field].start)
		default:
			continue
		}
		if best < 0 || best >= r.decisive.from && best < r.decisive.to {
			continue
		}
		if r.lines[best].says() || !rule.weak {
			return r.blockAt(best)
		}
	}
	return r.decisive
}

// lineAt returns the line at an offset of a field's text, or -1, as for a text that is not
// there.
func (r *reading) lineAt(f textField, offset int) int {
	s := r.fields[f]
	if s.start == s.end {
		return -1
	}
	if f != textAny && f != textBlocks {
		at := s.start + offset
		for i := range r.lines {
			if l := &r.lines[i]; l.start <= at && at <= l.end {
				return i
			}
		}
		return -1
	}
	for _, hollow := range []bool{false, true} { // in the order of copyBlocks
		for i := range r.lines {
			l := &r.lines[i]
			if hollow && l.kind != kindHollow || !hollow && !l.inBlock() {
				continue
			}
			if offset -= l.end - l.content + 1; offset < 0 {
				return i
			}
		}
	}
	return -1
}
