package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxPatternBytes bounds one pattern, in bytes.
const maxPatternBytes = 1 << 10

// pattern is one RE2 pattern of a rule. ASCII letters match in either case unless
// the pattern says (?-i:...); ^ and $ match at the ends of lines.
type pattern struct {
	source string
	re     *regexp.Regexp
	// lowered says that re is to be run over the lower-cased text. That is the same
	// and much faster, since a pattern that folds case has no literal to look for.
	lowered bool
	// literals holds lower-case strings of which every match contains one; nil when
	// the pattern has none worth looking for.
	literals []string
}

// text is a piece of evidence as patterns see it. Both slices have the same length.
type text struct {
	orig []byte
	low  []byte // orig with ASCII letters in lower case
}

// compilePattern compiles a pattern as rules write it.
func compilePattern(source string) (*pattern, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d are allowed", len(source), maxPatternBytes)
	}
	const flags = (syntax.Perl | syntax.FoldCase) &^ syntax.OneLine
	tree, err := syntax.Parse(source, flags)
	if err != nil {
		if se := (*syntax.Error)(nil); errors.As(err, &se) {
			return nil, fmt.Errorf("pattern: %s: %q", se.Code, se.Expr)
		}
		return nil, fmt.Errorf("pattern: %w", err)
	}
	p := &pattern{source: source, lowered: caseless(tree)}
	compiled := "(?im)" + source
	if p.lowered {
		lowerLiterals(tree)
		compiled = tree.String()
	}
	if p.re, err = regexp.Compile(compiled); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	p.literals = requiredLiterals(tree)
	return p, nil
}

func (p *pattern) match(t text) bool {
	if p.lowered {
		return p.re.Match(t.low)
	}
	return p.re.Match(t.orig)
}

// find returns the offsets of the first match and its groups, as
// regexp.FindSubmatchIndex does; nil when there is none.
func (p *pattern) find(t text) []int {
	if p.lowered {
		return p.re.FindSubmatchIndex(t.low)
	}
	return p.re.FindSubmatchIndex(t.orig)
}

// caseless reports whether the tree treats both cases of every ASCII letter alike.
func caseless(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			break
		}
		for _, r := range re.Rune {
			if isLetter(r) {
				return false
			}
		}
	case syntax.OpCharClass:
		for r := 'a'; r <= 'z'; r++ {
			if inClass(re.Rune, r) != inClass(re.Rune, r-'a'+'A') {
				return false
			}
		}
	}
	for _, sub := range re.Sub {
		if !caseless(sub) {
			return false
		}
	}
	return true
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// inClass reports whether r is in a class, a list of pairs of bounds.
func inClass(class []rune, r rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= r && r <= class[i+1] {
			return true
		}
	}
	return false
}

// lowerLiterals rewrites the ASCII literals of a caseless tree to lower case without
// the fold flag, so that the regexp package can look for them.
func lowerLiterals(re *syntax.Regexp) {
	if re.Op == syntax.OpLiteral && isASCII(re.Rune) {
		for i, r := range re.Rune {
			if 'A' <= r && r <= 'Z' {
				re.Rune[i] = r - 'A' + 'a'
			}
		}
		re.Flags &^= syntax.FoldCase
	}
	for _, sub := range re.Sub {
		lowerLiterals(sub)
	}
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
// contains at least one, or nil.
func requiredLiterals(re *syntax.Regexp) []string {
	n := literalsOf(re)
	best := better(n.required, n.exact)
	for i, lit := range best {
		best[i] = longestLine(lit)
	}
	if shortest(best) < minLiteral {
		return nil
	}
	return best
}

// need is what is known of the texts that a part of a pattern matches.
type need struct {
	exact    []string // all texts it can match, when they are few
	required []string // or strings of which every match contains one
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
		n := literalsOf(re.Sub[0])
		return need{required: better(n.required, n.exact)}
	case syntax.OpRepeat:
		if re.Min == 0 {
			return need{}
		}
		n := literalsOf(re.Sub[0])
		return need{required: better(n.required, n.exact)}
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

// literalsOfConcat joins neighbours that match few texts into longer ones and keeps
// the best of what it met.
func literalsOfConcat(subs []*syntax.Regexp) need {
	run := []string{""}
	var best []string
	whole := true
	for _, sub := range subs {
		n := literalsOf(sub)
		joined := cross(run, n.exact)
		if joined != nil {
			run = joined
			continue
		}
		whole = false
		best = better(best, better(run, n.required))
		run = []string{""}
		if n.exact != nil {
			run = n.exact
		}
	}
	if whole {
		return need{exact: run}
	}
	return need{required: better(best, run)}
}

func literalsOfAlternate(subs []*syntax.Regexp) need {
	var exact, required []string
	allExact := true
	for _, sub := range subs {
		n := literalsOf(sub)
		part := better(n.required, n.exact)
		allExact = allExact && n.exact != nil
		if part == nil || len(required)+len(part) > maxLiterals {
			return need{}
		}
		exact = append(exact, n.exact...)
		required = append(required, part...)
	}
	if allExact {
		return need{exact: exact}
	}
	return need{required: required}
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
			if s := lowerASCII(string(r)); len(out) == 0 || !contains(out, s) {
				out = append(out, s)
			}
			if len(out) > maxClass {
				return nil
			}
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// better returns the set whose shortest string is longer, of equal ones the smaller
// set. A nil set is worse than any.
func better(a, b []string) []string {
	switch sa, sb := shortest(a), shortest(b); {
	case sa > sb || sa == sb && len(a) <= len(b) && a != nil:
		return a
	default:
		return b
	}
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
