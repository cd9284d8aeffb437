package rules

import (
	"math/bits"
	"regexp/syntax"
)

// filter finds the literals of all patterns of a set in one pass over the texts. It
// tells which rules can match at all, and where a pattern is worth trying.
type filter struct {
	finder *finder    // of the literals
	rules  [][]uint64 // by literal: the rules it lets through, a bit each
	always []uint64   // the rules that can match whatever the text is
	uses   [][]use    // by literal: the patterns that have it
	count  int32      // of conditions
}

// use is a pattern of a condition that has some literal.
type use struct {
	condition int32
	pattern   uint64 // its bit among the patterns of the condition
}

// newFilter builds the filter of a set's rules.
func newFilter(s *Set) *filter {
	f := &filter{always: make([]uint64, (len(s.rules)+63)/64)}
	b := filterBuilder{filter: f, index: map[string]int32{}}
	for i := range s.rules {
		b.rule(i, &s.rules[i])
	}
	for i := range s.gates {
		b.matcher(&s.gates[i].match)
		b.matcher(s.gates[i].unless)
	}
	f.finder = newFinder(b.literals)
	return f
}

// filterBuilder numbers the literals.
type filterBuilder struct {
	*filter
	literals []string
	index    map[string]int32
}

// rule adds the literals of a rule. The condition with the best ones decides whether
// the rule can match; without one it always can.
func (b *filterBuilder) rule(i int, r *rule) {
	b.matcher(&r.match)
	b.matcher(r.unless)
	best := r.match.selective()
	if best == nil {
		b.always[i/64] |= 1 << (i % 64)
		return
	}
	for _, p := range best.patterns {
		for _, id := range p.literals.ids {
			b.rules[id][i/64] |= 1 << (i % 64)
		}
	}
}

func (b *filterBuilder) matcher(m *matcher) {
	for i := 0; m != nil && i < len(m.texts); i++ {
		c := &m.texts[i]
		c.id = b.count
		b.count++
		for j, p := range c.patterns {
			b.number(&p.literals)
			b.number(&p.also)
			bit := uint64(1) << min(j, maxTold-1) // those beyond share the last bit
			if p.literals.ids == nil || !scanned(c.field) {
				c.always |= bit
			}
			for _, id := range p.literals.ids {
				b.uses[id] = append(b.uses[id], use{c.id, bit})
			}
		}
	}
}

// maxTold is how many patterns of a condition are told from each other.
const maxTold = 64

// number gives each literal of a set its number.
func (b *filterBuilder) number(set *literalSet) {
	for _, lit := range set.literals {
		id, ok := b.index[lit]
		if !ok {
			id = int32(len(b.literals))
			b.index[lit] = id
			b.literals = append(b.literals, lit)
			b.filter.rules = append(b.filter.rules, make([]uint64, len(b.always)))
			b.uses = append(b.uses, nil)
		}
		set.ids = append(set.ids, id)
	}
}

// selective returns the condition whose patterns all have literals in a text that is
// looked through, of several the one with the longest; nil when there is none.
func (m *matcher) selective() *textCondition {
	var best *textCondition
	length := 0
	for i := range m.texts {
		if !scanned(m.texts[i].field) {
			continue
		}
		n := maxPatternBytes
		for _, p := range m.texts[i].patterns {
			n = min(n, shortest(p.literals.literals))
		}
		if n > length {
			best, length = &m.texts[i], n
		}
	}
	return best
}

// scanned reports whether the field's text is looked through for literals: the blocks
// and the client's text. The other texts are long, or short and seldom asked for.
func scanned(f textField) bool {
	return f == textDecisive || f == textBlocks || f == textAny || f == textError
}

// hits is where the literals of a filter occur in one reading.
type hits struct {
	filter *filter  // nil: every rule can match, and every pattern is tried
	rules  []uint64 // the rules that can match, a bit each
	list   []hit
	last   []int32  // by literal: 1 + the index in list of its last hit; 0: none
	tell   []uint64 // by condition: the patterns whose literals occur, a bit each
}

// hit is an occurrence of a literal in a reading's buffer, and the one before it.
type hit struct {
	literal    int32
	before     int32 // 1 + its index; 0: none
	start, end int32
}

// find fills h with what f finds in the texts of r, for a set of so many rules.
func (h *hits) find(f *filter, r *reading, rules int) {
	for _, old := range h.list {
		h.last[old.literal] = 0
		for _, u := range h.filter.uses[old.literal] {
			h.tell[u.condition] = 0
		}
	}
	h.filter, h.list, h.rules = f, h.list[:0], h.rules[:0]
	if f == nil {
		for range (rules + 63) / 64 {
			h.rules = append(h.rules, ^uint64(0))
		}
		return
	}
	h.rules = append(h.rules, f.always...)
	if len(h.last) < len(f.rules) {
		h.last = make([]int32, len(f.rules))
	}
	if len(h.tell) < int(f.count) {
		h.tell = make([]uint64, f.count)
	}
	h.scan(r, r.fields[textAny])
	h.scan(r, r.fields[textError])
}

func (h *hits) scan(r *reading, s span) {
	f := h.filter
	f.finder.scan(r.lower(s), func(literal int32, start int) {
		from := int32(s.start + start)
		stop := from + int32(len(f.finder.literals[literal]))
		h.list = append(h.list, hit{literal: literal, before: h.last[literal], start: from, end: stop})
		if h.last[literal] = int32(len(h.list)); h.list[len(h.list)-1].before > 0 {
			return
		}
		for _, u := range f.uses[literal] {
			h.tell[u.condition] |= u.pattern
		}
		for w, mask := range f.rules[literal] {
			h.rules[w] |= mask
		}
	})
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
	if h.filter == nil || p.literals.ids == nil || !scanned(f) {
		if p.re().Match(p.of(r, s)) {
			return found{pattern: p, span: s}
		}
		return found{}
	}
	if p.also.ids != nil && !h.anyIn(&p.also, s) {
		return found{}
	}
	var first found
	tried := -1 // where the line begins that was tried last
	for _, literal := range p.literals.ids {
		for i := h.last[literal]; i > 0; i = h.list[i-1].before {
			at := &h.list[i-1]
			if int(at.start) < s.start || int(at.end) > s.end {
				continue
			}
			if !p.atLiteral() {
				from := p.window(r, s, int(at.start)).start
				if from == tried {
					continue
				}
				tried = from
			}
			if m := p.matchAround(at, r, s); m.pattern != nil && (first.pattern == nil || m.span.start < first.span.start) {
				first = m
			}
		}
	}
	return first
}

// anyIn reports whether a literal of the set occurs inside s.
func (h *hits) anyIn(set *literalSet, s span) bool {
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

// matchAround looks for the pattern in the text at s, where an occurrence of one of
// its literals makes it possible.
func (p *pattern) matchAround(at *hit, r *reading, s span) found {
	from := int(at.start)
	if p.whole {
		return found{p, span{from, s.end}, true}
	}
	within := p.window(r, s, from)
	if p.anchored == nil {
		if p.re().Match(p.of(r, within)) {
			return found{pattern: p, span: within}
		}
		return found{}
	}
	rest := span{from, within.end}
	if r.leadsHold(p.leads, within, from) && p.anchored().Match(p.of(r, rest)) {
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

// next returns the index of the first set bit from i on, below limit; limit when
// there is none.
func next(set []uint64, i, limit int) int {
	for i < limit {
		if rest := set[i/64] >> (i % 64); rest != 0 {
			return min(i+bits.TrailingZeros64(rest), limit)
		}
		i = (i/64 + 1) * 64
	}
	return limit
}
