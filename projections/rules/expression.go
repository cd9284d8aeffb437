package rules

import (
	"regexp"
	"sync"
)

// expression is a regular expression that is compiled when it is first used: most
// patterns of a set are never tried.
type expression struct {
	regexp    func() *regexp.Regexp
	automaton func() *automaton
}

// newExpression returns an expression; source is known to be one.
func newExpression(source string) *expression {
	return &expression{
		regexp: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) }),
		automaton: sync.OnceValue(func() *automaton {
			a, err := newAutomaton(source)
			if err != nil {
				panic(err) // of what compilePattern has compiled
			}
			return a
		}),
	}
}

// matches reports whether text holds a match.
func (e *expression) matches(text []byte) bool {
	if matches, known := e.automaton().match(text); known {
		return matches
	}
	return e.regexp().Match(text)
}
