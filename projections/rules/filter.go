package rules

import "slices"

// filter finds the words of the lexicon and the literals of all patterns of a set in
// one pass over the lines. It tells which rules can match at all, and where a pattern
// is worth trying.
type filter struct {
	finder *finder  // of the words of the lexicon, then of the literals
	from   []int32  // by literal: where its uses begin; they end where the next one's do
	uses   []use    // in one piece, since they are asked for in no order
	always ruleBits // the rules that can match whatever the text is
	count  int32    // of conditions
}

// use is a pattern of a condition that has some literal.
type use struct {
	condition int32
	rule      int32 // that the literal lets through; noRule: none
	pattern   uint8 // among those of the condition, maxTold-1 at most
	also      bool  // the literal is one of those besides
}

// noRule stands for a rule where there is none.
const noRule = -1

// usesOf returns what a literal is looked for; nothing for a word of the lexicon.
func (f *filter) usesOf(literal int32) []use {
	return f.uses[f.from[literal]:f.from[literal+1]]
}

// newFilter builds the filter of a set's rules.
func newFilter(s *Set) *filter {
	f := &filter{always: newRuleBits(len(s.rules))}
	b := filterBuilder{
		filter: f, literals: slices.Clone(lexicon.literals), sought: make([][]use, len(lexicon.literals)),
		index: map[string]int32{},
	}
	for i := range s.rules {
		r := &s.rules[i]
		best := r.match.selective()
		if best == nil {
			f.always.set(i)
		}
		b.matcher(&r.match, best, int32(i))
		b.matcher(r.unless, nil, noRule)
	}
	for i := range s.gates {
		b.matcher(&s.gates[i].match, nil, noRule)
		b.matcher(s.gates[i].unless, nil, noRule)
	}
	for _, uses := range b.sought {
		f.from = append(f.from, int32(len(f.uses)))
		f.uses = append(f.uses, uses...)
	}
	f.from = append(f.from, int32(len(f.uses)))
	f.finder = newFinder(b.literals)
	return f
}

// filterBuilder numbers the literals.
type filterBuilder struct {
	*filter
	literals []string
	sought   [][]use // by literal
	index    map[string]int32
}

// matcher adds the literals of a matcher, which may be nil. Those of the condition best
// let the rule through.
func (b *filterBuilder) matcher(m *matcher, best *textCondition, rule int32) {
	for i := 0; m != nil && i < len(m.texts); i++ {
		c := &m.texts[i]
		c.id = b.count
		b.count++
		through := int32(noRule)
		if c == best {
			through = rule
		}
		for j, p := range c.patterns {
			j = min(j, maxTold-1) // those beyond share the last bit
			b.number(&p.literals)
			b.number(&p.also)
			if p.literals.ids == nil || !scanned(c.field) {
				c.always |= 1 << j
			}
			if p.also.ids == nil {
				c.single |= 1 << j
			}
			for _, id := range p.literals.ids {
				b.sought[id] = append(b.sought[id], use{c.id, through, uint8(j), false})
			}
			for _, id := range p.also.ids {
				b.sought[id] = append(b.sought[id], use{c.id, noRule, uint8(j), true})
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
			b.sought = append(b.sought, nil)
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
