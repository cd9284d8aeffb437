package rules

import (
	"slices"
	"strings"
)

// template is a hint with {names} of groups in it.
type template struct {
	source string
	parts  []string // literal, name, literal, name, ..., literal
}

// maxFillBytes bounds what fills one name of a hint, in bytes.
const maxFillBytes = 80

// ellipsis stands for what a hint must not show.
const ellipsis = "…"

// compile cuts the source at its {names}. It returns the first name that is not
// among the groups, or "".
func (t *template) compile(groups []string) (unknown string) {
	rest := t.source
	for {
		before, after, ok := strings.Cut(rest, "{")
		name, tail, closed := strings.Cut(after, "}")
		if !ok || !closed {
			t.parts = append(t.parts, rest)
			return ""
		}
		if !slices.Contains(groups, name) {
			return name
		}
		t.parts = append(t.parts, before, name)
		rest = tail
	}
}

// fill returns the hint with each name replaced by what value gives for it. Text of
// a server reaches a person's eye here, perhaps a terminal or an agent, so that only
// what a name is made of gets through.
func (t *template) fill(value func(name string) []byte) string {
	if len(t.parts) <= 1 {
		return t.source
	}
	var b strings.Builder
	for i, part := range t.parts {
		if i%2 == 0 {
			b.WriteString(part)
			continue
		}
		if v := value(part); fillable(v) {
			b.Write(v)
		} else {
			b.WriteString(ellipsis)
		}
	}
	return b.String()
}

func fillable(v []byte) bool {
	if len(v) == 0 || len(v) > maxFillBytes {
		return false
	}
	for _, c := range v {
		if !isWordByte(c) && !strings.ContainsRune(".@/+:-", rune(c)) {
			return false
		}
	}
	return true
}

// isWordByte reports a letter, a digit or an underscore.
func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// groups lists the named groups of all patterns.
func (m *matcher) groups() []string {
	var out []string
	for _, c := range m.texts {
		for _, p := range c.patterns {
			for _, name := range p.names {
				if name != "" && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// group returns what the named group caught in the rule that won; nil when it caught
// nothing.
func (r *reading) group(name string) []byte {
	for _, f := range r.found {
		if caught := f.group(r, name); caught != nil {
			return caught
		}
	}
	return nil
}
