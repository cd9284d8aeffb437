package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// yamlFault gives what the yaml package says of text its place.
func yamlFault(name string, text []byte, err error) *ParseError {
	fault := &ParseError{Name: name, Detail: strings.TrimPrefix(err.Error(), "yaml: ")}
	told, ok := errors.AsType[*yaml.LoadError](err)
	switch {
	case errors.Is(err, io.EOF):
		fault.Detail = "empty"
	case !ok:
	case told.Mark.Line == 0: // a character that no YAML has
		fault.Detail = told.Message
		fault.Line, fault.Column = placeOf(text, unreadable(text))
	default:
		fault.Detail = told.Message
		fault.Line, fault.Column = told.Mark.Line, told.Mark.Column
		inside := told.Mark
		if strings.Contains(told.ContextMsg, "scalar") { // one that is not closed goes on to the end
			inside = told.ContextMark
		}
		fault.Rule = ruleBefore(text[:offsetOf(text, inside.Line, inside.Column)])
		if begins := told.ContextMark; begins.Line > 0 && begins != told.Mark {
			fault.Detail += fmt.Sprintf(", %s that begins in line %d, column %d", told.ContextMsg, begins.Line, begins.Column)
		}
		if line, column := placeOf(text, len(bytes.TrimRight(text, "\n"))); fault.Line > line {
			fault.Line, fault.Column = line, column // something is missing at the end
		}
	}
	return fault
}

// The ids of rules, and the keys at the top, as they are usually written.
var (
	writtenID  = regexp.MustCompile(`(?m)(?:^[ -]*|[{,] *)id: *["']?([a-z0-9][a-z0-9._-]*)`)
	writtenTop = regexp.MustCompile(`(?m)^[a-z_]+ *:`)
)

// ruleBefore returns the id of the rule that text breaks off in, as far as it can be told
// from text that is no YAML; empty when it is in none.
func ruleBefore(text []byte) string {
	ids := writtenID.FindAllSubmatchIndex(text, -1)
	if len(ids) == 0 {
		return ""
	}
	last := ids[len(ids)-1]
	if writtenTop.Match(text[last[1]:]) {
		return ""
	}
	return string(text[last[2]:last[3]])
}

// unreadable returns the offset of the first byte of text that is no UTF-8 or a
// character that YAML (1.2.2, section 5.1) does not allow; the length if there is none.
func unreadable(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 || !printable(r) {
			return at
		}
		at += size
	}
	return len(text)
}

// printable reports a character that YAML allows.
func printable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < ' ', 0x7f <= r && r < 0xa0, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// placeOf returns the line and the column, in characters, of an offset in text, both
// from 1.
func placeOf(text []byte, offset int) (line, column int) {
	before := text[:offset]
	last := bytes.LastIndexByte(before, '\n')
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[last+1:]) + 1
}

// offsetOf returns the offset of a line and a column in text, the end of text when it has
// no such place.
func offsetOf(text []byte, line, column int) int {
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			return len(text)
		}
		at += next + 1
	}
	for range column - 1 {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}
