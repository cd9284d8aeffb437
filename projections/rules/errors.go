package rules

import (
	"errors"
	"fmt"
	"strings"
)

// ParseError is one thing wrong in a rule set's text. Line and Column start at 1;
// Column is 0 when only the line is known, Line when neither is. Rule is the id of
// the rule it lies in, if it lies in one that has an id.
type ParseError struct {
	Name   string // of the set or file, as given to Parse
	Line   int
	Column int
	Rule   string
	Detail string
}

// Error gives the place and the fault on one line.
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Name)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&b, ":%d", e.Column)
	}
	if e.Rule != "" {
		fmt.Fprintf(&b, ": rule %s", e.Rule)
	}
	b.WriteString(": " + e.Detail)
	return b.String()
}

// ParseErrors is everything Parse found wrong in one text, in the order of the text.
type ParseErrors []*ParseError

// Error gives the first fault and says how many more there are.
func (e ParseErrors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", e[0], len(e)-1)
}

// Unwrap gives errors.As the single faults.
func (e ParseErrors) Unwrap() []error {
	out := make([]error, len(e))
	for i, pe := range e {
		out[i] = pe
	}
	return out
}

// ErrNoSuchSet reports a name that no built-in rule set has.
var ErrNoSuchSet = errors.New("no such rule set")
