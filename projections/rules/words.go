package rules

import "strings"

// wordSet is a set of words. Most words that are asked for are in none: the length with the
// first letter, and with the last, tells.
type wordSet struct {
	words       map[string]bool
	first, last [256]uint32 // by letter: a bit for each length, the last for all beyond
}

// newWordSet returns the set of the words of a list, between which there is space.
func newWordSet(list string) *wordSet {
	s := &wordSet{words: map[string]bool{}}
	for w := range strings.FieldsSeq(list) {
		s.words[w] = true
		s.first[w[0]] |= lengthBit(len(w))
		s.last[w[len(w)-1]] |= lengthBit(len(w))
	}
	return s
}

// has reports whether the set has the word, written in the same case.
func (s *wordSet) has(w []byte) bool {
	return len(w) > 0 && s.first[w[0]]&s.last[w[len(w)-1]]&lengthBit(len(w)) != 0 && s.words[string(w)]
}

// hasFold is has for a word in any case of ASCII.
func (s *wordSet) hasFold(w []byte) bool {
	var low [maxWordBytes]byte
	if len(w) > len(low) {
		return false
	}
	lowerBytes(low[:], w)
	return s.has(low[:len(w)])
}

// maxWordBytes bounds the words of a set.
const maxWordBytes = 32

func lengthBit(n int) uint32 { return 1 << min(n, 31) }
