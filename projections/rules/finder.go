package rules

import (
	"encoding/binary"
	"strings"
)

// finder finds all of many literals in one pass over a text. At each byte it asks small
// tables whether some literal begins there, and only then compares. The tables lie in a
// processor's first cache, which matters more than the fewer steps of an automaton whose
// table does not. Literals have minLiteral bytes at least, and no zero byte.
type finder struct {
	text     string      // the literals one after another, in alphabetical order
	entries  []entry     // by literal, and one more for where the text ends
	fronts   frontSet    // of the literals of four bytes and more
	shorts   frontSet    // of those of three bytes
	heads    [2048]int32 // by hash: 1 + the first family of a chain; 0 when there is none
	families []family
}

// entry is one literal. Four of them fill a line of a processor's cache.
type entry struct {
	key   uint64 // see keyOf
	from  uint32 // where it begins in the text; it ends where the next one begins
	inner int32  // 1 + the longest other literal that it begins with; 0: none
}

// family is the literals that have their front in common.
type family struct {
	front    uint32 // their first four bytes, or all three
	from, to int32  // in the finder's entries
	next     int32  // 1 + the next family of the chain; 0: none
}

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
		f.join(int32(i), frontOf(lit))
	}
	return f
}

// literal returns literal i.
func (f *finder) literal(i int32) string { return f.text[f.entries[i].from:f.entries[i+1].from] }

// join puts a literal, which follows all that have been put, into the family of its front.
func (f *finder) join(i int32, front uint32) {
	if n := len(f.families); n > 0 && f.families[n-1].front == front {
		f.families[n-1].to = i + 1
		return
	}
	if short := front>>24 == 0; short {
		f.shorts.add(front)
	} else {
		f.fronts.add(front)
	}
	head := &f.heads[headOf(front)]
	f.families = append(f.families, family{front: front, from: i, to: i + 1, next: *head})
	*head = int32(len(f.families))
}

// A literal of the usual length is told from all others by its front and its key, which
// are compared as numbers. These are the offsets at which they end.
const (
	frontEnd = 4
	keyEnd   = frontEnd + 8
)

// frontOf returns the first four bytes of a literal, or all three and a 0, as a number.
func frontOf(lit string) uint32 {
	front := uint32(lit[0]) | uint32(lit[1])<<8 | uint32(lit[2])<<16
	if len(lit) > 3 {
		front |= uint32(lit[3]) << 24
	}
	return front
}

// keyOf returns the eight bytes of text behind its front as a number. Numbers have the
// order of the texts; bytes behind the end count as 0.
func keyOf(text []byte) uint64 {
	if len(text) >= keyEnd {
		return binary.BigEndian.Uint64(text[frontEnd:])
	}
	var next [keyEnd - frontEnd]byte
	if len(text) > frontEnd {
		copy(next[:], text[frontEnd:])
	}
	return binary.BigEndian.Uint64(next[:])
}

// frontSet has a bit for the hash of each of some fronts.
type frontSet [1 << 9]uint64

func (s *frontSet) add(front uint32) {
	h := front * spread
	s[h>>23] |= 1 << (h >> 16 & 63)
}

// mayHave reports whether a front may be in the set: another one may have its hash.
func (s *frontSet) mayHave(front uint32) bool {
	h := front * spread
	return s[h>>23]>>(h>>16&63)&1 != 0
}

// spread is a prime close to 2^32 divided by the golden ratio: times it, numbers that are
// close lie far apart. The upper bits of the product are the best hash.
const spread = 2654435761

// headOf returns which chain the family of a front is in.
func headOf(front uint32) uint32 { return front * spread >> 21 }

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
		if short := front & 0xffffff; f.shorts.mayHave(short) {
			dst = f.compare(dst, short, text[i:], offset+i)
		}
		if f.fronts.mayHave(front) {
			dst = f.compare(dst, front, text[i:], offset+i)
		}
	}
	end := len(text) - 3 // where only a literal of three bytes can be
	return f.compare(dst, front>>8, text[end:], offset+end)
}

// compare appends the literals with that front that text begins with.
func (f *finder) compare(dst []occurrence, front uint32, text []byte, at int) []occurrence {
	same := f.familyOf(front)
	if same == nil {
		return dst
	}
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
func (f *finder) lastUpTo(key uint64, same *family) int32 {
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

// familyOf returns the family of a front; nil when there is none.
func (f *finder) familyOf(front uint32) *family {
	for next := f.heads[headOf(front)]; next > 0; {
		same := &f.families[next-1]
		if same.front == front {
			return same
		}
		next = same.next
	}
	return nil
}
