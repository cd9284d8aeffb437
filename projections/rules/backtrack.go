package rules

import (
	"regexp/syntax"
	"unicode/utf8"
)

// backtracker runs programs over texts: it tries one way to match after another, in the
// order of package regexp, and ends with the first that does. On the short texts of
// failures that takes a small part of the time that package regexp does. What it cannot
// tell is left to that package: what depends on characters beyond ASCII, and a text with
// too many ways.
type backtracker struct {
	*program
	text    []byte
	steps   int     // that may still be taken
	gaveUp  bool    // package regexp is to tell
	frames  []frame // the ways that are still to be tried, the next one last
	caught  []int   // by slot: the offset that was noted last, or -1; empty when nobody asks
	offsets []int   // room for caught
}

// frame is a way to go on: from an instruction at an offset.
type frame struct {
	pc, at int32
	more   int32 // of a run that was begun: by how many characters it may change; else one of these
}

const (
	fresh    = -1 // the instruction was not begun
	restores = -2 // no way: slot pc gets back what it held, at
)

// How many steps a program may take on a text: some, and more for each byte.
const (
	stepsForText = 256
	stepsForByte = 16
)

// search reports whether p matches somewhere in text, if that is known. Unless caught is
// empty, it is told where the first match and its groups lie, in the way of package regexp.
func (b *backtracker) search(p *program, text []byte, caught []int) (matches, known bool) {
	b.program, b.text, b.caught = p, text, caught
	b.steps, b.gaveUp = stepsForText+stepsForByte*len(text), false
	begin := &p.insts[0]
	for at := 0; at <= len(text); at++ {
		if begin.ends || at < len(text) && begin.first.has(text[at]) {
			if at < len(text) && text[at] >= utf8.RuneSelf {
				return false, false
			}
			if matches := b.match(int32(at)); matches || b.gaveUp {
				return matches, !b.gaveUp
			}
		}
		if p.anchored {
			break
		}
	}
	return false, true
}

// mayGoOn reports whether a match may go on from an instruction at an offset.
func (b *backtracker) mayGoOn(pc, at int32) bool {
	in := &b.insts[pc]
	return in.ends || int(at) < len(b.text) && in.first.has(b.text[at])
}

// match reports whether the program matches from an offset on.
func (b *backtracker) match(at int32) bool {
	pc := int32(0)
	b.frames = b.frames[:0]
	for i := range b.caught {
		b.caught[i] = -1
	}
	b.note(0, at)
	for pc >= 0 && !b.gaveUp {
		in := &b.insts[pc]
		next, ok := in.out, true
		switch in.op {
		case opMatch:
			b.note(1, at)
			return true
		case opText:
			text := b.texts[in.arg]
			ok = has(b.text[at:], text)
			at += int32(len(text))
		case opClass:
			ok = b.takes(in, at)
			at++
		case opGreedy:
			at, ok = b.shorten(pc, at, b.longest(in, at))
		case opLazy:
			at, ok = b.lengthen(pc, at, in.arg)
		case opAlt:
			b.step(1)
			if !b.mayGoOn(next, at) {
				next = in.arg
				ok = b.mayGoOn(next, at)
			} else if b.mayGoOn(in.arg, at) {
				b.frames = append(b.frames, frame{in.arg, at, fresh})
			}
		case opNote:
			b.note(in.arg, at)
		case opAssert:
			ok = b.holds(in.asserts, at)
		case opFail:
			ok = false
		}
		if pc = next; !ok {
			pc, at = b.back()
		}
	}
	return false
}

// step counts steps, and gives up after too many.
func (b *backtracker) step(n int32) {
	b.steps -= int(n)
	b.gaveUp = b.gaveUp || b.steps < 0
}

// takes reports whether an instruction takes the character at an offset, and gives up
// where only package regexp knows.
func (b *backtracker) takes(in *inst, at int32) bool {
	if int(at) == len(b.text) {
		return false
	}
	c := b.text[at]
	if c >= utf8.RuneSelf {
		b.gaveUp = b.gaveUp || in.takes.has(c)
		return false
	}
	return in.takes.has(c)
}

// longest returns how many characters a run takes at most.
func (b *backtracker) longest(in *inst, at int32) int32 {
	rest := b.text[at:]
	n := 0
	for n < len(rest) && n < int(in.arg) && rest[n] < utf8.RuneSelf && in.takes.has(rest[n]) {
		n++
	}
	if n < int(in.arg) {
		b.takes(in, at+int32(n)) // which gives up where it has to
	}
	b.step(int32(n))
	return int32(n)
}

// shorten ends a greedy run, which begins before at, up to so many characters behind that
// offset, as far as the match may go on from there.
func (b *backtracker) shorten(pc, at, more int32) (end int32, ok bool) {
	out := b.insts[pc].out
	for ; more >= 0; more-- {
		if b.mayGoOn(out, at+more) {
			if more > 0 {
				b.frames = append(b.frames, frame{pc, at, more - 1})
			}
			return at + more, true
		}
	}
	return 0, false
}

// lengthen ends a lazy run, which reaches to at, there or up to so many characters behind
// that offset, as soon as the match may go on from there.
func (b *backtracker) lengthen(pc, at, more int32) (end int32, ok bool) {
	in := &b.insts[pc]
	for {
		if b.mayGoOn(in.out, at) {
			if more > 0 {
				b.frames = append(b.frames, frame{pc, at, more})
			}
			return at, true
		}
		if more == 0 || !b.takes(in, at) {
			return 0, false
		}
		at++
		more--
		b.step(1)
	}
}

// back returns the next way to go on; a negative pc when none is left.
func (b *backtracker) back() (pc, at int32) {
	b.step(1)
	for n := len(b.frames) - 1; n >= 0; n = len(b.frames) - 1 {
		f := b.frames[n]
		b.frames = b.frames[:n]
		switch f.more {
		case fresh:
			return f.pc, f.at
		case restores:
			b.caught[f.pc] = int(f.at)
			continue
		}
		in, ok := &b.insts[f.pc], false
		if in.op == opGreedy {
			at, ok = b.shorten(f.pc, f.at, f.more)
		} else if b.takes(in, f.at) {
			at, ok = b.lengthen(f.pc, f.at+1, f.more-1)
		}
		if ok {
			return in.out, at
		}
	}
	return -1, 0
}

// note notes an offset in a slot, if anybody asks.
func (b *backtracker) note(slot, at int32) {
	if len(b.caught) == 0 {
		return
	}
	b.frames = append(b.frames, frame{slot, int32(b.caught[slot]), restores})
	b.caught[slot] = int(at)
}

// holds reports whether assertions hold at an offset.
func (b *backtracker) holds(all syntax.EmptyOp, at int32) bool {
	if all == syntax.EmptyWordBoundary { // the most frequent one
		before := at > 0 && isWordByte(b.text[at-1])
		return before != (int(at) < len(b.text) && isWordByte(b.text[at]))
	}
	before, behind := rune(-1), rune(-1)
	if at > 0 {
		before = rune(b.text[at-1])
	}
	if int(at) < len(b.text) {
		behind = rune(b.text[at])
	}
	return all&^syntax.EmptyOpContext(before, behind) == 0
}
