package rules

import (
	"math"
	"regexp/syntax"
	"unicode/utf8"
)

// newProgram returns the program of an expression that package regexp takes.
func newProgram(source string) (*program, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	slots := 2 * (tree.MaxCap() + 1)
	from, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	c := compiler{
		program: &program{slots: slots, anchored: from.StartCond()&syntax.EmptyBeginText != 0},
		from:    from,
		classes: make([]*chars, len(from.Inst)),
		made:    map[uint32]int32{},
		sets:    map[chars]*chars{},
	}
	c.add(uint32(from.Start))
	for i := range c.insts {
		var first chars
		c.insts[i].ends = c.lookAhead(&first, int32(i), make([]bool, len(c.insts)))
		c.insts[i].first = c.share(first)
	}
	return c.program, nil
}

// compiler makes a program of what package regexp has compiled.
type compiler struct {
	*program
	from    *syntax.Prog
	classes []*chars         // by instruction of from: what it takes; nil until it was asked for
	made    map[uint32]int32 // the instructions by those of from
	sets    map[chars]*chars // one pointer for equal sets
}

// add appends the instruction at which from goes on at i, and all that follow it, unless
// they are there already. It returns the number of that instruction.
func (c *compiler) add(i uint32) int32 {
	from := &c.from.Inst[i]
	if from.Op == syntax.InstNop {
		return c.add(from.Out)
	}
	if at, ok := c.made[i]; ok {
		return at
	}
	at := int32(len(c.insts))
	c.made[i] = at
	c.insts = append(c.insts, inst{})
	in, out := c.compile(i)
	if in.op != opMatch && in.op != opFail {
		in.out = c.add(out)
	}
	if in.op == opAlt {
		in.arg = c.add(from.Arg)
	}
	c.insts[at] = in
	return at
}

// compile returns the instruction that i is, with what is joined to it, and what follows
// it in from.
func (c *compiler) compile(i uint32) (in inst, out uint32) {
	switch from := &c.from.Inst[i]; from.Op {
	case syntax.InstFail:
		return inst{op: opFail}, 0
	case syntax.InstMatch:
		return inst{op: opMatch}, 0
	case syntax.InstAlt, syntax.InstAltMatch:
		return c.run(i)
	case syntax.InstCapture:
		return inst{op: opNote, arg: int32(from.Arg)}, from.Out
	case syntax.InstEmptyWidth:
		return inst{op: opAssert, asserts: syntax.EmptyOp(from.Arg)}, from.Out
	default:
		return c.text(i)
	}
}

// text returns the class at i, or one instruction for as many as take one certain
// character after another.
func (c *compiler) text(i uint32) (in inst, out uint32) {
	in, out = inst{op: opClass, takes: c.class(i)}, c.from.Inst[i].Out
	var text []byte
	for next := i; c.class(next) != nil; next = c.from.Inst[next].Out {
		char, ok := c.class(next).only()
		if !ok {
			break
		}
		text, out = append(text, char), c.from.Inst[next].Out
	}
	if len(text) > 1 {
		in = inst{op: opText, arg: int32(len(c.texts))}
		c.texts = append(c.texts, string(text))
	}
	return in, out
}

// run returns the choice at i, or one instruction for as many as repeat a class.
func (c *compiler) run(i uint32) (in inst, out uint32) {
	for _, op := range []opcode{opGreedy, opLazy} {
		if takes, most, past := c.repeated(i, op); takes != nil {
			return inst{op: op, arg: most, takes: takes}, past
		}
	}
	return inst{op: opAlt}, c.from.Inst[i].Out
}

// repeated returns the class that the choice at i repeats, how often at most, and what
// follows: of x*, and of x{0,3}, which reads (x(x(x)?)?)?. The class is nil when there
// is none.
func (c *compiler) repeated(i uint32, op opcode) (takes *chars, most int32, past uint32) {
	into, past := c.ways(i, op)
	takes = c.class(into)
	for choice := i; takes != nil && c.class(into) == takes; {
		most++
		next := c.from.Inst[into].Out
		switch next {
		case choice:
			return takes, math.MaxInt32, past
		case past:
			return takes, most, past
		}
		choice = next
		var other uint32
		if into, other = c.ways(choice, op); other != past {
			break
		}
	}
	return nil, 0, 0
}

// ways returns the ways into and past what the choice at i repeats, if it is a choice and
// does so in the manner of op.
func (c *compiler) ways(i uint32, op opcode) (into, past uint32) {
	switch from := &c.from.Inst[i]; {
	case from.Op != syntax.InstAlt && from.Op != syntax.InstAltMatch:
		return i, i
	case op == opLazy:
		return from.Arg, from.Out
	default:
		return from.Out, from.Arg
	}
}

// class returns what the instruction at i takes; nil when it takes no character.
func (c *compiler) class(i uint32) *chars {
	from := &c.from.Inst[i]
	switch from.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
	default:
		return nil
	}
	if c.classes[i] == nil {
		var takes chars
		if takesBeyond(from) {
			takes = beyondASCII
		}
		for char := range byte(utf8.RuneSelf) {
			if from.MatchRune(rune(char)) {
				takes.add(char)
			}
		}
		c.classes[i] = c.share(takes)
	}
	return c.classes[i]
}

// takesBeyond reports whether an instruction may take a character beyond ASCII.
func takesBeyond(from *syntax.Inst) bool {
	switch n := len(from.Rune); {
	case from.Op == syntax.InstRuneAny, from.Op == syntax.InstRuneAnyNotNL:
		return true
	case n == 1 && syntax.Flags(from.Arg)&syntax.FoldCase != 0:
		return true // as the sign for kelvin is a k
	default:
		return n > 0 && from.Rune[n-1] >= utf8.RuneSelf
	}
}

// share returns one pointer for equal sets.
func (c *compiler) share(set chars) *chars {
	if c.sets[set] == nil {
		c.sets[set] = &set
	}
	return c.sets[set]
}

// lookAhead adds the characters with which a match may go on at i, and reports whether it
// may end there without one. What was seen is not looked at again.
func (c *compiler) lookAhead(first *chars, i int32, seen []bool) (ends bool) {
	if seen[i] {
		return false
	}
	seen[i] = true
	switch in := &c.insts[i]; in.op {
	case opMatch:
		return true
	case opFail:
		return false
	case opText:
		first.add(c.texts[in.arg][0])
		return false
	case opClass:
		first.join(in.takes)
		return false
	case opAlt:
		ends = c.lookAhead(first, in.arg, seen)
		return c.lookAhead(first, in.out, seen) || ends
	default:
		if in.takes != nil {
			first.join(in.takes)
		}
		return c.lookAhead(first, in.out, seen)
	}
}
