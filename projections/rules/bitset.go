package rules

import "math/bits"

// bitset is a set of indexes, a bit each.
type bitset []uint64

// newBitset returns an empty set of indexes below n.
func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int) { b[i>>6] |= 1 << (i & 63) }

// and leaves the indexes that are in other too.
func (b bitset) and(other bitset) {
	other = other[:len(b)]
	for i := range b {
		b[i] &= other[i]
	}
}

// next returns the first index from i on, below limit; limit when there is none.
func (b bitset) next(i, limit int) int {
	for i < limit {
		if rest := b[i/64] >> (i % 64); rest != 0 {
			return min(i+bits.TrailingZeros64(rest), limit)
		}
		i = (i/64 + 1) * 64
	}
	return limit
}

// all calls f with each index.
func (b bitset) all(yield func(i int) bool) {
	for at, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(64*at + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}
