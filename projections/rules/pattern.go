package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxPatternBytes bounds one pattern, in bytes.
const maxPatternBytes = 1 << 10

// pattern is one RE2 pattern of a rule, or one alternative of it. ASCII letters match
// in either case unless the pattern says (?-i:...); ^ and $ match at the ends of lines.
type pattern struct {
	source string
	re     func() *regexp.Regexp // compiled when first used
	names  []string              // of its groups, by number
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
	anchored func() *regexp.Regexp
	leads    []syntax.Op
	// oneLine says that a match lies within one line.
	oneLine bool
}

// literalSet is a set of strings to be looked for.
type literalSet struct {
	literals []string
	ids      []int32 // their numbers in the filter of the set of rules
}

// compilePattern compiles a pattern as rules write it. Each of its alternatives
// becomes a pattern of its own, in their order, since the literals of one tell more
// than those that all have in common.
func compilePattern(source string) ([]*pattern, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d are allowed", len(source), maxPatternBytes)
	}
	if _, err := syntax.Parse(source, syntax.Perl); err != nil {
		if se := (*syntax.Error)(nil); errors.As(err, &se) {
			return nil, fmt.Errorf("pattern: %s: %q", se.Code, se.Expr)
		}
		return nil, fmt.Errorf("pattern: %w", err)
	}
	var out []*pattern
	for _, alternative := range alternatives(source) {
		p, err := compileAlternative(alternative)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

func compileAlternative(source string) (*pattern, error) {
	p := &pattern{source: source, lowered: !strings.Contains(source, "(?-i")}
	flags := "(?im)"
	if p.lowered {
		source, flags = lowerSource(source), "(?m)"
	}
	tree, err := syntax.Parse(source, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, err
	}
	p.oneLine = !crossesLines(tree)
	p.names = tree.CapNames()
	p.re = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(flags + source) })
	p.literals.literals, p.also.literals, p.whole = requiredLiterals(tree)
	if p.whole = p.whole && p.lowered; p.whole {
		return p, nil
	}
	leads, literals, also := leadingLiterals(tree)
	if shortest(literals) >= minLiteral {
		rest := source
		for _, lead := range leads {
			rest = strings.TrimPrefix(rest, leadSources[lead])
		}
		p.anchored = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(flags + `\A(?:` + rest + `)`) })
		p.literals.literals, p.also.literals, p.leads = literals, also, leads
	}
	return p, nil
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
	if strings.HasPrefix(source, "(?") && strings.Contains(source[:min(len(source), 8)], ")") {
		return []string{source} // flags at the front hold for all alternatives
	}
	return append(out, source[from:])
}

// lowerSource writes the letters of a pattern in lower case, apart from those that
// are no text: behind a backslash, and in the head of a group.
func lowerSource(source string) string {
	b := []byte(source)
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\':
			i++
			if i < len(b) && (b[i] == 'p' || b[i] == 'P' || b[i] == 'x') {
				for i+1 < len(b) && b[i] != '}' && (b[i+1] == '{' || isWordByte(b[i+1]) || b[i+1] == '}') {
					i++
				}
			}
		case strings.HasPrefix(source[i:], "(?"):
			for i+1 < len(b) && b[i] != ':' && b[i] != '>' && b[i] != ')' {
				i++
			}
		default:
			lowerBytes(b[i:i+1], b[i:i+1])
		}
	}
	return string(b)
}

// of returns the text at s that the pattern is run over.
func (p *pattern) of(r *reading, s span) []byte {
	if p.lowered {
		return r.low[s.start:s.end]
	}
	return r.buf[s.start:s.end]
}

// start returns where in the reading's buffer the match begins.
func (m found) start(r *reading) int {
	if m.anchored {
		return m.span.start
	}
	return m.span.start + m.pattern.re().FindIndex(m.pattern.of(r, m.span))[0]
}

// group returns what the named group caught; nil when it caught nothing or there is
// no such group.
func (m found) group(r *reading, name string) []byte {
	n := slices.Index(m.pattern.names, name)
	if n < 0 {
		return nil
	}
	re := m.pattern.re
	if m.anchored {
		re = m.pattern.anchored
	}
	caught := re().FindSubmatchIndex(m.pattern.of(r, m.span))
	if caught[2*n] < 0 {
		return nil
	}
	return r.buf[m.span.start+caught[2*n] : m.span.start+caught[2*n+1]]
}

// crossesLines reports whether a match can hold more than one line, or depends on
// where the text begins or ends.
func crossesLines(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return true
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			return true
		}
	case syntax.OpCharClass:
		if inClass(re.Rune, '\n') {
			return true
		}
	}
	return slices.ContainsFunc(re.Sub, crossesLines)
}

// inClass reports whether r is in a class, a list of pairs of bounds.
func inClass(class []rune, r rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= r && r <= class[i+1] {
			return true
		}
	}
	return false
}

func isASCII(runes []rune) bool {
	for _, r := range runes {
		if r >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Bounds on the literals taken from one pattern.
const (
	maxLiterals = 64 // beyond that many a pattern counts as having none
	minLiteral  = 3  // shorter ones hit too often, in bytes
	maxClass    = 4  // characters of a class that are spelt out
)

// requiredLiterals returns lower-case strings of which every match of the tree
// contains at least one, or nil, and others of which it contains one besides. whole
// says that the first are all that the tree matches.
func requiredLiterals(re *syntax.Regexp) (literals, also []string, whole bool) {
	n := literalsOf(re)
	sets := n.required
	if n.exact != nil {
		sets = [][]string{n.exact}
		whole = !asserts(re)
	}
	literals, also = bestTwo(sets)
	for _, lit := range n.exact {
		whole = whole && !strings.Contains(lit, "\n")
	}
	return literals, also, whole && literals != nil
}

// bestTwo returns the two best of several sets, each literal cut to its longest line;
// nil for those that are too short to be of use.
func bestTwo(sets [][]string) (first, second []string) {
	for _, set := range sets {
		lines := make([]string, len(set))
		for i, lit := range set {
			lines[i] = longestLine(lit)
		}
		switch {
		case shortest(lines) < minLiteral:
		case shortest(lines) > shortest(first):
			first, second = lines, first
		case shortest(lines) > shortest(second):
			second = lines
		}
	}
	return first, second
}

// asserts reports whether the tree has an assertion such as \b or $.
func asserts(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpCapture:
		return true
	}
	return slices.ContainsFunc(re.Sub, asserts)
}

// leadingLiterals returns the assertions at the front of a tree, the literals of which
// one begins every match behind them, and others that come further on; nil when there
// are none.
func leadingLiterals(re *syntax.Regexp) (leads []syntax.Op, literals, also []string) {
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	for len(subs) > 1 && leadSources[subs[0].Op] != "" {
		leads = append(leads, subs[0].Op)
		subs = subs[1:]
	}
	run := []string{""}
	for len(subs) > 0 {
		joined := cross(run, literalsOf(subs[0]).exact)
		if joined == nil || subs[0].Op != syntax.OpCapture && asserts(subs[0]) {
			break
		}
		run = joined
		subs = subs[1:]
	}
	for _, lit := range run {
		if strings.Contains(lit, "\n") {
			return nil, nil, nil
		}
	}
	also, _ = bestTwo(literalsOfConcat(subs).sets())
	return leads, run, also
}

// need is what is known of the texts that a part of a pattern matches.
type need struct {
	exact    []string   // all texts it can match, when they are few
	required [][]string // sets of which every match contains one string each
}

// sets returns the sets of which every match contains one string each.
func (n need) sets() [][]string {
	if n.exact != nil {
		return [][]string{n.exact}
	}
	return n.required
}

func literalsOf(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 && !isASCII(re.Rune) {
			return need{}
		}
		return need{exact: []string{lowerASCII(string(re.Rune))}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: []string{""}}
	case syntax.OpCharClass:
		return need{exact: spellOut(re.Rune)}
	case syntax.OpCapture:
		return literalsOf(re.Sub[0])
	case syntax.OpPlus:
		return need{required: literalsOf(re.Sub[0]).sets()}
	case syntax.OpRepeat:
		if re.Min == 0 {
			return need{}
		}
		return need{required: literalsOf(re.Sub[0]).sets()}
	case syntax.OpQuest:
		if n := literalsOf(re.Sub[0]); n.exact != nil && len(n.exact) < maxLiterals {
			return need{exact: append(n.exact, "")}
		}
		return need{}
	case syntax.OpConcat:
		return literalsOfConcat(re.Sub)
	case syntax.OpAlternate:
		return literalsOfAlternate(re.Sub)
	default:
		return need{}
	}
}

// literalsOfConcat joins neighbours that match few texts into longer ones.
func literalsOfConcat(subs []*syntax.Regexp) need {
	run := []string{""}
	var sets [][]string
	whole := true
	for _, sub := range subs {
		n := literalsOf(sub)
		if joined := cross(run, n.exact); joined != nil {
			run = joined
			continue
		}
		whole = false
		sets = append(append(sets, run), n.required...)
		run = []string{""}
		if n.exact != nil {
			run = n.exact
		}
	}
	if whole {
		return need{exact: run}
	}
	return need{required: append(sets, run)}
}

// literalsOfAlternate joins the sets of the alternatives, the best one of each.
func literalsOfAlternate(subs []*syntax.Regexp) need {
	var exact, required []string
	allExact := true
	for _, sub := range subs {
		n := literalsOf(sub)
		part := n.exact
		if part == nil {
			part, _ = bestTwo(n.required)
			allExact = false
		}
		if part == nil || len(required)+len(part) > maxLiterals {
			return need{}
		}
		exact = append(exact, n.exact...)
		required = append(required, part...)
	}
	if allExact {
		return need{exact: exact}
	}
	return need{required: [][]string{required}}
}

// cross returns every a followed by every b; nil when b is nil or they are too many.
func cross(a, b []string) []string {
	if b == nil || len(a)*len(b) > maxLiterals {
		return nil
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// spellOut lists the characters of a small class, in lower case.
func spellOut(class []rune) []string {
	var out []string
	for i := 0; i+1 < len(class); i += 2 {
		for r := class[i]; r <= class[i+1]; r++ {
			if r >= utf8.RuneSelf {
				return nil
			}
			if s := lowerASCII(string(r)); !slices.Contains(out, s) {
				out = append(out, s)
			}
			if len(out) > maxClass {
				return nil
			}
		}
	}
	return out
}

// shortest returns the length of the shortest string; -1 for a nil set.
func shortest(set []string) int {
	if set == nil {
		return -1
	}
	n := len(set[0])
	for _, s := range set[1:] {
		n = min(n, len(s))
	}
	return n
}

// longestLine returns the longest line of s: a text may lose lines between two that
// a literal joins.
func longestLine(s string) string {
	best := ""
	for line := range strings.SplitSeq(s, "\n") {
		if len(line) > len(best) {
			best = line
		}
	}
	return best
}

func lowerASCII(s string) string {
	b := []byte(s)
	lowerBytes(b, b)
	return string(b)
}

// lowerBytes writes src with ASCII letters in lower case to dst, which is as long.
func lowerBytes(dst, src []byte) {
	for i, c := range src {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
}
