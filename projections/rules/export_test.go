package rules

import "mcpledger/events"

// ClassifySlowly judges by trying every rule in turn, without filter and cache.
func (s *Set) ClassifySlowly(e events.Evidence) Verdict { return s.judge(&e, nil) }

// ClassifyUncached judges without the cache.
func (s *Set) ClassifyUncached(e events.Evidence) Verdict { return s.judge(&e, s.filter) }

// Occurrence is where a literal lies in a text.
type Occurrence struct {
	Literal string
	At      int
}

// FindLiterals returns the occurrences of literals in alphabetical order, as a finder finds
// them.
func FindLiterals(literals []string, text string) []Occurrence {
	f := newFinder(literals)
	var out []Occurrence
	for _, o := range f.find(nil, []byte(text), 0) {
		out = append(out, Occurrence{f.literal(o.literal), int(o.start)})
	}
	return out
}

// Lower returns text with ASCII letters in lower case.
func Lower(text string) string { return lowerASCII(text) }

// Clean returns text without what only terminals need.
func Clean(text string) string { return string(appendClean(nil, text)) }

// Scrub returns one line of text as it is signed, and as it is when each byte is looked at
// for all that may vary.
func Scrub(line string) (scrubbed, slowly string) {
	var r reading
	r.field(textError, line)
	r.lowerRest()
	whole := r.fields[textError]
	s := scrubber{reading: &r, src: r.bytes(whole), low: r.lower(whole)}
	for s.i < len(s.src) {
		s.part()
	}
	return string(r.appendScrubbed(nil, whole)), string(s.dst)
}
