package config

import (
	"regexp"
	"strings"
)

// segmentKind says what a part of a value stands for.
type segmentKind int

const (
	literal     segmentKind = iota
	variable                // ${NAME}, ${env:NAME}
	input                   // ${input:ID}
	fileContent             // ${file:PATH}
	folder                  // ${workspaceFolder}
	home                    // ${userHome}
	unsupported             // any other ${...}
)

// segment is a part of a value as written in a config file.
type segment struct {
	kind     segmentKind
	written  string // as in the file
	text     string // a literal's text; the name, id or path of a reference
	fallback string // after ":-"
	optional bool   // there is a fallback
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	nameStartsIt = regexp.MustCompile(`^[A-Za-z]*:?[A-Za-z0-9_-]*`)
)

// parseTemplate cuts a value at its references.
func parseTemplate(s string) []segment {
	var segments []segment
	start := 0
	addLiteral := func(end int) {
		if end > start {
			segments = append(segments, segment{kind: literal, written: s[start:end], text: s[start:end]})
		}
	}
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			addLiteral(i)
			segments = append(segments, segment{kind: literal, written: "$${", text: "${"})
			i += len("$${")
			start = i
		case strings.HasPrefix(s[i:], "${"):
			addLiteral(i)
			end := referenceEnd(s, i)
			segments = append(segments, parseReference(s[i:end]))
			i, start = end, end
		default:
			i++
		}
	}
	addLiteral(len(s))
	return segments
}

// referenceEnd returns the index after the reference that starts at s[i], braces
// inside it counted.
func referenceEnd(s string, i int) int {
	depth := 0
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return len(s)
}

func parseReference(written string) segment {
	other := segment{kind: unsupported, written: written, text: written}
	body, closed := strings.CutSuffix(strings.TrimPrefix(written, "${"), "}")
	if !closed || strings.Contains(body, "${") {
		return other
	}
	name, fallback, optional := strings.Cut(body, ":-")
	seg := segment{kind: variable, written: written, text: name, fallback: fallback, optional: optional}
	kind, rest, prefixed := strings.Cut(name, ":")
	switch {
	case prefixed:
		seg.text = rest
		switch kind {
		case "env":
		case "input":
			seg.kind = input
		case "file":
			seg.kind = fileContent
		default:
			return other
		}
	case name == "workspaceFolder":
		seg.kind = folder
	case name == "userHome":
		seg.kind = home
	}
	if seg.text == "" || seg.kind == variable && !variableName.MatchString(seg.text) {
		return other
	}
	return seg
}

// label names a reference without what may be a secret in it.
func (s segment) label() string {
	if s.kind == unsupported {
		return "${" + nameStartsIt.FindString(strings.TrimPrefix(s.written, "${")) + "…}"
	}
	written, _, _ := strings.Cut(s.written, ":-")
	return strings.TrimSuffix(written, "}") + "}"
}

// inputVariable returns the variable that answers the input with that id: upper
// case, with "_" for what a variable's name cannot hold.
func inputVariable(id string) string {
	return OwnPrefix + "INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, id)
}
