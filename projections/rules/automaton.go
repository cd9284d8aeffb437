package rules

// automaton finds all of many literals in one pass over a text (Aho-Corasick, with
// every transition worked out beforehand). Bytes that occur in no literal share one
// column of the table.
type automaton struct {
	column [256]uint8
	width  int
	next   []uint16  // state*width+column -> state
	hits   [][]int32 // by state: the literals that end there
	quiet  uint16    // states below it end no literal
}

// maxStates bounds a table's size; a state is a uint16.
const maxStates = 1<<16 - 1

// newAutomaton builds the automaton of the literals; a hit gives the index of one.
// It reports false when the literals need more than maxStates states.
func newAutomaton(literals []string) (*automaton, bool) {
	a := &automaton{width: 1}
	for _, lit := range literals {
		for i := range len(lit) {
			if a.column[lit[i]] == 0 {
				a.column[lit[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	trie := newTrie(a, literals)
	if len(trie.ends) > maxStates {
		return nil, false
	}
	order := trie.link()
	a.number(trie, order)
	return a, true
}

// trie is the automaton while it is built: children by column, 0 for none, since no
// state leads back to the root by a literal's byte.
type trie struct {
	width    int
	children []int32
	fail     []int32
	ends     [][]int32
}

func newTrie(a *automaton, literals []string) *trie {
	t := &trie{width: a.width, children: make([]int32, a.width), ends: make([][]int32, 1)}
	for id, lit := range literals {
		at := int32(0)
		for i := range len(lit) {
			slot := int(at)*t.width + int(a.column[lit[i]])
			if t.children[slot] == 0 {
				t.children[slot] = int32(len(t.ends))
				t.children = append(t.children, make([]int32, t.width)...)
				t.ends = append(t.ends, nil)
			}
			at = t.children[slot]
		}
		t.ends[at] = append(t.ends[at], int32(id))
	}
	t.fail = make([]int32, len(t.ends))
	return t
}

// link fills in failure transitions and merges the hits of suffixes, breadth first.
// It returns the states in that order.
func (t *trie) link() []int32 {
	order := []int32{0}
	for i := 0; i < len(order); i++ {
		state := order[i]
		for col := range t.width {
			slot := int(state)*t.width + col
			child := t.children[slot]
			if child == 0 {
				if state != 0 {
					t.children[slot] = t.children[int(t.fail[state])*t.width+col]
				}
				continue
			}
			if state != 0 {
				t.fail[child] = t.children[int(t.fail[state])*t.width+col]
			}
			t.ends[child] = append(t.ends[child], t.ends[t.fail[child]]...)
			order = append(order, child)
		}
	}
	return order
}

// number gives the states that end no literal the low numbers, so that the scan
// needs one comparison a byte.
func (a *automaton) number(t *trie, order []int32) {
	renamed := make([]uint16, len(order))
	n := uint16(0)
	for _, ending := range []bool{false, true} {
		if ending {
			a.quiet = n
		}
		for _, state := range order {
			if len(t.ends[state]) > 0 == ending {
				renamed[state] = n
				n++
			}
		}
	}
	a.next = make([]uint16, len(order)*a.width)
	a.hits = make([][]int32, len(order))
	for _, state := range order {
		to := int(renamed[state])
		a.hits[to] = t.ends[state]
		for col := range a.width {
			a.next[to*a.width+col] = renamed[t.children[int(state)*a.width+col]]
		}
	}
}

// scan calls hit for every literal that ends in text, with the offset behind it.
func (a *automaton) scan(text []byte, hit func(literal int32, end int)) {
	state := uint16(0)
	for i, b := range text {
		state = a.next[int(state)*a.width+int(a.column[b])]
		if state >= a.quiet {
			for _, id := range a.hits[state] {
				hit(id, i+1)
			}
		}
	}
}
