package rules

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// template is a hint with {names} of groups in it. A name may be followed by the words
// that stand for it when nothing was caught, as in {file|the file it names}.
type template struct {
	source string
	blanks []blank
	rest   string // behind the last blank
	// unclosed is the part from a brace on that has no end, "" when there is none; it
	// is shown as it is written.
	unclosed string
}

// blank is one {name} of a template.
type blank struct {
	before    string // the text between the last blank and this one
	group     string
	otherwise string // what is shown when there is nothing to be filled in
}

// maxFillBytes bounds what fills one name of a hint, in bytes.
const maxFillBytes = 80

// ellipsis stands for what a hint must not show.
const ellipsis = "…"

// compile cuts the source at its {names}. If no pattern of the matcher has a group of
// one of them, it returns that name and false.
func (t *template) compile(m *matcher) (unknown string, ok bool) {
	t.rest = t.source
	for {
		before, after, opened := strings.Cut(t.rest, "{")
		inner, rest, closed := strings.Cut(after, "}")
		if !opened {
			return "", true
		}
		if !closed {
			t.unclosed = t.rest[len(before):]
			return "", true
		}
		group, otherwise, _ := strings.Cut(inner, "|")
		if !slices.ContainsFunc(m.patterns(), func(p *pattern) bool { return p.hasGroup(group) }) {
			return group, false
		}
		if otherwise == "" {
			otherwise = ellipsis
		}
		t.blanks = append(t.blanks, blank{before, group, otherwise})
		t.rest = rest
	}
}

// fill returns the hint with each name replaced by what value gives for it. Text of
// a server reaches a person's eye here, perhaps a terminal or an agent, so that only
// what a name is made of gets through.
func (t *template) fill(value func(group string) []byte) string {
	if len(t.blanks) == 0 {
		return t.source
	}
	var b strings.Builder
	b.Grow(len(t.source) + maxFillBytes)
	for _, blank := range t.blanks {
		b.WriteString(blank.before)
		if v := value(blank.group); fillable(v) {
			b.Write(v)
		} else {
			b.WriteString(blank.otherwise)
		}
	}
	b.WriteString(t.rest)
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
func isWordByte(c byte) bool { return wordBytes[c] }

var wordBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = syntax.IsWordChar(rune(c))
	}
	return table
}()

// patterns lists all patterns of the conditions on texts. m may be nil.
func (m *matcher) patterns() []*pattern {
	var out []*pattern
	for i := 0; m != nil && i < len(m.texts); i++ {
		out = append(out, m.texts[i].patterns...)
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
