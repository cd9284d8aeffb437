package rules

// finder finds all of many literals in one pass over a text. At each byte it asks a
// small table whether the next four bytes begin some literal, and only then compares.
// The table lies in a processor's first cache, which matters more than the fewer
// steps of an automaton whose table does not. Literals have minLiteral bytes at least.
type finder struct {
	literals []string
	fronts   [1024]uint64 // a bit for each front's hash
	heads    [4096]int32  // by hash: 1 + the first literal of a chain; 0: none
	chain    []int32      // by literal: 1 + the next one of its chain; 0: none
	short    bool         // some literal has only three bytes
}

// newFinder returns a finder of the literals; a hit gives the index of one.
func newFinder(literals []string) *finder {
	f := &finder{literals: literals, chain: make([]int32, len(literals))}
	for id, lit := range literals {
		front := uint32(lit[0]) | uint32(lit[1])<<8 | uint32(lit[2])<<16
		if len(lit) > 3 {
			front |= uint32(lit[3]) << 24
		} else {
			f.short = true
		}
		h := hashFront(front)
		f.fronts[h>>22] |= 1 << (h >> 16 & 63)
		f.chain[id] = f.heads[h>>20]
		f.heads[h>>20] = int32(id + 1)
	}
	return f
}

// hashFront spreads the fronts over 32 bits; the upper ones are the best.
func hashFront(front uint32) uint32 { return front * 2654435761 }

// scan calls hit for every occurrence of a literal in text, with where it begins.
func (f *finder) scan(text []byte, hit func(literal int32, start int)) {
	for i := 0; i+3 <= len(text); i++ {
		front := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16
		if f.short {
			f.compare(hashFront(front), text, i, hit)
		}
		if i+4 <= len(text) {
			f.compare(hashFront(front|uint32(text[i+3])<<24), text, i, hit)
		}
	}
}

// compare calls hit for the literals with that hash that begin at i.
func (f *finder) compare(h uint32, text []byte, i int, hit func(literal int32, start int)) {
	if f.fronts[h>>22]&(1<<(h>>16&63)) == 0 {
		return
	}
	for id := f.heads[h>>20]; id > 0; id = f.chain[id-1] {
		if has(text[i:], f.literals[id-1]) {
			hit(id-1, i)
		}
	}
}
