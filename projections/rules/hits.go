package rules

import "regexp/syntax"

// hits is where the literals of a filter occur in one reading.
type hits struct {
	filter *filter  // nil: every rule can match, and every pattern is tried
	rules  ruleBits // the rules that can match
	list   []hit
	last   []int32 // by literal: 1 + the index in list of its last hit; 0: none
	tell   []told  // by condition
	told   []int32 // the conditions that something is told of
}

// told says of which patterns of a condition, a bit each, some literal occurs, and some
// literal of those besides.
type told [2]uint64

// worth returns which patterns can match as far as literals tell, given those that have
// one set of literals at most.
func (t *told) worth(single uint64) uint64 { return t[0] & (t[1] | single) }

// hit is an occurrence of a literal in a reading's buffer, and the one before it.
type hit struct {
	occurrence
	before int32 // 1 + its index; 0: none
}

// find fills h with what f finds in the texts of r, for a set of so many rules.
func (h *hits) find(f *filter, r *reading, rules int) {
	for i := range h.list {
		h.last[h.list[i].literal] = 0
	}
	for _, c := range h.told {
		h.tell[c] = told{}
	}
	h.filter, h.list, h.told, h.rules = f, h.list[:0], h.told[:0], h.rules[:0]
	if f == nil {
		for range (rules + 63) / 64 {
			h.rules = append(h.rules, ^uint64(0))
		}
		return
	}
	if literals := len(f.places); len(h.last) < literals {
		h.last = make([]int32, literals)
	}
	if len(h.tell) < len(f.conditions) {
		h.tell = make([]told, len(f.conditions))
	}
	h.gather(r)
	h.rules = append(h.rules, f.always...)
	for _, i := range h.told {
		if c := &f.conditions[i]; c.rule != noRule && h.tell[i].worth(c.single) != 0 {
			h.rules.set(int(c.rule))
		}
	}
}

// gather adds the literals that were found on the lines, at their places in the client's
// text and in the copies of the lines, which are the texts that are looked through.
func (h *hits) gather(r *reading) {
	shown, covered := r.fields[textError], false
	for i := range r.lines {
		l := &r.lines[i]
		shows := shown.start <= l.start && l.end <= shown.end
		covered = covered || shows
		found := r.occurrences[l.found.start:l.found.end]
		for j := range found {
			o := &found[j]
			seen := h.filter.places[o.literal]
			if shows && seen&inError != 0 {
				h.add(*o)
			}
			if l.copy > 0 && seen&inBlocks != 0 && int(o.start) >= l.content {
				moved := int32(l.copy - l.content)
				h.add(occurrence{o.literal, o.start + moved, o.end + moved})
			}
		}
	}
	if !covered { // a body's words stand in for the body in the client's text
		n := len(r.occurrences)
		r.occurrences = h.filter.vocabulary.finder.find(r.occurrences, r.lower(shown), shown.start)
		for _, o := range r.occurrences[n:] {
			if h.filter.places[o.literal]&inError != 0 {
				h.add(o)
			}
		}
	}
}

// add notes an occurrence of a literal, and what it tells.
func (h *hits) add(o occurrence) {
	last := &h.last[o.literal]
	before := *last
	h.list = append(h.list, hit{o, before})
	*last = int32(len(h.list))
	if before > 0 {
		return
	}
	uses := h.filter.usesOf(o.literal)
	for i := range uses {
		u := &uses[i]
		t := &h.tell[u.condition]
		if *t == (told{}) {
			h.told = append(h.told, u.condition)
		}
		t[u.also&1] |= u.mask
	}
}

// found is where a pattern matched: somewhere in the text at span, or from its very
// beginning on.
type found struct {
	pattern *pattern // nil: nowhere
	span
	anchored bool
}

// match looks for the first match of the pattern in the field's text, which lies at s.
func (h *hits) match(p *pattern, r *reading, f textField, s span) found {
	if h.filter == nil {
		return p.found(p.re.regexp().Match(p.of(r, s)), s)
	}
	if p.literals.empty() || !scanned(f) {
		return p.found(p.possible(r, s) && p.re.matches(&r.tries, p.of(r, s)), s)
	}
	var first found
	tries := 0
	var within span // the part of the text that was tried last
	for _, literal := range p.literals.ids {
		for i := h.last[literal]; i > 0; i = h.list[i-1].before {
			at := &h.list[i-1]
			if int(at.start) < s.start || int(at.end) > s.end {
				continue
			}
			if int(at.start) < within.start || int(at.start) >= within.end {
				within = p.window(r, s, int(at.start))
			} else if !p.atLiteral() {
				continue
			}
			if tries++; tries > maxTries {
				return p.found(p.re.matches(&r.tries, p.of(r, s)), s)
			}
			if m := h.matchAround(p, at, r, within); m.pattern != nil && (first.pattern == nil || m.span.start < first.span.start) {
				first = m
			}
		}
	}
	return first
}

// maxTries bounds how often a pattern is tried at its literals in one text; behind that
// it is tried once on the whole text, so that time does not grow faster than the text.
const maxTries = 16

// found returns where a match is, if there is one, that may begin anywhere in s.
func (p *pattern) found(matches bool, s span) found {
	if !matches {
		return found{}
	}
	return found{pattern: p, span: s}
}

// anyIn reports whether a literal of the set occurs inside s, if it has any.
func (h *hits) anyIn(set *literalSet, s span) bool {
	if set.empty() {
		return true
	}
	for _, literal := range set.ids {
		for i := h.last[literal]; i > 0; i = h.list[i-1].before {
			if at := &h.list[i-1]; int(at.start) >= s.start && int(at.end) <= s.end {
				return true
			}
		}
	}
	return false
}

// atLiteral reports whether every match begins with a literal.
func (p *pattern) atLiteral() bool { return p.whole || p.anchored != nil }

// window returns the part of s that holds every match with what stands at from.
func (p *pattern) window(r *reading, s span, from int) span {
	if p.oneLine {
		return r.lineAround(s, from)
	}
	return s
}

// matchAround looks for the pattern in its window, where an occurrence of one of its
// literals makes it possible.
func (h *hits) matchAround(p *pattern, at *hit, r *reading, within span) found {
	from := int(at.start)
	if p.whole {
		return found{p, span{from, within.end}, true}
	}
	if p.anchored == nil {
		if p.possible(r, within) && h.anyIn(&p.also, within) && p.re.matches(&r.tries, p.of(r, within)) {
			return found{p, within, false}
		}
		return found{}
	}
	rest := span{from, within.end}
	if p.possible(r, rest) && h.anyIn(&p.also, span{int(at.end), rest.end}) &&
		r.leadsHold(p.leads, within, from) && p.anchored.matches(&r.tries, p.of(r, rest)) {
		return found{p, rest, true}
	}
	return found{}
}

// leadsHold reports whether the assertions hold at an offset inside s.
func (r *reading) leadsHold(leads []syntax.Op, s span, at int) bool {
	for _, op := range leads {
		switch op {
		case syntax.OpBeginLine:
			if at > s.start && r.buf[at-1] != '\n' {
				return false
			}
		case syntax.OpWordBoundary:
			if before := at > s.start && isWordByte(r.buf[at-1]); before == isWordByte(r.buf[at]) {
				return false
			}
		}
	}
	return true
}
