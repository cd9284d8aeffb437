package rules

// hits is where the literals of a filter occur in one reading.
type hits struct {
	filter  *filter // nil: every rule can match, and every pattern is tried
	rules   bitset  // the rules that can match
	list    []hit
	last    []int32 // by literal: 1 + the index in list of its last hit; 0: none
	seen    []seen  // by part of the filter
	touched bitset  // the parts of which something was seen
}

// hit is an occurrence of a literal in a reading's buffer.
type hit struct {
	occurrence
	before int32 // 1 + the index of the hit of the same literal before it; 0: none
}

// seen says of which patterns of a part, a bit each, a literal was seen, by usedSet.
type seen [usedSets]uint64

// worth returns which patterns of a part can match as far as literals tell.
func (h *hits) worth(part int32) uint64 {
	if h.filter == nil {
		return ^uint64(0)
	}
	p, s := &h.filter.parts[part], &h.seen[part]
	return s[usedFirst]&(s[usedAlso]|p.single) | p.always
}

// find fills h with what f finds in the texts of r, for a set of so many rules.
func (h *hits) find(f *filter, r *reading, rules int) {
	for i := range h.list {
		h.last[h.list[i].literal] = 0
	}
	for part := range h.touched.all {
		h.seen[part] = seen{}
	}
	clear(h.touched)
	h.filter, h.list, h.rules = f, h.list[:0], h.rules[:0]
	if f == nil {
		for range (rules + 63) / 64 {
			h.rules = append(h.rules, ^uint64(0))
		}
		return
	}
	if literals := len(f.places); len(h.last) < literals {
		h.last = make([]int32, literals)
	}
	if len(h.seen) < len(f.parts) {
		h.seen = make([]seen, len(f.parts))
		h.touched = newBitset(len(f.parts))
	}
	h.gather(r)
	h.rules = append(h.rules, f.always...)
	h.pick(r)
}

// findIn adds what the filter finds in the text of blocks at s, which came to the reading
// afterwards.
func (h *hits) findIn(r *reading, s span) {
	if h.filter != nil {
		h.scan(r, s, inBlocks)
		h.pick(r)
	}
}

// pick adds the rules that can match as far as literals tell, and leaves out those that
// cannot by what is not text.
func (h *hits) pick(r *reading) {
	for part := range h.touched.all {
		if rule := h.filter.parts[part].rule; rule != noRule && h.worth(int32(part)) != 0 {
			h.rules.set(int(rule))
		}
	}
	h.filter.screen.apply(h.rules, r)
}

// gather adds the literals that were found on the lines, at their places in the fields
// and in the copies of the lines, which are the texts that are looked through.
func (h *hits) gather(r *reading) {
	client, covered := r.fields[textError], false // all of the client's lines are in its text, or none is
	for i := range r.lines {
		l := &r.lines[i]
		covered = covered || client.start <= l.start && l.end <= client.end
		found := r.occurrences[l.found.start:l.found.end]
		for j := range found {
			o := &found[j]
			places := h.filter.places[o.literal]
			if places&inFields != 0 {
				h.add(*o)
			}
			if l.copy > 0 && places&inBlocks != 0 && int(o.start) >= l.content {
				moved := int32(l.copy - l.content)
				h.add(occurrence{o.literal, o.start + moved, o.end + moved})
			}
		}
	}
	if !covered { // its lines are of another text, in which a body's words stand in for the body
		h.scan(r, client, inFields)
	}
}

// scan adds the literals in the text at s that are looked for in such a place.
func (h *hits) scan(r *reading, s span, in place) {
	n := len(r.occurrences)
	r.occurrences = h.filter.vocabulary.finder.find(r.occurrences, r.lower(s), s.start)
	for _, o := range r.occurrences[n:] {
		if h.filter.places[o.literal]&in != 0 {
			h.add(o)
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
	all, touched := h.seen, h.touched
	uses := h.filter.usesOf(o.literal)
	for i := range uses {
		u := &uses[i]
		all[u.part][u.set%usedSets] |= u.mask
		touched.set(int(u.part))
	}
}

// anyIn reports whether a literal of the set occurs inside s, if it has any.
func (h *hits) anyIn(set *literalSet, s span) bool {
	if set.empty() {
		return true
	}
	for _, literal := range set.ids {
		for i := h.last[literal]; i > 0; i = h.list[i-1].before {
			if h.list[i-1].inside(s) {
				return true
			}
		}
	}
	return false
}

func (o *occurrence) inside(s span) bool { return int(o.start) >= s.start && int(o.end) <= s.end }
