package rules

import (
	"maps"
	"slices"
	"strings"
)

// filter knows which rules of a set can match at all, by what is not text and by the
// literals that were found in the texts, and where a pattern is worth trying.
type filter struct {
	vocabulary *vocabulary // of the words of the lexicon and the literals of all patterns
	from       []int32     // by literal: where its uses begin; they end where the next one's do
	uses       []use       // in one piece, since they are asked for in no order
	places     []place     // by literal: where it is looked for
	parts      []part      // of the conditions on texts
	always     bitset      // the rules that can match whatever the text is
	screen     screen      // of what is not text
}

// use is one pattern that a literal is looked for.
type use struct {
	mask uint64 // the pattern's bit among those of its part
	part int32
	set  usedSet
}

// usedSet says which literals of a pattern one is of.
type usedSet uint8

const (
	usedFirst usedSet = iota // pattern.literals
	usedAlso                 // pattern.also
	usedSets
)

// part is what the filter knows of some patterns of a textCondition, a bit each.
type part struct {
	single uint64 // those whose also is empty
	always uint64 // those that no literal rules out
	rule   int32  // that can match when one of them can; noRule: none
}

// partSize is how many patterns of a condition are a part, at most.
const partSize = 64

// noRule stands for a rule where there is none.
const noRule = -1

// place is the texts in which a literal is looked for, a bit each.
type place uint8

const (
	inFields place = 1 << iota // the fields that are cut into lines
	inBlocks                   // the copies of the lines
)

// soughtIn returns where the literals of a field are looked for; 0 for the fields that are
// not looked through, since they are seldom asked for.
func soughtIn(f textField) place {
	switch f {
	case textDecisive, textBlocks, textAny:
		return inBlocks
	case textStdout, textStderr, textMessage, textError:
		return inFields
	default:
		return 0
	}
}

// usesOf returns what a literal is looked for; nothing for a mere word of the lexicon.
func (f *filter) usesOf(literal int32) []use {
	return f.uses[f.from[literal]:f.from[literal+1]]
}

// newFilter builds the filter of a set's rules.
func newFilter(s *Set) *filter {
	f := &filter{always: newBitset(len(s.rules)), screen: newScreen(s.rules)}
	b := filterBuilder{filter: f, sought: map[string][]sought{}}
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
	f.vocabulary = newVocabulary(slices.Collect(maps.Keys(b.sought)))
	f.places = make([]place, len(f.vocabulary.cues))
	for i := range f.places {
		f.from = append(f.from, int32(len(f.uses)))
		for _, s := range b.sought[f.vocabulary.finder.literal(int32(i))] {
			f.uses = append(f.uses, s.use)
			f.places[i] |= s.place
			s.in.ids = append(s.in.ids, int32(i))
		}
	}
	f.from = append(f.from, int32(len(f.uses)))
	return f
}

// filterBuilder gathers the literals before they have numbers.
type filterBuilder struct {
	*filter
	sought map[string][]sought // by literal
}

// sought is a use of a literal, where it is looked for, and the set that it is in.
type sought struct {
	use
	place place
	in    *literalSet
}

// matcher adds the literals of a matcher, which may be nil. The rule can match when its
// condition best can.
func (b *filterBuilder) matcher(m *matcher, best *textCondition, rule int32) {
	for i := 0; m != nil && i < len(m.texts); i++ {
		c := &m.texts[i]
		at := soughtIn(c.field)
		c.part = int32(len(b.parts))
		for patterns := range slices.Chunk(c.patterns, partSize) {
			known := part{rule: noRule}
			if c == best {
				known.rule = rule
			}
			id := int32(len(b.parts))
			for j, p := range patterns {
				bit := uint64(1) << j
				if p.literals.empty() || at == 0 {
					known.always |= bit
				}
				if p.also.empty() {
					known.single |= bit
				}
				b.add(&p.literals, at, use{bit, id, usedFirst})
				b.add(&p.also, at, use{bit, id, usedAlso})
			}
			b.parts = append(b.parts, known)
		}
	}
}

func (b *filterBuilder) add(set *literalSet, at place, u use) {
	for _, lit := range set.literals {
		if at != 0 && !strings.Contains(lit, "\x00") { // no text has control codes
			b.sought[lit] = append(b.sought[lit], sought{u, at, set})
		}
	}
}

// selective returns the condition whose patterns all have literals in a text that is
// looked through; of several the one whose shortest literal is longest, and nil when
// there is none.
func (m *matcher) selective() *textCondition {
	var best *textCondition
	length := 0
	for i := range m.texts {
		if soughtIn(m.texts[i].field) == 0 {
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
