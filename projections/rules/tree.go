package rules

import (
	"regexp/syntax"
	"slices"
)

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

// asserts reports whether the tree has an assertion such as \b or $.
func asserts(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, asserts)
}

// shortestMatch returns the length of the shortest match of the tree, in bytes, or less.
func shortestMatch(re *syntax.Regexp) int {
	n := 0
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		n = 1
	case syntax.OpCapture, syntax.OpPlus:
		n = shortestMatch(re.Sub[0])
	case syntax.OpRepeat:
		n = re.Min * shortestMatch(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n += shortestMatch(sub)
		}
	case syntax.OpAlternate:
		n = shortestMatch(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, shortestMatch(sub))
		}
	}
	return n
}

// filledGroups lists the named groups in which every match of the tree catches something.
func filledGroups(re *syntax.Regexp) []string {
	var out []string
	switch re.Op {
	case syntax.OpCapture:
		out = filledGroups(re.Sub[0])
		if re.Name != "" && shortestMatch(re) > 0 {
			out = append(out, re.Name)
		}
	case syntax.OpConcat, syntax.OpPlus:
		for _, sub := range re.Sub {
			out = append(out, filledGroups(sub)...)
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			out = filledGroups(re.Sub[0])
		}
	case syntax.OpAlternate:
		out = filledGroups(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			others := filledGroups(sub)
			out = slices.DeleteFunc(out, func(name string) bool { return !slices.Contains(others, name) })
		}
	}
	return out
}
