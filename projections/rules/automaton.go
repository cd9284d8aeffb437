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
	anchored bool       // it matches at the beginning of a text alone
	certain  int        // a match of so many bytes has no gap that is too wide
	class    [256]uint8 // of characters that the program does not tell apart; the last: no ASCII
	sample   []rune     // by class: one of its characters; the one before the last stands for the end

	// known is what the steps were when a text last led to a new one. It never changes, so
	// that readers need no lock, and a byte a step keeps many automata in a processor's
	// second cache.
	known atomic.Pointer[[]uint8]

	mu     sync.Mutex // guards what follows
	steps  []uint8    // by state, in rows of one entry a class: the state that follows
	states []state
	ids    map[string]uint8 // of the states
}

// state is what an automaton knows of the text so far.
type state struct {
	insts []uint32 // where the program may go on, in order
	prev  rune     // stands for the last character; -1 at the beginning
}

// What a step may lead to that is no state of its own, and the first that is one.
const (
	stepUnknown uint8 = iota // not made yet
	stepDead                 // nothing that follows leads to a match
	stepMatched
	stepLeft // to package regexp
	stepFirst
)

// maxStates bounds the states of one automaton, which take about half a KiB each.
const maxStates = math.MaxUint8

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
		states: make([]state, stepFirst), ids: map[string]uint8{},
	}
	a.classify()
	a.steps = make([]uint8, int(stepFirst)*len(a.sample))
	a.state([]uint32{uint32(prog.Start)}, -1)
	a.publish()
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
	a.sample = append(a.sample, -1, utf8.RuneError)
	for c := utf8.RuneSelf; c < len(a.class); c++ {
		a.class[c] = uint8(len(a.sample) - 1)
	}
}

// match reports whether the expression matches in text. It is known of ASCII alone,
// and of most texts.
func (a *automaton) match(text []byte) (matches, known bool) {
	at, n := a.run(text)
	if at == stepUnknown {
		at, n = a.learn(text)
	}
	switch at {
	case stepMatched:
		return true, n <= a.certain
	case stepLeft:
		return false, false
	default:
		return false, true
	}
}

// run takes the steps that are known. It returns what they lead to and behind how many
// bytes.
func (a *automaton) run(text []byte) (at uint8, n int) {
	steps, width := *a.known.Load(), len(a.sample)
	at = stepFirst
	for i, c := range text {
		if at = steps[int(at)*width+int(a.class[c])]; at < stepFirst {
			return at, i
		}
	}
	return steps[int(at)*width+a.end()], len(text)
}

// end is the class of what stands behind the last character of a text.
func (a *automaton) end() int { return len(a.sample) - 2 }

// learn does what run does, and makes the steps that are not known.
func (a *automaton) learn(text []byte) (at uint8, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.publish()
	at = stepFirst
	for ; at >= stepFirst && n <= len(text); n++ {
		class := a.end()
		if n < len(text) {
			class = int(a.class[text[n]])
		}
		step := int(at)*len(a.sample) + class
		if a.steps[step] == stepUnknown {
			next := a.follow(a.states[at], a.sample[class]) // which may move the steps
			a.steps[step] = next
		}
		at = a.steps[step]
	}
	return at, n - 1
}

// publish makes the steps known.
func (a *automaton) publish() {
	known := slices.Clone(a.steps)
	a.known.Store(&known)
}

// follow returns what r leads to from a state.
func (a *automaton) follow(s state, r rune) uint8 {
	if r == utf8.RuneError {
		return stepLeft
	}
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
	return a.state(slices.Compact(insts), r)
}

// state returns the number of a state, a new one if need be; stepLeft when it is one too
// many.
func (a *automaton) state(insts []uint32, prev rune) uint8 {
	key := binary.LittleEndian.AppendUint32(nil, uint32(prev))
	for _, i := range insts {
		key = binary.LittleEndian.AppendUint32(key, i)
	}
	if id, ok := a.ids[string(key)]; ok {
		return id
	}
	if len(a.states) > maxStates {
		return stepLeft
	}
	id := uint8(len(a.states))
	a.states = append(a.states, state{insts, prev})
	a.ids[string(key)] = id
	a.steps = append(a.steps, make([]uint8, len(a.sample))...)
	return id
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
