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
	program *program

	compile sync.Once
	re      *regexp.Regexp
}

// matches reports whether text holds a match.
func (e *expression) matches(b *backtracker, text []byte) bool {
	if matches, known := b.search(e.prepared(), text, nil); known {
		return matches
	}
	return e.regexp().Match(text)
}

// find returns where the first match in text and its groups lie, in the way of package
// regexp; nil when there is none. It is overwritten by the next search.
func (e *expression) find(b *backtracker, text []byte) []int {
	p := e.prepared()
	b.space = slices.Grow(b.space[:0], p.slots)[:p.slots]
	switch matches, known := b.search(p, text, b.space); {
	case !known:
		return e.regexp().FindSubmatchIndex(text)
	case !matches:
		return nil
	}
	return b.space
}

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
