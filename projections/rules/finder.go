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
	entries  []entry      // in alphabetical order
	fronts   [1024]uint64 // a bit for each front's hash
	heads    [4096]int32  // by hash: 1 + the first family of a chain; 0: none
	families []family
	short    bool // some literal has only three bytes
}

// entry is one literal.
type entry struct {
	literal string
	key     uint64 // see keyOf
	mask    uint64 // the bits of key that are bytes of the literal
	id      int32
	inner   int32 // 1 + the longest other entry that the literal begins with; 0: none
}

// begins reports whether the literal begins a text of that key, which has its front.
func (e *entry) begins(text []byte, key uint64) bool {
	return (e.key^key)&e.mask == 0 && len(text) >= len(e.literal) && (len(e.literal) <= keyEnd || has(text, e.literal))
}

// family is the literals that have their front in common.
type family struct {
	front    uint32 // their first four bytes, or all three
	from, to int32  // in the finder's entries
	next     int32  // 1 + the next family of the chain; 0: none
}

// newFinder returns a finder of the literals; an occurrence gives the index of one.
func newFinder(literals []string) *finder {
	f := &finder{}
	for i, lit := range literals {
		if strings.Contains(lit, "\x00") {
			continue // no text has control codes, and fronts and keys are filled up with zeros
		}
		f.entries = append(f.entries, entry{literal: lit, key: keyOf(lit), mask: ^uint64(0) << max(0, 8*(keyEnd-len(lit))), id: int32(i)})
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
	if last := len(f.families) - 1; last >= 0 && f.families[last].front == front {
		f.families[last].to = i + 1
		return
	}
	f.short = f.short || front>>24 == 0
	h := hashFront(front)
	f.fronts[h>>22] |= 1 << (h >> 16 & 63)
	f.families = append(f.families, family{front: front, from: i, to: i + 1, next: f.heads[h>>20]})
	f.heads[h>>20] = int32(len(f.families))
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
	next := f.heads[hashFront(front)>>20]
	for next > 0 && f.families[next-1].front != front {
		next = f.families[next-1].next
	}
	if next == 0 {
		return dst
	}
	// Those are the last literal that is no greater than the text, if the text begins
	// with it, and the literals which that one begins with.
	from, to := f.families[next-1].from, f.families[next-1].to
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
