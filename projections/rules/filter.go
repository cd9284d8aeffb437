package rules

import "slices"

// filter finds the words of the lexicon and the literals of all patterns of a set in
// one pass over the lines. It tells which rules can match at all, and where a pattern
// is worth trying.
type filter struct {
	finder *finder  // of the words of the lexicon, then of the literals
	sought []sought // by literal
	always ruleBits // the rules that can match whatever the text is
	count  int32    // of conditions
}

// sought says what a literal is looked for; nothing for a word of the lexicon.
type sought struct {
	rules []int32 // that it lets through
	uses  []use   // the patterns that have it
}

// use is a pattern of a condition that has some literal.
type use struct {
	condition int32
	pattern   uint64 // its bit among the patterns of the condition
	also      bool   // the literal is one of those besides
}

// newFilter builds the filter of a set's rules.
func newFilter(s *Set) *filter {
	f := &filter{always: newRuleBits(len(s.rules)), sought: make([]sought, len(lexicon.literals))}
	b := filterBuilder{filter: f, literals: slices.Clone(lexicon.literals), index: map[string]int32{}}
	for i := range s.rules {
		b.rule(i, &s.rules[i])
	}
	for i := range s.gates {
		b.matcher(&s.gates[i].match)
		b.matcher(s.gates[i].unless)
	}
	f.finder = newFinder(b.literals)
	return f
}

// filterBuilder numbers the literals.
type filterBuilder struct {
	*filter
	literals []string
	index    map[string]int32
}

// rule adds the literals of a rule. The condition with the best ones decides whether
// the rule can match; without one it always can.
func (b *filterBuilder) rule(i int, r *rule) {
	b.matcher(&r.match)
	b.matcher(r.unless)
	best := r.match.selective()
	if best == nil {
		b.always.set(i)
		return
	}
	for _, p := range best.patterns {
		for _, id := range p.literals.ids {
			b.sought[id].rules = append(b.sought[id].rules, int32(i))
		}
	}
}

func (b *filterBuilder) matcher(m *matcher) {
	for i := 0; m != nil && i < len(m.texts); i++ {
		c := &m.texts[i]
		c.id = b.count
		b.count++
		for j, p := range c.patterns {
			b.number(&p.literals)
			b.number(&p.also)
			bit := uint64(1) << min(j, maxTold-1) // those beyond share the last bit
			if p.literals.ids == nil || !scanned(c.field) {
				c.always |= bit
			}
			if p.also.ids == nil {
				c.single |= bit
			}
			for _, id := range p.literals.ids {
				b.sought[id].uses = append(b.sought[id].uses, use{c.id, bit, false})
			}
			for _, id := range p.also.ids {
				b.sought[id].uses = append(b.sought[id].uses, use{c.id, bit, true})
			}
		}
	}
}

// maxTold is how many patterns of a condition are told from each other.
const maxTold = 64

// number gives each literal of a set its number.
func (b *filterBuilder) number(set *literalSet) {
	for _, lit := range set.literals {
		id, ok := b.index[lit]
		if !ok {
			id = int32(len(b.literals))
			b.index[lit] = id
			b.literals = append(b.literals, lit)
			b.sought = append(b.sought, sought{})
		}
		set.ids = append(set.ids, id)
	}
}

// selective returns the condition whose patterns all have literals in a text that is
// looked through, of several the one with the longest; nil when there is none.
func (m *matcher) selective() *textCondition {
	var best *textCondition
	length := 0
	for i := range m.texts {
		if !scanned(m.texts[i].field) {
			continue
		}
		n := maxPatternBytes
		for _, p := range m.texts[i].patterns {
			n = min(n, shortest(p.literals.literals))
		}
		if n > length {
			best, length = &m.texts[i], n
		}
	}
	return best
}

// scanned reports whether the field's text is looked through for literals: the blocks
// and the client's text. The other texts are long, or short and seldom asked for.
func scanned(f textField) bool {
	return f == textDecisive || f == textBlocks || f == textAny || f == textError
}
