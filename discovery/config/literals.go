package config

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// pattern is one spelling of a secret.
type pattern struct {
	text string // at least MinSecretBytes
	mark string // what stands in its place
}

// literals finds many patterns in one pass. The first eight bytes of a text select
// the few patterns to compare; a bitmap tells most places that none begins there.
type literals struct {
	patterns []pattern        // those with the same first bytes together, longest first
	first    map[uint64]int32 // first eight bytes -> index of their first pattern
	bitmap   []uint64
	shift    int // so that a hash shifted by it is a bit of bitmap
	longest  int // bytes
}

// newLiterals takes patterns over. Of two with the same text the first one stays.
func newLiterals(patterns []pattern) *literals {
	slices.SortStableFunc(patterns, func(a, b pattern) int {
		return cmp.Or(
			cmp.Compare(a.text[:MinSecretBytes], b.text[:MinSecretBytes]),
			cmp.Compare(len(b.text), len(a.text)),
			cmp.Compare(a.text, b.text),
		)
	})
	patterns = slices.CompactFunc(patterns, func(a, b pattern) bool { return a.text == b.text })
	l := &literals{patterns: patterns, first: make(map[uint64]int32, len(patterns))}
	width := max(10, bits.Len(uint(16*len(patterns)))) // 16 bits for each pattern
	l.bitmap = make([]uint64, 1<<(width-6))
	l.shift = 64 - width
	for i, p := range patterns {
		key := binary.LittleEndian.Uint64([]byte(p.text[:8]))
		if _, known := l.first[key]; !known {
			l.first[key] = int32(i)
		}
		bit := l.hash(key)
		l.bitmap[bit/64] |= 1 << (bit % 64)
		l.longest = max(l.longest, len(p.text))
	}
	return l
}

func (l *literals) hash(key uint64) uint64 {
	return key * 0x9e3779b97f4a7c15 >> l.shift
}

// match returns the longest pattern at the start of b, which has eight bytes at
// least.
func (l *literals) match(b []byte) (pattern, bool) {
	key := binary.LittleEndian.Uint64(b)
	bit := l.hash(key)
	if l.bitmap[bit/64]>>(bit%64)&1 == 0 {
		return pattern{}, false
	}
	i, ok := l.first[key]
	if !ok {
		return pattern{}, false
	}
	for _, p := range l.patterns[i:] {
		if string(b[:8]) != p.text[:8] {
			break
		}
		if len(b) >= len(p.text) && string(b[:len(p.text)]) == p.text {
			return p, true
		}
	}
	return pattern{}, false
}

// literalFilter masks the patterns of a set in a text that comes in pieces. Matches
// that overlap, and neighbours with the same mark, become one mark.
type literalFilter struct {
	set  *literals // nil: none
	held []byte    // not settled yet: a pattern may begin here
	mask int       // where in held the last match ends; -1: before held
	mark string    // the mark of that match
}

func (f *literalFilter) write(dst, p []byte) []byte {
	if f.set == nil || f.set.longest == 0 {
		return append(dst, p...)
	}
	f.held = append(f.held, p...)
	// A place is settled once the longest pattern would fit in behind it.
	return f.settle(dst, len(f.held)-f.set.longest+1)
}

func (f *literalFilter) finish(dst []byte) []byte {
	dst = f.settle(dst, len(f.held)-MinSecretBytes+1)
	dst = append(dst, f.held[min(max(f.mask, 0), len(f.held)):]...)
	f.held, f.mask, f.mark = nil, 0, ""
	return dst
}

// settle decides the places before end and appends what comes of them.
func (f *literalFilter) settle(dst []byte, end int) []byte {
	if end <= 0 {
		return dst
	}
	masked := f.mask
	plain := min(max(masked, 0), end) // start of what is to be copied
	for i := range end {
		p, ok := f.set.match(f.held[i:])
		if !ok {
			continue
		}
		if i > masked || i == masked && p.mark != f.mark {
			dst = append(dst, f.held[plain:i]...)
			dst = append(dst, p.mark...)
			f.mark = p.mark
		}
		masked = max(masked, i+len(p.text))
		plain = min(masked, end)
	}
	dst = append(dst, f.held[plain:end]...)
	f.held = append(f.held[:0], f.held[end:]...)
	f.mask = max(-1, masked-end)
	return dst
}
