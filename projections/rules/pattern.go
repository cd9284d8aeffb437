package rules

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// maxPatternBytes bounds one pattern, in bytes.
const maxPatternBytes = 1 << 10

// pattern is one RE2 pattern of a rule, or one alternative of it. ASCII letters match
// in either case unless the pattern says (?-i:...); ^ and $ match at the ends of lines.
type pattern struct {
	source string
	re     *expression
	names  []string // of its groups, by number
	fills  []string // names of the groups in which every match catches something
	// lowered says that re is to be run over the lower-cased text. That is the same
	// and much faster, since a pattern that folds case has no literal to look for.
	lowered bool
	// literals holds lower-case strings of which every match contains one; it is
	// empty when the pattern has none worth looking for. What follows is about them.
	literals literalSet
	// also holds strings of which every match contains one besides.
	also literalSet
	// whole says that an occurrence of a literal is a match.
	whole bool
	// anchored, if not nil, matches from the occurrence of a literal on: every match
	// begins with one, once the assertions in leads hold there.
	anchored *expression
	leads    []syntax.Op
	// least is the length of the shortest match, in bytes, and marks are strings too
	// short to be looked for in all texts, each of which every match contains.
	least      int
	marks      []string
	oneLine    bool // a match lies within one line
	everywhere bool // it matches every text
}

// literalSet is a set of strings to be looked for.
type literalSet struct {
	literals []string
	ids      []int32 // their numbers in the vocabulary of the set of rules
}

func (s *literalSet) empty() bool { return len(s.literals) == 0 }

// fewLiterals is how many are looked for one by one in a text that was not looked through
// for all.
const fewLiterals = 10

// mayOccur reports whether a lower-case text holds one of the set, if it has any, and few.
func (s *literalSet) mayOccur(low []byte) bool {
	if s.empty() || len(s.literals) > fewLiterals {
		return true
	}
	return slices.ContainsFunc(s.literals, func(lit string) bool { return bytes.Contains(low, []byte(lit)) })
}

// compilePattern compiles a pattern as rules write it. Each of its alternatives
// becomes a pattern of its own, in their order, since the literals of one tell more
// than those that all have in common.
func compilePattern(source string) ([]*pattern, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d are allowed", len(source), maxPatternBytes)
	}
	var out []*pattern
	for _, alternative := range alternatives(source) {
		p, err := compileAlternative(alternative)
		if err != nil {
			return nil, patternError(source, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// patternError says what is wrong with a pattern, as it is written, of which an alternative
// does not compile.
func patternError(source string, err error) error {
	if _, whole := syntax.Parse(source, syntax.Perl); whole != nil {
		err = whole
	}
	if se := (*syntax.Error)(nil); errors.As(err, &se) {
		return fmt.Errorf("pattern: %s: %q%s", se.Code, se.Expr, beyondRE2(se))
	}
	return fmt.Errorf("pattern: %w", err)
}

// beyondRE2 names what other engines have and RE2 does not, where that is the fault.
func beyondRE2(fault *syntax.Error) string {
	looks := func(head string) bool { return strings.HasPrefix(fault.Expr, head) }
	switch {
	case slices.ContainsFunc([]string{"(?=", "(?!", "(?<=", "(?<!"}, looks):
		return "; RE2 cannot look ahead or behind"
	case fault.Expr == `\k`, fault.Expr == "(?P", len(fault.Expr) == len(`\1`) && isDigit(fault.Expr[1]):
		return "; RE2 cannot refer to what a group caught"
	case looks("(?>"):
		return "; RE2 has no atomic groups and needs none"
	}
	return ""
}

func compileAlternative(source string) (*pattern, error) {
	p := &pattern{source: source, lowered: !tellsCase(source)}
	flags := "(?im)"
	if p.lowered {
		source, flags = lowerSource(source), "(?m)"
	}
	tree, err := syntax.Parse(source, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, err
	}
	p.oneLine = !crossesLines(tree)
	p.names, p.fills = tree.CapNames(), filledGroups(tree)
	n := literalsOf(tree)
	p.least, p.marks = shortestMatch(tree), n.marks()
	p.everywhere = p.least == 0 && !asserts(tree)
	p.re = &expression{source: flags + source}
	p.literals.literals, p.also.literals, p.whole = n.literals(tree)
	if p.whole = p.whole && p.lowered; p.whole {
		return p, nil
	}
	leads, literals, also := leadingLiterals(tree)
	if shortest(literals) >= minLiteral {
		rest := source
		for _, lead := range leads {
			rest = strings.TrimPrefix(rest, leadSources[lead])
		}
		p.anchored = &expression{source: flags + `\A(?:` + rest + `)`}
		p.literals.literals, p.also.literals, p.leads = literals, also, leads
	}
	return p, nil
}

// tellsCase reports whether a pattern may tell capitals from small letters.
func tellsCase(source string) bool {
	return slices.ContainsFunc(cased, func(re *regexp.Regexp) bool { return re.MatchString(source) })
}

// cased find what may tell capitals from small letters. Each looks for how it begins.
var cased = []*regexp.Regexp{
	regexp.MustCompile(`\(\?[a-zA-Z]*-[a-zA-Z]*i`), regexp.MustCompile(`\\[xpP0-7]`), regexp.MustCompile(`\[:\^?upper`),
}

// leadSources are the assertions that may lead to a pattern's literal.
var leadSources = map[syntax.Op]string{syntax.OpWordBoundary: `\b`, syntax.OpBeginLine: "^"}

// alternatives splits a pattern at the bars that lie in no group and no class.
func alternatives(source string) []string {
	var out []string
	from, depth, class := 0, 0, -1 // class: where the class that i is in begins
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			if strings.HasPrefix(source[i:], `\Q`) {
				return []string{source}
			}
			i++
		case class >= 0:
			if c == ']' && i > class+1 && source[class+1:i] != "^" {
				class = -1
			}
		case c == '[':
			class = i
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out = append(out, source[from:i])
			from = i + 1
		}
	}
	if flagGroup.MatchString(source) {
		return []string{source} // flags hold for the alternatives behind them too
	}
	return append(out, source[from:])
}

// flagGroup is a group that sets flags for what follows, such as (?s).
var flagGroup = regexp.MustCompile(`\(\?[a-zA-Z-]+\)`)

// noText are the parts of a pattern whose letters are no text: what follows a
// backslash, and the head of a group.
var noText = regexp.MustCompile(`(?s:\\.)|\(\?P?<\w+>|\(\?[a-zA-Z-]*[:)]`)

// lowerSource writes the letters of a pattern's text in lower case. The pattern holds
// nothing that cased finds.
func lowerSource(source string) string {
	b := []byte(source)
	from := 0
	for _, part := range noText.FindAllStringIndex(source, -1) {
		lowerBytes(b[from:part[0]], b[from:part[0]])
		from = part[1]
	}
	lowerBytes(b[from:], b[from:])
	return string(b)
}

// hasGroup reports whether a group of the pattern has the name.
func (p *pattern) hasGroup(name string) bool { return name != "" && slices.Contains(p.names, name) }

// possible reports whether the text at s, which holds the whole match if there is one,
// is long enough and has the marks.
func (p *pattern) possible(r *reading, s span) bool {
	if s.end-s.start < p.least {
		return false
	}
	for _, mark := range p.marks {
		if !bytes.Contains(r.lower(s), []byte(mark)) {
			return false
		}
	}
	return true
}

// of returns the text at s that the pattern is run over.
func (p *pattern) of(r *reading, s span) []byte {
	if p.lowered {
		return r.low[s.start:s.end]
	}
	return r.buf[s.start:s.end]
}

func lowerASCII(s string) string {
	b := []byte(s)
	lowerBytes(b, b)
	return string(b)
}
