package rules

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// finder finds all of many literals in one pass over a text. At each byte it asks small
// tables whether some literal begins there, and only then compares. The tables lie in a
// processor's first cache, which matters more than the fewer steps of an automaton whose
// table does not. Literals have minLiteral bytes at least, and no zero byte.
type finder struct {
	text    string  // the literals one after another, in alphabetical order
	entries []entry // by literal, and one more for where the text ends
	threes  hashSet // of the literals of three bytes
	fronts  hashSet // of the first four bytes of the others
	eights  hashSet // of the first eight bytes of the long ones
	briefs  []brief // the literals that are not long
	brief   families
	long    families // of entries
}

// entry is one literal. Four of them fill a line of a processor's cache.
type entry struct {
	key   uint64 // see keyOf
	from  uint32 // where it begins in the text; it ends where the next one begins
	inner int32  // 1 + the longest other literal that it begins with; 0: none
}

// brief is a literal of less than eight bytes.
type brief struct {
	word    uint64 // the literal as wordOf gives it
	literal int32
	size    int32
}

// isLong reports whether a literal has its first eight bytes for a family.
func isLong(lit string) bool { return len(lit) >= wordSize }

// newFinder returns a finder of literals that are in alphabetical order, each once. An
// occurrence gives the index of one.
func newFinder(literals []string) *finder {
	f := &finder{text: strings.Join(literals, ""), entries: make([]entry, 1, len(literals)+1)}
	for i, lit := range literals {
		e := &f.entries[i]
		e.key = keyOf([]byte(lit))
		// What lit begins with is the literal before it, or what that one begins with.
		for j := int32(i); j > 0 && e.inner == 0; j = f.entries[j-1].inner {
			if strings.HasPrefix(lit, literals[j-1]) {
				e.inner = j
			}
		}
		f.entries = append(f.entries, entry{from: e.from + uint32(len(lit))})
	}
	f.index(literals)
	return f
}

// index puts the literals into sets and families.
func (f *finder) index(literals []string) {
	var fronts []uint64
	words := make([]uint64, len(literals))
	for i, lit := range literals {
		word := wordOf([]byte(lit))
		if len(lit) < frontSize {
			f.threes.add(word)
		} else {
			f.fronts.add(word & frontMask)
		}
		if isLong(lit) {
			f.eights.add(word)
			words[i] = word
			continue
		}
		fronts = append(fronts, word&frontMask)
		f.briefs = append(f.briefs, brief{word, int32(i), int32(len(lit))})
	}
	f.brief, f.long = newFamilies(fronts), newFamilies(words)
}

// literal returns literal i.
func (f *finder) literal(i int32) string { return f.text[f.entries[i].from:f.entries[i+1].from] }

// A word is eight bytes of text as a number, the first byte the lowest. A front is four.
const (
	wordSize  = 8
	frontSize = 4
	frontMask = 1<<(8*frontSize) - 1
	threeMask = 1<<(8*minLiteral) - 1
)

// wordOf returns the first word of text. Bytes behind the end count as 0.
func wordOf(text []byte) uint64 {
	if len(text) >= wordSize {
		return binary.LittleEndian.Uint64(text)
	}
	var padded [wordSize]byte
	copy(padded[:], text)
	return binary.LittleEndian.Uint64(padded[:])
}

// keyOf returns the eight bytes behind the first word of a text as a number. Numbers have
// the order of the texts; bytes behind the end count as 0.
func keyOf(text []byte) uint64 {
	if len(text) >= keyEnd {
		return binary.BigEndian.Uint64(text[wordSize:])
	}
	var padded [keyEnd - wordSize]byte
	if len(text) > wordSize {
		copy(padded[:], text[wordSize:])
	}
	return binary.BigEndian.Uint64(padded[:])
}

// keyEnd is where the key of a text ends.
const keyEnd = wordSize + 8

// occurrence is where a literal lies.
type occurrence struct{ literal, start, end int32 }

// find appends every occurrence of a literal in text, by where it begins, to dst. The
// text begins at an offset, from which places are counted.
func (f *finder) find(dst []occurrence, text []byte, offset int) []occurrence {
	if len(text) < minLiteral {
		return dst
	}
	front := uint32(text[0])<<8 | uint32(text[1])<<16 | uint32(text[2])<<24
	for i, c := range text[3:] { // the last byte of the front at i
		front = front>>8 | uint32(c)<<24
		if three := uint64(front & threeMask); f.threes.mayHave(three) {
			dst = f.addBriefs(dst, three, three, offset+i)
		}
		if f.fronts.mayHave(uint64(front)) {
			word := wordOf(text[i:])
			dst = f.addBriefs(dst, uint64(front), word, offset+i)
			if f.eights.mayHave(word) {
				dst = f.addLong(dst, word, text[i:], offset+i)
			}
		}
	}
	three := uint64(front >> 8) // behind it no other literal can begin
	return f.addBriefs(dst, three, three, offset+len(text)-minLiteral)
}

// addBriefs appends the literals of less than eight bytes that have that front, and begin
// the text at an offset, of which word is the first one.
func (f *finder) addBriefs(dst []occurrence, front, word uint64, at int) []occurrence {
	same := f.brief.of(front)
	if same.to == 0 {
		return dst
	}
	for _, b := range f.briefs[same.from:same.to] {
		if (b.word^word)<<(8*(wordSize-b.size)) == 0 {
			dst = append(dst, occurrence{b.literal, int32(at), int32(at) + b.size})
		}
	}
	return dst
}

// addLong appends the literals of eight bytes and more that text, whose first word is
// given, begins with.
func (f *finder) addLong(dst []occurrence, word uint64, text []byte, at int) []occurrence {
	same := f.long.of(word)
	// They are the last literal that is not greater than the text, if the text begins with
	// it, and the literals that it begins with itself.
	key := keyOf(text)
	for i := f.lastUpTo(key, same); i > same.from; {
		e := &f.entries[i-1]
		size := int(f.entries[i].from - e.from)
		unused := 8 * max(0, keyEnd-size) // bits of the key that are no bytes of the literal
		switch {
		case (e.key^key)>>unused == 0 && len(text) >= size && (size <= keyEnd || has(text, f.literal(i-1))):
			dst = append(dst, occurrence{i - 1, int32(at), int32(at + size)})
			i = e.inner
		case e.key == key: // what the literal has behind its key may be greater than the text
			i--
		default:
			i = e.inner
		}
	}
	return dst
}

// lastUpTo returns 1 + the last literal of a family whose key is not greater; the
// family's beginning when there is none. The compiler makes the comparison no branch,
// which a processor would foresee every other time.
func (f *finder) lastUpTo(key uint64, same family) int32 {
	i, n := same.from, same.to-same.from
	for n > 0 {
		half := (n + 1) / 2
		if f.entries[i+half-1].key <= key {
			i += half
		}
		n -= half
	}
	return i
}

// hashSet has a bit for the hash of each of some words.
type hashSet [1 << 9]uint64

func (s *hashSet) add(word uint64) {
	h := word * spread
	s[h>>55] |= 1 << (h >> 49 & 63)
}

// mayHave reports whether a word may be in the set: another one may have its hash.
func (s *hashSet) mayHave(word uint64) bool {
	h := word * spread
	return s[h>>55]>>(h>>49&63)&1 != 0
}

// spread is a prime close to 2^64 divided by the golden ratio: times it, numbers that are
// close lie far apart. The upper bits of the product are the best hash.
const spread = 11400714819323198549

// families are literals that begin alike, in an order in which they are neighbours, and
// found by how they begin.
type families struct {
	slots []family // by hash, else one of the next; at least half of them are empty
	shift uint     // of a hash, to the bits that number the slots
}

// family is the literals that begin with the same word or front, which is not 0 as an
// empty slot's is.
type family struct {
	begin    uint64
	from, to int32 // in that order
}

// newFamilies returns the families of literals in an order, by how each begins; 0 for those
// that belong to none.
func newFamilies(begins []uint64) families {
	var all []family
	for i, begin := range begins {
		switch n := len(all); {
		case begin == 0:
			continue
		case n == 0 || all[n-1].begin != begin:
			all = append(all, family{begin: begin, from: int32(i)})
		}
		all[len(all)-1].to = int32(i) + 1
	}
	size := bits.Len(uint(2 * len(all)))
	f := families{slots: make([]family, 1<<size), shift: uint(64 - size)}
	for _, one := range all {
		*f.slot(one.begin) = one
	}
	return f
}

// slot returns the slot of a beginning, or the empty one where it would be.
func (f *families) slot(begin uint64) *family {
	for i := begin * spread >> (f.shift & 63); ; i++ {
		if one := &f.slots[i&uint64(len(f.slots)-1)]; one.begin == begin || one.begin == 0 {
			return one
		}
	}
}

// of returns the family of a beginning, which is empty when there is none.
func (f *families) of(begin uint64) family { return *f.slot(begin) }
