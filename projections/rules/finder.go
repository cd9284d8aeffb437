package rules

import (
	"encoding/binary"
	"slices"
	"strings"
)

// finder finds all of many literals in one pass over a text. At each byte it asks a
// small table whether the next four bytes begin some literal, and only then compares.
// The table lies in a processor's first cache, which matters more than the fewer
// steps of an automaton whose table does not. Literals have minLiteral bytes at least.
type finder struct {
	entries []entry      // in alphabetical order
	fronts  [1024]uint64 // a bit for each front's hash
	heads   [4096]family // by hash: the first family of a chain; its front is 0 when there is none
	others  []family     // of the chains
	short   bool         // some literal has only three bytes
}

// entry is one literal. Two of them fill a line of a processor's cache.
type entry struct {
	literal string
	key     uint64 // see keyOf
	id      int32
	inner   int32 // 1 + the longest other entry that the literal begins with; 0: none
}

// begins reports whether the literal begins a text of that key, which has its front.
func (e *entry) begins(text []byte, key uint64) bool {
	beyond := 8 * max(0, keyEnd-len(e.literal)) // the bits of key that are no bytes of the literal
	return (e.key^key)>>beyond == 0 && len(text) >= len(e.literal) && (len(e.literal) <= keyEnd || has(text, e.literal))
}

// family is the literals that have their front in common.
type family struct {
	front    uint32 // their first four bytes, or all three
	from, to int32  // in the finder's entries
	next     int32  // 1 + the next family of the chain, in the finder's others; 0: none
}

// newFinder returns a finder of the literals; an occurrence gives the index of one.
func newFinder(literals []string) *finder {
	f := &finder{}
	for i, lit := range literals {
		if strings.Contains(lit, "\x00") {
			continue // no text has control codes, and fronts and keys are filled up with zeros
		}
		f.entries = append(f.entries, entry{literal: lit, key: keyOf(lit), id: int32(i)})
	}
	slices.SortStableFunc(f.entries, func(a, b entry) int { return strings.Compare(a.literal, b.literal) })
	for i := range f.entries {
		e := &f.entries[i]
		for j := int32(i); j > 0 && e.inner == 0; j = f.entries[j-1].inner {
			if strings.HasPrefix(e.literal, f.entries[j-1].literal) {
				e.inner = j
			}
		}
		f.add(int32(i), frontOf(e.literal))
	}
	return f
}

// add puts an entry, behind all before it, into the family of its front.
func (f *finder) add(i int32, front uint32) {
	h := hashFront(front)
	f.short = f.short || front>>24 == 0
	f.fronts[h>>22] |= 1 << (h >> 16 & 63)
	head := &f.heads[h>>20]
	switch {
	case head.front == front:
		head.to = i + 1
	case head.front == 0:
		*head = family{front: front, from: i, to: i + 1}
	default: // the latest family comes first, which is the one that grows
		f.others = append(f.others, *head)
		*head = family{front: front, from: i, to: i + 1, next: int32(len(f.others))}
	}
}

// Where the front of a literal ends, and the part of it that its key holds, in bytes.
const (
	frontEnd = 4
	keyEnd   = frontEnd + 8
)

// frontOf returns the first four bytes of a literal; the last one is 0 when it has
// but three.
func frontOf(lit string) uint32 {
	front := uint32(lit[0]) | uint32(lit[1])<<8 | uint32(lit[2])<<16
	if len(lit) > 3 {
		front |= uint32(lit[3]) << 24
	}
	return front
}

// keyOf returns the eight bytes behind the front of s as a number, so that numbers are
// in the order of the texts; bytes behind the end count as 0.
func keyOf[text string | []byte](s text) uint64 {
	var next [8]byte
	if len(s) > frontEnd {
		copy(next[:], s[frontEnd:])
	}
	return binary.BigEndian.Uint64(next[:])
}

// hashFront spreads the fronts over 32 bits; the upper ones are the best.
func hashFront(front uint32) uint32 { return front * 2654435761 }

// occurrence is where a literal lies.
type occurrence struct{ literal, start, end int32 }

// find appends every occurrence of a literal in text, by where it begins, to dst. The
// text begins at an offset, from which places are counted.
func (f *finder) find(dst []occurrence, text []byte, offset int) []occurrence {
	for i := 0; i+3 <= len(text); i++ {
		front := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16
		if f.short && f.begins(front) {
			dst = f.compare(dst, front, text[i:], offset+i)
		}
		if i+4 > len(text) {
			break
		}
		if front |= uint32(text[i+3]) << 24; f.begins(front) {
			dst = f.compare(dst, front, text[i:], offset+i)
		}
	}
	return dst
}

// begins reports whether a literal may have that front.
func (f *finder) begins(front uint32) bool {
	h := hashFront(front)
	return f.fronts[h>>22]&(1<<(h>>16&63)) != 0
}

// compare appends the literals with that front that text begins with.
func (f *finder) compare(dst []occurrence, front uint32, text []byte, at int) []occurrence {
	same := &f.heads[hashFront(front)>>20]
	for same.front != front {
		if same.next == 0 {
			return dst
		}
		same = &f.others[same.next-1]
	}
	// Those are the last literal that is no greater than the text, if the text begins
	// with it, and the literals which that one begins with.
	from, to := same.from, same.to
	first, key := from, keyOf(text)
	for from < to {
		mid := (from + to) / 2
		if e := &f.entries[mid]; e.key < key || e.key == key && e.literal <= string(text) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	for from > first {
		e := &f.entries[from-1]
		if e.begins(text, key) {
			dst = append(dst, occurrence{e.id, int32(at), int32(at + len(e.literal))})
		}
		from = e.inner
	}
	return dst
}
