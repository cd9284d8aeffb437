package rules

import (
	"regexp"
	"sync"
)

// expression is a regular expression that is compiled when it is first used: most
// patterns of a set are never tried.
type expression struct {
	source string // known to be one

	steps     sync.Once
	automaton *automaton

	compile sync.Once
	re      *regexp.Regexp
}

// matches reports whether text holds a match.
func (e *expression) matches(text []byte) bool {
	e.steps.Do(func() {
		a, err := newAutomaton(e.source)
		if err != nil {
			panic(err) // of what compilePattern has compiled
		}
		e.automaton = a
	})
	if matches, known := e.automaton.match(text); known {
		return matches
	}
	return e.regexp().Match(text)
}

// regexp returns what package regexp makes of the expression.
func (e *expression) regexp() *regexp.Regexp {
	e.compile.Do(func() { e.re = regexp.MustCompile(e.source) })
	return e.re
}
