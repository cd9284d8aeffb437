package rules

import (
	"regexp"
	"sync"
)

// expression is a regular expression that is compiled when it is first used: most
// patterns of a set are never tried.
type expression struct {
	regexp func() *regexp.Regexp
}

// newExpression returns an expression; source is known to be one.
func newExpression(source string) *expression {
	return &expression{
		regexp: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) }),
	}
}

// matches reports whether text holds a match.
func (e *expression) matches(text []byte) bool { return e.regexp().Match(text) }
