package rules

import (
	"regexp"
	"slices"
	"sync"
)

// expression is a regular expression that is compiled when it is first used: most
// patterns of a set are never tried.
type expression struct {
	source string // known to be one

	prepare sync.Once
	program *program // see prepared

	compile sync.Once
	re      *regexp.Regexp // see regexp
}

// matches reports whether text holds a match.
func (e *expression) matches(b *backtracker, text []byte) bool {
	if matches, known := b.search(e.prepared(), text, nil); known {
		return matches
	}
	return e.regexp().Match(text)
}

// find returns where the first match in text and its groups lie, in the way of package
// regexp; nil when there is none. What it returns is good until the next search.
func (e *expression) find(b *backtracker, text []byte) []int {
	p := e.prepared()
	b.offsets = slices.Grow(b.offsets[:0], p.slots)[:p.slots]
	switch matches, known := b.search(p, text, b.offsets); {
	case !known:
		return e.regexp().FindSubmatchIndex(text)
	case !matches:
		return nil
	}
	return b.offsets
}

// prepared returns the program that a backtracker runs.
func (e *expression) prepared() *program {
	e.prepare.Do(func() {
		p, err := newProgram(e.source)
		if err != nil {
			panic(err) // of what compilePattern has compiled
		}
		e.program = p
	})
	return e.program
}

// regexp returns what package regexp makes of the expression.
func (e *expression) regexp() *regexp.Regexp {
	e.compile.Do(func() { e.re = regexp.MustCompile(e.source) })
	return e.re
}
