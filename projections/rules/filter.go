package rules

import "math/bits"

// filter tells in one pass over the texts which rules can match at all. A rule whose
// best condition has no literals can always match.
type filter struct {
	words  int        // of 64 rules each
	always []uint64   // rules that can match whatever the text is
	auto   *automaton // over the literals of all other rules
	rules  [][]uint64 // by literal: the rules it lets through
}

// newFilter builds the filter of a set's rules; it reports false when they hold too
// much literal text.
func newFilter(s *Set) (*filter, bool) {
	f := &filter{words: (len(s.rules) + 63) / 64}
	f.always = make([]uint64, f.words)
	index := map[string]int{}
	var literals []string
	for i := range s.rules {
		lits := s.rules[i].match.literals()
		if lits == nil {
			f.always[i/64] |= 1 << (i % 64)
		}
		for _, lit := range lits {
			id, ok := index[lit]
			if !ok {
				id = len(literals)
				index[lit] = id
				literals = append(literals, lit)
				f.rules = append(f.rules, make([]uint64, f.words))
			}
			f.rules[id][i/64] |= 1 << (i % 64)
		}
	}
	var ok bool
	f.auto, ok = newAutomaton(literals)
	return f, ok
}

// candidates sets the bits of the rules that can match a text with these literals.
func (f *filter) candidates(low []byte, into []uint64) []uint64 {
	into = append(into[:0], f.always...)
	f.auto.scan(low, func(literal int32, _ int) {
		for w, mask := range f.rules[literal] {
			into[w] |= mask
		}
	})
	return into
}

// next returns the index of the first set bit from i on, below limit; limit when
// there is none.
func next(set []uint64, i, limit int) int {
	for i < limit {
		if rest := set[i/64] >> (i % 64); rest != 0 {
			return min(i+bits.TrailingZeros64(rest), limit)
		}
		i = (i/64 + 1) * 64
	}
	return limit
}
