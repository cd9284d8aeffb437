package rules

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

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
	maxLiterals = 128 // beyond that many a pattern counts as having none
	maxCross    = 32  // that are made of parts of a pattern that have several each
	minLiteral  = 3   // shorter ones hit too often, in bytes
	maxClass    = 10  // characters of a class that are spelt out
)

// literals returns lower-case strings of which every match of the tree contains at least
// one, or nil, and others of which it contains one besides. whole says that the first are
// all that the tree matches.
func (n need) literals(re *syntax.Regexp) (literals, also []string, whole bool) {
	sets := n.required
	if n.exact != nil {
		sets = [][]string{n.exact}
		whole = re.MaxCap() == 0 && !asserts(re) // what groups catch is asked of package regexp
	}
	literals, also = bestTwo(sets)
	for _, lit := range n.exact {
		whole = whole && !strings.Contains(lit, "\n")
	}
	return literals, also, whole && literals != nil
}

// marks returns the strings shorter than minLiteral of which every match contains each.
func (n need) marks() []string {
	var marks []string
	for _, set := range n.sets() {
		if len(set) == 1 && 0 < len(set[0]) && len(set[0]) < minLiteral && set[0] != "\n" {
			marks = append(marks, set[0])
		}
	}
	return marks
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
		if joined == nil || asserts(subs[0]) {
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

// need is what is known of the texts that a pattern, or a part of one, matches.
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
	most := maxLiterals
	if len(a) > 1 && len(b) > 1 {
		most = maxCross
	}
	if b == nil || len(a)*len(b) > most {
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
