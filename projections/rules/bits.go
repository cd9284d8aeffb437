package rules

import "math/bits"

// ruleBits is a set of rules, a bit each by its index.
type ruleBits []uint64

// newRuleBits returns an empty set for so many rules.
func newRuleBits(rules int) ruleBits { return make(ruleBits, (rules+63)/64) }

func (b ruleBits) set(i int) { b[i/64] |= 1 << (i % 64) }

// and leaves the rules that are in other too.
func (b ruleBits) and(other ruleBits) {
	other = other[:len(b)]
	for i := range b {
		b[i] &= other[i]
	}
}

// next returns the first rule from i on, below limit; limit when there is none.
func (b ruleBits) next(i, limit int) int {
	for i < limit {
		if rest := b[i/64] >> (i % 64); rest != 0 {
			return min(i+bits.TrailingZeros64(rest), limit)
		}
		i = (i/64 + 1) * 64
	}
	return limit
}
