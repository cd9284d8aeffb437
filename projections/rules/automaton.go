package rules

import (
	"encoding/binary"
	"math"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// automaton tells whether a regular expression matches somewhere in a text of ASCII.
// It takes one step a byte, where package regexp follows every way to match. Its
// states are made when a text first leads to them, and bounded: a text that needs one
// too many is left to package regexp. Any number of goroutines may use it.
//
// It does not count how wide a gap such as .{0,60} is, which would take a state for
// each width. So a match is known when it is too short to have a gap that is too wide.
type automaton struct {
	prog     *syntax.Prog
	anchored bool                 // it matches at the beginning of a text alone
	certain  int                  // a match of so many bytes has no gap that is too wide
	class    [utf8.RuneSelf]uint8 // of characters that the program does not tell apart
	sample   []rune               // by class: one of its characters; the last stands for the end

	// steps leads from a state to the next, in rows of one entry a class; a state is
	// the offset of its row. Readers need no lock: an entry once made stays, and a
	// longer list begins with the entries of the shorter one.
	steps atomic.Pointer[[]atomic.Uint32]

	mu     sync.Mutex // guards what follows, and the making of steps
	states []state    // by row; there is none for the first
	rows   map[string]uint32
}

// state is what an automaton knows of the text so far.
type state struct {
	insts []uint32 // where the program may go on, in order
	prev  rune     // stands for the last character; -1 at the beginning
}

// What steps holds that is no row. Rows begin behind these, since every automaton tells
// letters, digits and the ends of lines apart and so has wider rows.
const (
	stepUnknown uint32 = iota // not made yet
	stepDead                  // nothing that follows leads to a match
	stepMatched
)

// maxStates bounds the states of one automaton, which take about half a KiB each.
const maxStates = 256

// minGap is the least width of a repetition that is taken for a gap, in characters.
const minGap = 8

// newAutomaton returns an automaton of an expression that package regexp takes.
func newAutomaton(source string) (*automaton, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	certain := math.MaxInt
	if play := widenGaps(tree); play < math.MaxInt {
		certain = play + shortestMatch(tree)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	a := &automaton{
		prog: prog, certain: certain, anchored: prog.StartCond()&syntax.EmptyBeginText != 0,
		states: []state{{}}, rows: map[string]uint32{},
	}
	a.classify()
	a.row([]uint32{uint32(prog.Start)}, -1)
	return a, nil
}

// widenGaps lifts the bounds of the gaps in a tree, and returns by how many characters
// the one with the least play may grow.
func widenGaps(re *syntax.Regexp) (play int) {
	play = math.MaxInt
	if re.Op == syntax.OpRepeat && re.Max >= minGap {
		play, re.Max = re.Max-re.Min, -1
	}
	for _, sub := range re.Sub {
		play = min(play, widenGaps(sub))
	}
	return play
}

// classify divides ASCII into the characters that the program tells apart.
func (a *automaton) classify() {
	var begins [utf8.RuneSelf + 1]bool
	cut := func(from, to rune) {
		if from < utf8.RuneSelf {
			begins[from] = true
			begins[min(to+1, utf8.RuneSelf)] = true
		}
	}
	cut('\n', '\n') // a line's end and the bounds of words are told apart in any case
	for _, word := range []string{"09", "AZ", "__", "az"} {
		cut(rune(word[0]), rune(word[1]))
	}
	for i := range a.prog.Inst {
		inst := &a.prog.Inst[i]
		switch {
		case inst.Op != syntax.InstRune && inst.Op != syntax.InstRune1:
		case len(inst.Rune) == 1:
			r := inst.Rune[0]
			cut(r, r)
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				cut(other, other)
			}
		default:
			for j := 0; j+1 < len(inst.Rune); j += 2 {
				cut(inst.Rune[j], inst.Rune[j+1])
			}
		}
	}
	for r := range rune(utf8.RuneSelf) {
		if r == 0 || begins[r] {
			a.sample = append(a.sample, r)
		}
		a.class[r] = uint8(len(a.sample) - 1)
	}
	a.sample = append(a.sample, -1)
}

// match reports whether the expression matches in text. It is known of ASCII alone,
// and of most texts.
func (a *automaton) match(text []byte) (matches, known bool) {
	steps := *a.steps.Load()
	end := uint32(len(a.sample) - 1)
	at := end + 1 // the first row
	i := 0
	for ; at > stepMatched && i <= len(text); i++ {
		class := end
		if i < len(text) {
			if text[i] >= utf8.RuneSelf {
				return false, false
			}
			class = uint32(a.class[text[i]])
		}
		next := steps[at+class].Load()
		if next == stepUnknown {
			if next = a.extend(at, class); next == stepUnknown {
				return false, false
			}
			steps = *a.steps.Load()
		}
		at = next
	}
	if at != stepMatched {
		return false, true
	}
	return true, i-1 <= a.certain // the last byte came behind the match
}

// extend makes the step that a character of the class leads to from a state;
// stepUnknown when that needs a state too many.
func (a *automaton) extend(at, class uint32) uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := (*a.steps.Load())[at+class].Load()
	if next == stepUnknown {
		next = a.follow(a.states[int(at)/len(a.sample)], a.sample[class])
		(*a.steps.Load())[at+class].Store(next)
	}
	return next
}

// follow returns what r leads to from a state.
func (a *automaton) follow(s state, r rune) uint32 {
	t := threads{prog: a.prog, holds: syntax.EmptyOpContext(s.prev, r), seen: make([]bool, len(a.prog.Inst))}
	for _, i := range s.insts {
		t.add(i)
	}
	if t.matched {
		return stepMatched
	}
	if r < 0 {
		return stepDead
	}
	var insts []uint32
	if !a.anchored {
		insts = append(insts, uint32(a.prog.Start))
	}
	for _, i := range t.waiting {
		if inst := &a.prog.Inst[i]; inst.MatchRune(r) {
			insts = append(insts, inst.Out)
		}
	}
	switch {
	case len(insts) == 0:
		return stepDead
	case r == '\n':
	case syntax.IsWordChar(r):
		r = 'a'
	default:
		r = ' '
	}
	slices.Sort(insts)
	return a.row(slices.Compact(insts), r)
}

// row returns the row of a state, a new one if need be; stepUnknown when it is one
// too many.
func (a *automaton) row(insts []uint32, prev rune) uint32 {
	key := binary.LittleEndian.AppendUint32(nil, uint32(prev))
	for _, i := range insts {
		key = binary.LittleEndian.AppendUint32(key, i)
	}
	if at, ok := a.rows[string(key)]; ok {
		return at
	}
	if len(a.states) > maxStates {
		return stepUnknown
	}
	at := uint32(len(a.states) * len(a.sample))
	a.states = append(a.states, state{insts, prev})
	a.rows[string(key)] = at
	a.lengthen(int(at) + len(a.sample))
	return at
}

// lengthen makes room for so many steps, and twice that, so that it is seldom done.
func (a *automaton) lengthen(n int) {
	var steps []atomic.Uint32
	if old := a.steps.Load(); old != nil {
		steps = *old
	}
	if n <= len(steps) {
		return
	}
	longer := make([]atomic.Uint32, 2*n)
	for i := range steps {
		longer[i].Store(steps[i].Load())
	}
	a.steps.Store(&longer)
}

// threads gathers the instructions of a program that wait for a character.
type threads struct {
	prog    *syntax.Prog
	holds   syntax.EmptyOp // the assertions that hold before that character
	seen    []bool         // by instruction
	waiting []uint32
	matched bool
}

// add gathers what instruction i leads to.
func (t *threads) add(i uint32) {
	if t.seen[i] || t.matched {
		return
	}
	t.seen[i] = true
	switch inst := &t.prog.Inst[i]; inst.Op {
	case syntax.InstMatch:
		t.matched = true
	case syntax.InstAlt, syntax.InstAltMatch:
		t.add(inst.Out)
		t.add(inst.Arg)
	case syntax.InstCapture, syntax.InstNop:
		t.add(inst.Out)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(inst.Arg)&^t.holds == 0 {
			t.add(inst.Out)
		}
	case syntax.InstFail:
	default:
		t.waiting = append(t.waiting, i)
	}
}
