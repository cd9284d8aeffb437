package rules

import (
	"bytes"
	"regexp/syntax"
)

// found is where a pattern matched.
type found struct {
	pattern  *pattern // nil: nowhere
	span              // in which the match lies
	anchored bool     // and begins
}

// match looks for the first match of the pattern in the field's text, which lies at s.
func (h *hits) match(p *pattern, r *reading, f textField, s span) found {
	switch {
	case h.filter == nil:
		return p.foundIf(p.re.regexp().Match(p.of(r, s)), s)
	case p.literals.empty() || soughtIn(f) == 0:
		may := p.possible(r, s) && p.literals.mayOccur(r.lower(s)) && p.also.mayOccur(r.lower(s))
		return p.foundIf(may && p.re.matches(&r.tries, p.of(r, s)), s)
	}
	var first found
	tries := 0
	var within span // the part of the text that was tried last
	for _, literal := range p.literals.ids {
		for i := h.last[literal]; i > 0; i = h.list[i-1].before {
			at := &h.list[i-1].occurrence
			if !at.inside(s) {
				continue
			}
			if int(at.start) < within.start || int(at.start) >= within.end {
				within = p.window(r, s, int(at.start))
			} else if !p.atLiteral() {
				continue
			}
			if tries++; tries > maxTries {
				return p.foundIf(p.re.matches(&r.tries, p.of(r, s)), s)
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

// foundIf returns a match anywhere in s, if there is one.
func (p *pattern) foundIf(matches bool, s span) found {
	if !matches {
		return found{}
	}
	return found{pattern: p, span: s}
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
func (h *hits) matchAround(p *pattern, at *occurrence, r *reading, within span) found {
	from := int(at.start)
	if p.whole {
		return found{p, span{from, within.end}, true}
	}
	if p.anchored == nil {
		return p.foundIf(p.possible(r, within) && h.anyIn(&p.also, within) && p.re.matches(&r.tries, p.of(r, within)), within)
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

// place returns an offset in the reading's buffer that is on the line where the match
// begins.
func (m found) place(r *reading) int {
	text := m.pattern.of(r, m.span)
	if m.anchored || bytes.IndexByte(text, '\n') < 0 {
		return m.span.start
	}
	return m.span.start + m.pattern.re.find(&r.tries, text)[0]
}

// group returns what the first group of that name to catch something caught; nil when
// none did or there is none.
func (m found) group(r *reading, name string) []byte {
	if !m.pattern.hasGroup(name) {
		return nil
	}
	re := m.pattern.re
	if m.anchored {
		re = m.pattern.anchored
	}
	caught := re.find(&r.tries, m.pattern.of(r, m.span))
	for n, other := range m.pattern.names {
		if from, to := caught[2*n], caught[2*n+1]; other == name && from < to {
			return r.buf[m.span.start+from : m.span.start+to]
		}
	}
	return nil
}
